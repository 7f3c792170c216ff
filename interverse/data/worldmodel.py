"""Collected episodes in the layouts of stable-worldmodel: one HDF5 file, or a Lance table.

A row is a step: what is seen before action t, and the action. What the last action leads to is left
out. Twins are columns. Of stacked pictures a row holds the newest; readers stack them again. Whole
numbers among the variables (seeds) are int64, all other numbers float32, as networks take them. In
HDF5 `ep_len` and `ep_offset` say where an episode begins, and arrays of `info` whose columns have
names (active edges) have an attribute `columns`; in Lance `episode_idx` and `step_idx` count, a
picture is a JPEG, and names have `_` where HDF5 has a dot.
"""

from __future__ import annotations

import importlib
import io
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from interverse.core.errors import missing_extra
from interverse.core.files.hdf5 import new_hdf5
from interverse.core.files.json_text import plain
from interverse.data.episodes import TwinFolder
from interverse.rollouts.episode import Episode

_PIXELS = 4  # axes of a column of pictures: step, row, column, colour
_VALUE = "value_"  # start of the columns of variables
_JPEG_QUALITY = 95  # as the library's own writer


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
            file.attrs["options"] = json.dumps(plain(data.facts[0].options))
    return target


def export_lance(folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Writes collected episodes and their twins as a Lance table (extra `lance`).

    Args:
        folder: what `interverse collect` wrote.
        out: the table's folder; by default the folder's name with `.lance` at its end.

    Returns:
        The folder, which `stable_worldmodel.data.load_dataset` opens.
    """
    try:
        lance = importlib.import_module("lance")
    except ImportError as error:
        raise missing_extra("pylance", "lance") from error
    data = TwinFolder(Path(folder))
    target = Path(folder).with_suffix(".lance") if out is None else Path(out)
    batches = (_batch(_episode(data, number), number) for number in range(len(data)))
    first = next(batches)
    rows = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))
    lance.write_dataset(rows, str(target), mode="overwrite" if target.exists() else "create")
    return target


def _batch(columns: Mapping[str, NDArray[Any]], number: int) -> pa.RecordBatch:
    """Returns the rows of one episode: pictures as JPEG, all else as lists of one length."""
    rows = len(columns["reward"])
    count: NDArray[np.int32] = np.arange(rows, dtype=np.int32)
    held: dict[str, pa.Array] = {
        "episode_idx": pa.array(np.full_like(count, number)),
        "step_idx": pa.array(count),
    }
    for name, column in columns.items():
        if column.ndim == _PIXELS:
            part = pa.array([encoded(picture, "JPEG") for picture in column], pa.binary())
        else:
            part = pa.FixedSizeListArray.from_arrays(pa.array(column.ravel()), column[0].size)
        held[name.replace(".", "_")] = part
    return pa.record_batch(held)


def encoded(picture: NDArray[np.uint8], form: str) -> bytes:
    """Returns a picture as the bytes of a JPEG or PNG file."""
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("pillow", "view") from error
    sink = io.BytesIO()
    Image.fromarray(picture.squeeze()).save(sink, form, quality=_JPEG_QUALITY, subsampling=0)
    return sink.getvalue()


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
    found = {"observation" if pictures(np.asarray(held)) is None else "pixels": held}
    if isinstance(held, Mapping):  # a picture is called pixels, as the reader asks
        found = {
            "pixels" if name.rpartition(".")[2] in ("image", "pixels") else name: rows
            for name, rows in leaves(held)
        }
    found |= {_VALUE + name.replace("/", "."): v for name, v in episode.values.items()}
    found |= {"action": episode.actions, "reward": episode.rewards}
    found |= {name: episode.info[name] for name in episode.columns}
    out = {}
    for name, column in found.items():
        picked = lengthened(np.asarray(column), rows)
        drawn = pictures(picked)
        exact = name.startswith(_VALUE) and picked.dtype.kind == "i"  # float32 ends at 2**24
        flat = picked.reshape(rows, -1).astype(np.int64 if exact else np.float32)
        out[prefix + name] = flat if drawn is None else drawn
    return out


def lengthened(column: NDArray[Any], rows: int) -> NDArray[Any]:
    """Returns the first rows of a column, its last one repeated where there are too few."""
    return column[np.minimum(np.arange(rows), len(column) - 1)]


def pictures(column: NDArray[Any]) -> NDArray[np.uint8] | None:
    """Returns (T, height, width, 1 or 3) of pictures, of stacked ones the newest; None for others.

    >>> pictures(np.zeros((5, 9, 84, 84), dtype=np.uint8)).shape
    (5, 84, 84, 3)
    """
    if column.ndim != _PIXELS or column.dtype != np.uint8:
        return None
    first = column.shape[1] < column.shape[3]  # colours come before rows
    frames = np.moveaxis(column, 1, -1) if first else column
    channels = frames.shape[-1]
    return frames[..., -3:] if channels == 1 or channels % 3 == 0 else None


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yields the parts of an observation under their names, those inside others after a dot."""
    for name, part in tree.items():
        if isinstance(part, Mapping):
            yield from leaves(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", np.asarray(part)
