"""Results at rest: one Parquet file, its provenance and versions in the schema's metadata."""

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

FORMAT = "interverse-results-1"
_FORMAT, _VERSION, _PROVENANCE, _ROWS = (
    f"interverse.{name}".encode() for name in ("format", "version", "provenance", "rows")
)


def write(data: pa.Table, provenance: Mapping[str, Any], path: Path) -> Path:
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


def read(path: Path, *, any_version: bool) -> tuple[pa.Table, dict[str, Any]]:
    """Returns the table and provenance of a results file, or raises saying what is wrong."""
    if not path.is_file():
        raise InvalidValueError(
            explain(f"there is no file {str(path)!r}", fix="Name an evaluation's folder or file")
        )
    table = read_parquet(path)
    metadata = table.schema.metadata or {}
    _check_version(path, metadata, any_version=any_version)
    provenance = parse_json(metadata.get(_PROVENANCE, b"{}"), f"the provenance in {path}")
    if not isinstance(provenance, dict):
        raise FileFormatError(explain(f"the provenance in {path} is corrupt"))
    table = table.replace_schema_metadata(None)
    if metadata.get(_ROWS, b"").decode(errors="replace") not in ("", rows_hash(table)):
        raise FileFormatError(
            explain(
                f"the rows of {path} do not match their hash: they were changed by hand",
                fix="Make it again: a finished evaluation is not repeated, only what is missing",
            )
        )
    return table, provenance


def _check_version(path: Path, metadata: Mapping[bytes, bytes], *, any_version: bool) -> None:
    given = metadata.get(_FORMAT, b"").decode(errors="replace")
    if given != FORMAT:
        what = f"of the format {given!r}" if given else "a Parquet file, but not one of results"
        raise FileFormatError(explain(f"{path} is {what}", allowed=FORMAT))
    version = metadata.get(_VERSION, b"unknown").decode(errors="replace")
    if release(version) != release(__version__) and not any_version:
        raise FileFormatError(
            explain(
                f"{path} was made by interverse {version}, this is {__version__}, and their "
                "scores need not be comparable",
                fix="Evaluate again, or pass any_version=True to read it all the same",
            )
        )


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
        _add(digest, column)
    return digest.hexdigest()


def _add(digest: hashlib.blake2b, column: pa.Array) -> None:
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        digest.update(json.dumps(column.to_pylist()).encode())
        return
    digest.update(np.packbits(column.is_null().to_numpy(zero_copy_only=False)).tobytes())
    digest.update(pc.fill_null(column, 0).to_numpy(zero_copy_only=False).tobytes())
