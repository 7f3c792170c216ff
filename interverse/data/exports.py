"""Collected episodes in other libraries' layouts: Hugging Face, stable-worldmodel, Lance, Minari.

Twins are columns. Of stacked pictures a row holds the newest; readers stack them again. Arrays of
`info` whose columns have names (active edges) keep the names.
"""

from __future__ import annotations

import copy
import importlib
import io
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from interverse.core.errors import missing_extra
from interverse.core.files.atomic import atomic, write_text
from interverse.core.files.hdf5 import new_hdf5
from interverse.core.files.json_text import plain
from interverse.data.dataset import Dataset
from interverse.data.episodes import TwinFolder
from interverse.rollouts.episode import Episode, Refusal
from interverse.worlds.own_code import check_trusted

DATA_FILE, CARD_FILE = "data/train-00000-of-00001.parquet", "README.md"
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])  # as the Hub stores pictures
_PIXELS = 4  # axes of a column of pictures: step, row, column, colour
_VALUE = "value_"  # start of the columns of variables
_JPEG_QUALITY = 95  # as the library's own writer


def _twins(data: TwinFolder, number: int) -> Iterator[tuple[str, Episode, str | None]]:
    """Yields names and episodes of twins, with None; of a refused one its fact, and the reason."""
    for k in range(len(data.twins)):
        twin, name = data.twin(number, k), f"twin_{k}"
        if isinstance(twin, Refusal):
            yield name, data.facts[number], twin.reason
        else:
            yield name, twin, None


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


def _encoded(picture: NDArray[np.uint8], form: str) -> bytes:
    """Returns a picture as the bytes of a JPEG or PNG file."""
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("pillow", "view") from error
    sink = io.BytesIO()
    Image.fromarray(picture.squeeze()).save(sink, form, quality=_JPEG_QUALITY, subsampling=0)
    return sink.getvalue()


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yields the parts of an observation under their names, those inside others after a dot."""
    for name, part in tree.items():
        if isinstance(part, Mapping):
            yield from _leaves(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", np.asarray(part)


# ----------------------------------------------------------------------------------- Hugging Face


def export_parquet(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> Path:
    """Writes collected episodes and their twins as a folder that `datasets.load_dataset` reads.

    A row is a moment: what is seen and the values of all variables, then the action and its reward.
    The last row of an episode has no action. The columns of twin k begin with `twin_k.`; they are
    null where the intervention was refused, which `twin_k.refused` says.

    Args:
        folder: what `interverse collect` wrote.
        out: the folder to write; by default the same name with `_hub` at its end.

    Returns:
        The folder.
    """
    source = Path(folder)
    data = TwinFolder(source)
    target = source.with_name(source.name + "_hub") if out is None else Path(out)
    tables = _tables(data)
    first = next(tables)
    with atomic(target / DATA_FILE) as partial, pq.ParquetWriter(partial, first.schema) as writer:
        for table in (first, *tables):
            writer.write_table(table.cast(first.schema))
    write_text(target / CARD_FILE, _card(data, first.schema))
    return target


def _tables(data: TwinFolder) -> Iterator[pa.Table]:
    """Yields a table for each episode, all with the columns of the facts and of every twin."""
    for number, fact in enumerate(data.facts):
        rows = len(fact) + 1
        columns: dict[str, pa.Array] = {
            "episode_index": pa.array([number] * rows, pa.int64()),
            "frame_index": pa.array(range(rows), pa.int64()),
            "seed": pa.array([fact.seed] * rows, pa.int64()),
            **_moments("", fact, rows),
        }
        for name, shown, refused in _twins(data, number):
            columns[f"{name}.refused"] = pa.array([refused] * rows, pa.string())
            like = _moments(f"{name}.", shown, rows)
            if refused is not None:
                like = {name: pa.nulls(rows, part.type) for name, part in like.items()}
            columns |= like
        table = pa.table(columns)
        known = {item.name: _feature(item.type) for item in table.schema}
        told = json.dumps({"info": {"features": known}})
        yield table.replace_schema_metadata({"huggingface": told})


def _moments(prefix: str, episode: Episode, rows: int) -> dict[str, pa.Array]:
    """Returns an episode's columns, null beyond its end."""
    held = episode.observations
    seen = held if isinstance(held, Mapping) else {"": held}
    found = {f"observation{'.' * bool(n)}{n}": a for n, a in _leaves(seen)}
    found |= {f"value.{name}": array for name, array in episode.values.items()}
    found |= {"action": episode.actions, "next.reward": episode.rewards}
    found |= {"next.terminated": episode.terminated, "next.truncated": episode.truncated}
    for name, titles in episode.columns.items():
        found |= {f"{name}.{t}": a for t, a in zip(titles, episode.info[name].T, strict=False)}
    return {prefix + name: _column(np.asarray(array)[:rows], rows) for name, array in found.items()}


def _column(array: NDArray[Any], rows: int) -> pa.Array:
    """Returns (T, ...) as a column of numbers, of lists or of pictures, with nulls up to `rows`."""
    absent = [None] * (rows - len(array))
    if (drawn := pictures(array)) is not None:
        shown = [{"bytes": _encoded(a, "PNG"), "path": None} for a in drawn]
        return pa.array(shown + absent, _IMAGE)
    kind = pa.from_numpy_dtype(array.dtype)
    if array.ndim == 1:
        return pa.array([*array.tolist(), *absent], kind)
    flat = array.reshape(len(array), -1)
    return pa.array([*flat.tolist(), *absent], pa.list_(kind))


def _feature(kind: pa.DataType) -> dict[str, Any]:
    """Returns what the Hub calls a feature: the kind of a column."""
    if kind == _IMAGE:
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    names = {pa.float64(): "float64", pa.float32(): "float32", pa.bool_(): "bool"}
    return {"dtype": names.get(kind, str(kind)), "_type": "Value"}


def _card(data: TwinFolder, schema: pa.Schema) -> str:
    """Returns the data set's card."""
    first = data.facts[0]
    twins = [f"- `twin_{k}`: `do({json.dumps(do)})`" for k, do in enumerate(data.twins)]
    front = {
        "configs": [{"config_name": "default", "data_files": DATA_FILE}],
        "tags": ["interverse", "causality", "counterfactuals", first.id],
    }
    lines = ["---", *(f"{k}: {json.dumps(v)}" for k, v in front.items()), "---", ""]
    lines += [f"# {first.id}: {len(data)} episodes", ""]
    lines += ["A row is a moment; the last of an episode has no action."]
    lines += ["", f"Options of the world: `{json.dumps(plain(first.options))}`."]
    if twins:
        told = "Twins are the same episode (start, noise, actions) under another intervention."
        lines += ["", told, "", *twins]
    lines += ["", "| column | type |", "|---|---|"]
    lines += [f"| `{item.name}` | {item.type} |" for item in schema]
    code = 'import datasets\n\ndata = datasets.load_dataset("PATH_OF_THIS_FOLDER", split="train")'
    return "\n".join([*lines, "", f"```python\n{code}\n```", ""])


# ------------------------------------------------------------------------------ stable-worldmodel


def export_worldmodel(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> Path:
    """Writes collected episodes and their twins as a file that stable-worldmodel's reader opens.

    A row is a step: what is seen before action t, and the action. What the last action leads to is
    left out. Whole numbers among the variables (seeds) are int64, all other numbers float32, as
    networks take them. `ep_len` and `ep_offset` say where an episode begins.

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
            for name, column in _steps(data, number).items():
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

    Rows and columns are those of `export_worldmodel`, but that `episode_idx` and `step_idx` count,
    a picture is a JPEG, and names have `_` where HDF5 has a dot.

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

    def batch(number: int) -> pa.RecordBatch:
        columns = _steps(data, number)
        count: NDArray[np.int32] = np.arange(len(columns["reward"]), dtype=np.int32)
        held = {"episode_idx": pa.array(np.full_like(count, number)), "step_idx": pa.array(count)}
        for name, column in columns.items():
            if column.ndim == _PIXELS:
                part = pa.array([_encoded(picture, "JPEG") for picture in column], pa.binary())
            else:
                numbers = pa.array(column.ravel())
                part = pa.FixedSizeListArray.from_arrays(numbers, column[0].size)
            held[name.replace(".", "_")] = part
        return pa.record_batch(held)

    batches = map(batch, range(len(data)))
    first = next(batches)
    rows = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))
    lance.write_dataset(rows, str(target), mode="overwrite" if target.exists() else "create")
    return target


def _steps(data: TwinFolder, number: int) -> dict[str, NDArray[Any]]:
    """Returns the columns of one episode and of its twins."""
    fact = data.facts[number]
    columns = _columns(fact, len(fact), "")
    for name, shown, refused in _twins(data, number):
        columns |= _columns(shown, len(fact), f"{name}_")
        told = np.full((len(fact), 1), refused is not None, dtype=np.float32)
        columns[f"{name}_refused"] = told
    return columns


def _columns(episode: Episode, rows: int, prefix: str) -> dict[str, NDArray[Any]]:
    """Returns an episode's columns; a twin that ended early repeats its last row."""
    held = episode.observations
    found = {"observation" if pictures(np.asarray(held)) is None else "pixels": held}
    if isinstance(held, Mapping):  # a picture is called pixels, as the reader asks
        found = {
            "pixels" if name.rpartition(".")[2] in ("image", "pixels") else name: rows
            for name, rows in _leaves(held)
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


# ----------------------------------------------------------------------------------------- Minari


def to_minari(data: Dataset | TwinFolder, name: str, **about: Any) -> Any:
    """Returns the data set as a new `minari.MinariDataset`, stored under a name, pixels lossless.

    Args:
        data: what to export; of collected episodes the facts, with all values of variables and
            every twin's observations, rewards and values as infos. A twin that was refused has
            `twin_K.refused` 1 and the fact's; one that ended early repeats its last row.
        name: Minari's id, such as "interverse/blocks-observed-3/train-v0".
        **about: what else `minari.create_dataset_from_buffers` takes: author, code_permalink, ...
    """
    try:
        minari = importlib.import_module("minari")
        buffer = importlib.import_module("minari.data_collector").EpisodeBuffer
    except ImportError as error:
        raise missing_extra("minari", "minari") from error
    collected = isinstance(data, TwinFolder)
    header: Any = data.facts[0] if isinstance(data, TwinFolder) else data.header
    check_trusted("the data set", header.id, header.options)
    spec = copy.deepcopy(gym.spec(header.id))
    spec.kwargs.update(header.options)
    told = {
        "algorithm_name": "see collect.json" if collected else "random",
        "description": f"{header.id}, seed {header.seed}, interverse {header.version}",
        "jpeg_encoding": False,
    } | about
    # One episode at a time, so that the pixels of one are in memory, not of all.
    episodes = _episodes(data) if isinstance(data, TwinFolder) else _grid_episodes(data)
    buffers = (buffer(id=number, **fields) for number, fields in enumerate(episodes))
    return minari.create_dataset_from_buffers(name, buffers, env=spec, **told)


def _episodes(data: TwinFolder) -> Iterator[dict[str, Any]]:
    """Yields the facts, with values and twins as infos, a row for each moment of the fact."""

    def lengthen(tree: Any, rows: int) -> Any:
        if isinstance(tree, Mapping):
            return {name: lengthen(part, rows) for name, part in tree.items()}
        return lengthened(np.asarray(tree), rows)

    for number, fact in enumerate(data.facts):
        rows = len(fact) + 1
        infos = {f"value.{name.replace('/', '.')}": v for name, v in fact.values.items()}
        for twin, shown, refused in _twins(data, number):
            own = {
                f"value.{name.replace('/', '.')}": lengthened(v, rows)
                for name, v in shown.values.items()
            }
            own["observations"] = lengthen(shown.observations, rows)
            own["rewards"] = np.append(lengthened(shown.rewards, rows - 1), np.nan)
            own["refused"] = np.full(rows, refused is not None)
            infos |= {f"{twin}.{name}": column for name, column in own.items()}
        yield {
            "seed": fact.seed,
            "options": {"episode": fact.episode},
            "observations": fact.observations,
            "actions": fact.actions,
            "rewards": fact.rewards,
            "terminations": fact.terminated,
            "truncations": fact.truncated,
            "infos": infos,
        }


def _grid_episodes(data: Dataset) -> Iterator[dict[str, Any]]:
    last = np.arange(1, data.header.steps + 1) == data.header.steps
    for e in range(len(data)):
        frames = data.images(e)[0]
        seen = {"image": frames, "state": data.states[e]}
        if data.header.targets:
            seen["target"] = np.broadcast_to(data.target_images(e)[0], frames.shape)
        yield {
            "seed": int(data.seeds[e]),
            "options": {"episode": int(data.episodes[e])},
            "observations": seen,
            "actions": data.actions[e],
            "rewards": data.rewards[e],
            "terminations": np.zeros_like(last),
            "truncations": last,
        }
