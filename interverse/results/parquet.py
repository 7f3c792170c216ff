"""Results at rest: one Parquet file, its provenance and versions in the schema's metadata."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from interverse._version import __version__
from interverse.errors import FileFormatError, InvalidValueError, explain

FORMAT = "interverse-results-1"
_FORMAT, _VERSION, _PROVENANCE = (
    f"interverse.{name}".encode() for name in ("format", "version", "provenance")
)


def write(data: pa.Table, provenance: Mapping[str, Any], path: Path) -> Path:
    """Writes the file under a temporary name, then renames it: it is there whole or not at all.

    Holds no time stamp, so equal results give equal bytes.
    """
    metadata = {
        _FORMAT: FORMAT.encode(),
        _VERSION: __version__.encode(),
        _PROVENANCE: json.dumps(provenance, sort_keys=True).encode(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            pq.write_table(data.replace_schema_metadata(metadata), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, 0o644)  # mkstemp makes it the owner's alone
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    return path


def read(path: Path, *, any_version: bool) -> tuple[pa.Table, dict[str, Any]]:
    """Returns the table and provenance of a results file, or raises saying what is wrong."""
    if not path.is_file():
        raise InvalidValueError(
            explain(f"there is no file {str(path)!r}", fix="Name the .parquet file of the results")
        )
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise FileFormatError(
            explain(
                f"{path} is truncated or not a Parquet file ({_first_line(error)})",
                fix="Make it again: a finished evaluation is not repeated, only what is missing",
            )
        ) from None
    metadata = table.schema.metadata or {}
    _check_version(path, metadata, any_version=any_version)
    try:
        provenance = json.loads(metadata.get(_PROVENANCE, b"{}"))
    except ValueError as error:
        raise FileFormatError(explain(f"the provenance in {path} is corrupt ({error})")) from None
    return table.replace_schema_metadata(None), provenance


def _check_version(path: Path, metadata: Mapping[bytes, bytes], *, any_version: bool) -> None:
    given = metadata.get(_FORMAT, b"").decode(errors="replace")
    if given != FORMAT:
        what = f"of the format {given!r}" if given else "a Parquet file, but not one of results"
        raise FileFormatError(explain(f"{path} is {what}", allowed=FORMAT))
    version = metadata.get(_VERSION, b"unknown").decode(errors="replace")
    if version != __version__ and not any_version:
        raise FileFormatError(
            explain(
                f"{path} was made by interverse {version}, this is {__version__}, and their "
                "scores need not be comparable",
                fix="Evaluate again, or pass any_version=True to read it all the same",
            )
        )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
