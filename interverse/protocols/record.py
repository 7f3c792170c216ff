"""The record of an evaluation, to tell it from others and to play it again, and its index."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interverse.core.errors import FileFormatError
from interverse.core.files.atomic import file_hash, write_json
from interverse.core.files.json_text import plain, read_json_object
from interverse.protocols.protocol import Protocol

# written where they are set
_SPECIAL = ("everything", "grid", "paired", "options", "ranges", "by_name", "legacy")


def describe(protocol: Protocol) -> dict[str, Any]:
    """Returns a protocol as JSON; `protocol_from` reads it."""
    usual = {"variables": dict(protocol.variables), "at": list(protocol.at)}
    out: dict[str, Any] = {**usual, "note": protocol.note}
    out |= {n: plain(getattr(protocol, n)) for n in _SPECIAL if getattr(protocol, n)}
    if protocol.everything is not None:
        out["without"] = list(protocol.without)
    if len(protocol.grid) > 1:  # JSON sorts names, and the order says which one runs fastest
        out["grid_order"] = list(protocol.grid)
    return out


def protocol_from(name: str, described: Mapping[str, Any]) -> Protocol:
    """Returns the protocol that `describe` described.

    >>> gusts = Protocol(name="gusts", variables={"push": "B"}, at=(0, 25))
    >>> protocol_from("gusts", describe(gusts)) == gusts
    True
    """
    given = dict(described)
    order = given.pop("grid_order", list(given.get("grid", {})))
    if len(order) > 1 and "grid_order" not in described:
        raise FileFormatError(
            f"the results do not hold the order of the grid of {name}", fix="Evaluate again"
        )
    if order:
        given["grid"] = {variable: given["grid"][variable] for variable in order}
    for key in ("at", "without"):
        if key in given:
            given[key] = tuple(given[key])
    ranges = given.get("ranges", {}).items()
    given["ranges"] = {n: {int(k): tuple(ends) for k, ends in p.items()} for n, p in ranges}
    return Protocol(name=name, **given)


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
