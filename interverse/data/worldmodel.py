"""Collected episodes as one HDF5 file in the layout of stable-worldmodel, twins as columns.

A column is an array over all steps of all episodes; `ep_len` and `ep_offset` say where an episode
begins. Row t is what is seen before action t; what the last action leads to is left out. Arrays of
`info` whose columns have names (active edges) are there with an attribute `columns`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.core.files.hdf5 import new_hdf5
from interverse.data.episodes import TwinFolder
from interverse.rollouts.episode import Episode

_PIXELS = 4  # axes of a column of pictures: step, row, column, colour


def export_worldmodel(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> Path:
    """Writes collected episodes and their twins as a file that stable-worldmodel's reader opens.

    Args:
        folder: what `interverse collect` wrote.
        out: the file to write; by default the folder's name with `.h5` at its end.

    Returns:
        The file. A twin that was refused has `twin_K_refused` 1 and the fact's columns.
    """
    data = TwinFolder(Path(folder))
    target = Path(folder).with_suffix(".h5") if out is None else Path(out)
    lengths = [len(fact) for fact in data.facts]
    with new_hdf5(target) as file:
        file["ep_len"] = np.array(lengths, dtype=np.int32)
        file["ep_offset"] = np.cumsum([0, *lengths[:-1]], dtype=np.int64)
        start = 0
        for number, length in enumerate(lengths):
            for name, column in _episode(data, number).items():
                if not number:
                    shape = (sum(lengths), *column.shape[1:])
                    file.create_dataset(name, shape, column.dtype)
                file[name][start : start + length] = column
            start += length
        for name, titles in data.facts[0].columns.items() if lengths else ():
            for prefix in ("", *(f"twin_{k}_" for k in range(len(data.twins)))):
                file[prefix + name].attrs["columns"] = list(titles)
        if lengths:
            file.attrs["options"] = json.dumps(dict(data.facts[0].options), default=str)
    return target


def _episode(data: TwinFolder, number: int) -> dict[str, NDArray[Any]]:
    """Returns the columns of one episode and of its twins."""
    fact = data.facts[number]
    columns = _columns(fact, len(fact), "")
    for k in range(len(data.twins)):
        twin = data.twin(number, k)
        held = isinstance(twin, Episode)
        columns |= _columns(twin if isinstance(twin, Episode) else fact, len(fact), f"twin_{k}_")
        columns[f"twin_{k}_refused"] = np.full((len(fact), 1), not held, dtype=np.float32)
    return columns


def _columns(episode: Episode, rows: int, prefix: str) -> dict[str, NDArray[Any]]:
    """Returns an episode's columns; a twin that ended early repeats its last row."""
    held = episode.observations
    found = dict(_leaves(held)) if isinstance(held, Mapping) else {"observation": held}
    found |= {"value_" + name.replace("/", "."): v for name, v in episode.values.items()}
    found |= {"action": episode.actions, "reward": episode.rewards}
    found |= {name: episode.info[name] for name in episode.columns}
    out = {}
    for name, column in found.items():
        array = np.asarray(column)
        picked = array[np.minimum(np.arange(rows), len(array) - 1)]
        if array.ndim != _PIXELS:
            picked = picked.reshape(rows, -1).astype(np.float32)
        out[prefix + name] = picked
    return out


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yields the parts of an observation; a picture is called pixels, as the reader asks."""
    for name, part in tree.items():
        if isinstance(part, Mapping):
            yield from _leaves(part, f"{prefix}{name}.")
        else:
            yield "pixels" if name in ("image", "pixels") else f"{prefix}{name}", np.asarray(part)
