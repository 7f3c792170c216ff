"""The results table: its columns, the checks on rows, and its Parquet file with the provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from interverse._version import __version__, release
from interverse.core.errors import FileFormatError, InvalidValueError, explain
from interverse.core.files.atomic import atomic
from interverse.core.files.json_text import parse_json
from interverse.core.files.parquet import read_parquet
from interverse.metrics.success import SOLVED

CONTRACT: dict[str, pa.DataType] = {
    "task": pa.string(),
    "protocol": pa.string(),
    "seed": pa.int64(),
    "episode": pa.int64(),
    "last_fractional_success": pa.float64(),
    "mean_fractional_success": pa.float64(),
    "last20_fractional_success": pa.float64(),
    "return": pa.float64(),
    "length": pa.int64(),
    "refused": pa.bool_(),
    "reason": pa.string(),
}
_EXTRA: dict[str, pa.DataType] = {
    "experiment": pa.string(),
    "step": pa.int64(),
    "solved": pa.float64(),  # follows from the last fraction, in tables from before it too
}
_MAYBE = {
    "trace": pa.string(),  # equal: the same episode again, step for step
    "settings": pa.string(),  # options and engine: rows of one experiment have the same
}
KEY = ("experiment", "step", "task", "protocol", "seed", "episode")
_REQUIRED = ("task", "protocol", "seed", "episode")
_DEFAULTS: dict[str, Any] = {"experiment": "policy", "refused": False}
SCORES = (
    "last_fractional_success",
    "solved",
    "mean_fractional_success",
    "last20_fractional_success",
    "return",
)


def checked(data: pa.Table) -> pa.Table:
    """Returns the table with all columns, in order and of the right types, or raises."""
    if not isinstance(data, pa.Table):
        raise InvalidValueError(f"data is a {type(data).__name__}", allowed="a pyarrow.Table")
    fixed = CONTRACT | _EXTRA | {n: t for n, t in _MAYBE.items() if n in data.column_names}
    extra = sorted(set(data.column_names) - set(fixed))
    wrong = [name for name in extra if not name.startswith(("score:", "value:"))]
    if wrong:
        allowed = f"{', '.join(fixed)}, score:<metric>, value:<variable>"
        raise InvalidValueError(f"unknown result columns {wrong}", allowed=allowed)
    if "solved" not in data.column_names and "last_fractional_success" in data.column_names:
        ends = _cast(data["last_fractional_success"], "last_fractional_success", pa.float64())
        ends = pc.if_else(pc.is_nan(ends), None, ends)
        data = data.append_column("solved", pc.greater(ends, SOLVED).cast(pa.float64()))
    columns: dict[str, Any] = {}
    for name, kind in fixed.items():
        needed = name in _REQUIRED
        if name not in data.column_names:
            if needed and data.num_rows:
                raise InvalidValueError(
                    f"the results lack the column {name!r}", fix=f"Give every row a {name}"
                )
            columns[name] = pa.array([_DEFAULTS.get(name)] * data.num_rows, kind)
            continue
        column = _cast(data[name], name, kind)
        if needed and column.null_count:
            problem = f"{name} is null in {column.null_count} rows"
            raise InvalidValueError(problem, fix=f"Give every row a {name}")
        columns[name] = pc.fill_null(column, _DEFAULTS[name]) if name in _DEFAULTS else column
    for name in extra:
        kind = pa.float64()
        if name.startswith("value:") and pa.types.is_nested(data[name].type):
            kind = pa.list_(pa.float64())
        columns[name] = _cast(data[name], name, kind)
    for name in filter(is_score, columns):  # NaN and null would be two ways to have no score
        columns[name] = pc.if_else(pc.is_nan(columns[name]), None, columns[name])
    table = pa.table(columns)
    _check_rows(table)
    return table


def _cast(column: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type) and not pa.types.is_floating(kind):  # as pandas has it
        column = pc.if_else(pc.is_nan(column), None, column)
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidValueError(
            f"column {name!r} is {column.type} ({error})", allowed=str(kind)
        ) from None


def _check_rows(table: pa.Table) -> None:
    """Raises where a refused episode has a score, or where an episode stands twice."""
    refused = table.filter(table["refused"])
    for name in (n for n in table.column_names if is_score(n)):
        if refused[name].null_count < refused.num_rows:
            raise InvalidValueError(
                f"a refused episode has a {name}: an episode without its intervention is "
                "never scored",
                fix="Leave the scores of refused episodes null",
            )
    if "settings" in table.column_names:  # rows that a mean would join are of one test
        test = ["experiment", "task", "protocol"]
        known = table.filter(table["settings"].is_valid())
        found = known.group_by(test).aggregate([("settings", "distinct")]).to_pylist()
        for mixed in (one for one in found if len(one["settings_distinct"]) > 1):
            told = " and ".join(f"{settings!r}" for settings in sorted(mixed["settings_distinct"]))
            raise InvalidValueError(
                f"rows of the experiment {mixed['experiment']!r} in {mixed['task']},"
                f" {mixed['protocol']}, are no one test: their settings are {told}",
                fix="Give each its own name in the column experiment",
            )
    groups = table.group_by(list(KEY)).aggregate([([], "count_all")])
    if groups.num_rows < table.num_rows:
        twice = groups.filter(pc.greater(groups["count_all"], 1)).slice(0, 1).to_pylist()[0]
        shown = ", ".join(f"{name}={twice[name]!r}" for name in KEY if twice[name] is not None)
        raise InvalidValueError(
            f"an episode stands in the results more than once: {shown}",
            fix="Give each experiment its own name with results.named(...)",
        )


def is_score(name: str) -> bool:
    """Returns whether a column holds scores."""
    return name in SCORES or name.startswith("score:")


FORMAT = "interverse-results-1"
_FORMAT, _VERSION, _PROVENANCE, _ROWS = (
    f"interverse.{name}".encode() for name in ("format", "version", "provenance", "rows")
)


def write_table(data: pa.Table, provenance: Mapping[str, Any], path: Path) -> Path:
    """Writes the file under a temporary name, then renames it: it is there whole or not at all.

    Holds no time stamp, so equal results give equal bytes.
    """
    metadata = {
        _FORMAT: FORMAT.encode(),
        _VERSION: __version__.encode(),
        _PROVENANCE: json.dumps(provenance, sort_keys=True).encode(),
        _ROWS: rows_hash(data).encode(),
    }
    with atomic(path, durable=True) as partial:
        pq.write_table(data.replace_schema_metadata(metadata), partial, compression="zstd")
    return path


def read_table(path: Path, *, any_version: bool) -> tuple[pa.Table, dict[str, Any]]:
    """Returns the table and provenance of a results file, or raises saying what is wrong."""
    if not path.is_file():
        raise InvalidValueError(
            f"there is no file {str(path)!r}", fix="Name an evaluation's folder or file"
        )
    table = read_parquet(path)
    metadata = table.schema.metadata or {}
    given = metadata.get(_FORMAT, b"").decode(errors="replace")
    if given != FORMAT:
        what = f"of the format {given!r}" if given else "a Parquet file, but not one of results"
        raise FileFormatError(f"{path} is {what}", allowed=FORMAT)
    version = metadata.get(_VERSION, b"unknown").decode(errors="replace")
    if release(version) != release(__version__) and not any_version:
        raise FileFormatError(
            f"{path} was made by interverse {version}, this is {__version__}, and their "
            "scores need not be comparable",
            fix="Evaluate again, or pass any_version=True to read it all the same",
        )
    provenance = parse_json(metadata.get(_PROVENANCE, b"{}"), f"the provenance in {path}")
    if not isinstance(provenance, dict):
        raise FileFormatError(explain(f"the provenance in {path} is corrupt"))
    table = table.replace_schema_metadata(None)
    if metadata.get(_ROWS, b"").decode(errors="replace") not in ("", rows_hash(table)):
        raise FileFormatError(
            f"the rows of {path} do not match their hash: they were changed by hand",
            fix="Make it again: a finished evaluation is not repeated, only what is missing",
        )
    return table, provenance


def rows_hash(data: pa.Table) -> str:
    """Returns a hash of names, types and values, whatever the chunks that hold them.

    >>> table = pa.table({"score": [0.25, None]})
    >>> rows_hash(table) == rows_hash(pa.concat_tables([table.slice(0, 1), table.slice(1)]))
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for name in data.column_names:
        column = data[name].combine_chunks()
        nested = pa.types.is_list(column.type)  # its parts are named otherwise in each format
        kind = f"list {column.type.value_type}" if nested else str(column.type)
        digest.update(f"{name} {kind} {len(column)};".encode())
        if nested:
            lengths = pc.fill_null(pc.list_value_length(column), -1)
            digest.update(lengths.to_numpy(zero_copy_only=False).tobytes())
            column = pc.list_flatten(column)
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            digest.update(np.packbits(column.is_null().to_numpy(zero_copy_only=False)).tobytes())
            digest.update(pc.fill_null(column, 0).to_numpy(zero_copy_only=False).tobytes())
        else:
            digest.update(json.dumps(column.to_pylist()).encode())
    return digest.hexdigest()
