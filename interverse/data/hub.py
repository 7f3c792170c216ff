"""Collected episodes as a Hugging Face data set: Parquet with a card, twins as columns.

A row is a moment: what is seen and the values of all variables, then the action and its reward.
The last row of an episode has no action. Arrays of `info` whose columns have names (active edges)
are a column each. The columns of twin k begin with `twin_k.`; they are null
where the intervention was refused, which `twin_k.refused` says. Of stacked pictures a row holds
the newest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from interverse.core.files.atomic import atomic, write_text
from interverse.core.files.json_text import plain
from interverse.data.episodes import TwinFolder
from interverse.data.worldmodel import encoded, leaves, pictures
from interverse.rollouts.episode import Episode

DATA_FILE, CARD_FILE = "data/train-00000-of-00001.parquet", "README.md"
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])  # as the Hub stores pictures
Columns = dict[str, pa.Array]


def export_parquet(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> Path:
    """Writes collected episodes and their twins as a folder that `datasets.load_dataset` reads.

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
    for number in range(len(data)):
        fact = data.facts[number]
        rows = len(fact) + 1
        columns: Columns = {
            "episode_index": pa.array([number] * rows, pa.int64()),
            "frame_index": pa.array(range(rows), pa.int64()),
            "seed": pa.array([fact.seed] * rows, pa.int64()),
            **_moments("", fact, rows),
        }
        for k in range(len(data.twins)):
            twin = data.twin(number, k)
            refused = None if isinstance(twin, Episode) else twin.reason
            columns[f"twin_{k}.refused"] = pa.array([refused] * rows, pa.string())
            like = _moments(f"twin_{k}.", twin if isinstance(twin, Episode) else fact, rows)
            if refused is not None:
                like = {name: pa.nulls(rows, part.type) for name, part in like.items()}
            columns |= like
        table = pa.table(columns)
        yield table.replace_schema_metadata({"huggingface": json.dumps(_features(table.schema))})


def _moments(prefix: str, episode: Episode, rows: int) -> Columns:
    """Returns an episode's columns, null beyond its end."""
    held = episode.observations
    seen = held if isinstance(held, Mapping) else {"": held}
    out = {f"{prefix}observation{'.' * bool(n)}{n}": a for n, a in leaves(seen)}
    out |= {f"{prefix}value.{name}": array for name, array in episode.values.items()}
    out |= {f"{prefix}action": episode.actions, f"{prefix}next.reward": episode.rewards}
    out |= {f"{prefix}next.terminated": episode.terminated}
    out |= {f"{prefix}next.truncated": episode.truncated}
    for name, titles in episode.columns.items():
        parts = episode.info[name].T
        out |= {f"{prefix}{name}.{title}": parts[k] for k, title in enumerate(titles)}
    return {name: _column(np.asarray(array)[:rows], rows) for name, array in out.items()}


def _column(array: NDArray[Any], rows: int) -> pa.Array:
    """Returns (T, ...) as a column of numbers, of lists or of pictures, with nulls up to `rows`."""
    absent = [None] * (rows - len(array))
    if (drawn := pictures(array)) is not None:
        return pa.array(
            [{"bytes": encoded(a, "PNG"), "path": None} for a in drawn] + absent, _IMAGE
        )
    kind = pa.from_numpy_dtype(array.dtype)
    if array.ndim == 1:
        return pa.array([*array.tolist(), *absent], kind)
    flat = array.reshape(len(array), -1)
    return pa.array([*flat.tolist(), *absent], pa.list_(kind))


def _features(schema: pa.Schema) -> dict[str, Any]:
    """Returns what the Hub calls features: the kind of every column."""
    found: dict[str, Any] = {}
    for item in schema:
        if item.type == _IMAGE:
            found[item.name] = {"_type": "Image"}
        elif pa.types.is_list(item.type):
            inner = {"dtype": _dtype(item.type.value_type), "_type": "Value"}
            found[item.name] = {"feature": inner, "_type": "List"}
        else:
            found[item.name] = {"dtype": _dtype(item.type), "_type": "Value"}
    return {"info": {"features": found}}


def _dtype(kind: pa.DataType) -> str:
    names = {pa.float64(): "float64", pa.float32(): "float32", pa.bool_(): "bool"}
    return names.get(kind, str(kind))


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
