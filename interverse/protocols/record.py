"""The files of an evaluation, and the index of their hashes."""

from __future__ import annotations

from pathlib import Path

from interverse.core.errors import FileFormatError
from interverse.core.files.atomic import file_hash, write_json
from interverse.core.files.json_text import read_json_object

RUN_FILE, INDEX_FILE = "run.json", "index.json"
_UNITS = "units"


def add_to_index(unit: Path) -> None:
    """Writes down the hash of a finished unit's file."""
    folder = unit.parent.parent
    index = read_index(folder)
    index[f"{_UNITS}/{unit.name}"] = file_hash(unit)
    write_json(folder / INDEX_FILE, index)


def write_index(folder: Path) -> None:
    """Writes down the hashes of everything that a finished evaluation holds."""
    files = [folder / RUN_FILE, *folder.glob("*.parquet"), *(folder / _UNITS).glob("*.parquet")]
    index = {file.relative_to(folder).as_posix(): file_hash(file) for file in sorted(files)}
    write_json(folder / INDEX_FILE, index)


def read_index(folder: Path) -> dict[str, str]:
    """Returns path -> hash of a folder's files; a folder without an index gives none."""
    file = folder / INDEX_FILE
    if not file.exists():
        return {}
    index = read_json_object(file)
    if not all(isinstance(value, str) for value in index.values()):
        raise FileFormatError(f"{file} is no index of hashes", fix="Delete it")
    return index


def check_indexed(unit: Path) -> None:
    """Raises if a unit's file is not the one that was written: its hash stands in the index.

    A unit that a killed run wrote and did not come to index is checked by the hash in its rows.
    """
    known = read_index(unit.parent.parent).get(f"{_UNITS}/{unit.name}")
    if known is not None and known != file_hash(unit):
        raise FileFormatError(
            f"{unit.name} was changed after it was written", fix="It is played again"
        )
