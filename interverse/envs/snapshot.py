"""Snapshots: a moment of an environment as plain arrays, for memory, files, other processes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InterverseError, InvalidValueError
from interverse.core.files.json_text import parse_json, plain
from interverse.core.files.zip_archive import read_npz
from interverse.core.type_checks import blames_types
from interverse.worlds.world import Index, WorldOptions, changed_options, parse_options

DRIVER_PREFIX = "driver/"  # of the driver's own arrays in a snapshot
DRIVER_ARRAYS = ("seeds", "episodes", "steps", "ended")  # the last: in the last step
_NOT_SHAPING = ("threads", "device", "contacts", "constraints")  # options that change no result
_FORMAT = "interverse-snapshot-1"
_EDITED = "model/"  # a simulator's fields, of which only those that were ever edited are saved
_HEADER = "__header__"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Physics, model edits, task memory, noise address and counters of N worlds."""

    id: str
    options: str  # JSON of the options that shape the world
    arrays: Mapping[str, NDArray[Any]]  # name -> (N, ...)

    @property
    def num_worlds(self) -> int:
        """How many worlds it holds."""
        return len(next(iter(self.arrays.values()))) if self.arrays else 0

    def to_bytes(self) -> bytes:
        """Returns the snapshot as bytes (an npz archive without pickles)."""
        header = json.dumps({"format": _FORMAT, "id": self.id, "options": self.options})
        buffer = io.BytesIO()
        stored = {_HEADER: np.frombuffer(header.encode(), dtype=np.uint8), **self.arrays}
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, array in sorted(stored.items()):
                part = io.BytesIO()
                np.lib.format.write_array(part, np.asarray(array), allow_pickle=False)
                # An entry without a date: equal moments give equal bytes at any time.
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue())
        return buffer.getvalue()

    @classmethod
    @blames_types
    def from_bytes(cls, data: bytes) -> Snapshot:
        """Returns the snapshot that `to_bytes` wrote; anything else raises FileFormatError."""
        try:
            arrays = read_npz(bytes(data), "the snapshot")
            header = parse_json(arrays.pop(_HEADER).tobytes(), "its header")
            if header["format"] != _FORMAT:
                raise ValueError(f"format {header['format']!r}")
            if not (isinstance(header["id"], str) and isinstance(header["options"], str)):
                raise ValueError("its header has no id and options")
            if not arrays or len({array.shape[:1] for array in arrays.values()} | {()}) != 2:
                raise ValueError("its arrays are not of one number of worlds")
            return cls(header["id"], header["options"], arrays)
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(
                f"not a snapshot ({len(data)} bytes): {error}",
                allowed=_FORMAT,
                fix="Pass the bytes that Snapshot.to_bytes returned",
            ) from error

    @staticmethod
    def check(given: object, *, world_id: str, options: WorldOptions) -> None:
        """Raises unless this is a snapshot of a world of that id and those options."""
        if not isinstance(given, Snapshot):
            raise InvalidValueError(
                f"a snapshot cannot be a {type(given).__name__}",
                allowed="what snapshot() or Snapshot.from_bytes returned",
            )
        for name, mine, theirs in (
            ("id", given.id, world_id),
            ("options", given.options, shaping_options(options)),
        ):
            if mine != theirs and not (name == "options" and _same_options(mine, options)):
                raise InvalidValueError(
                    f"the snapshot's {name} is {mine}, this environment's is {theirs}",
                    fix="Restore it in an environment made with the same id and options",
                )

    def rows_for(
        self, index: Index, num_worlds: int, *, like: Mapping[str, Any] | None
    ) -> dict[str, NDArray[Any]]:
        """Returns the rows for some worlds, or raises if they cannot be those of such worlds.

        Names and shapes must be those of the state that these worlds have now (`like`), if any.
        """
        held = self.num_worlds
        if held not in (1, num_worlds, len(index)):
            raise InvalidValueError(
                f"the snapshot holds {held} worlds, {len(index)} are selected",
                allowed=" or ".join(map(str, sorted({1, len(index), num_worlds}))),
                fix="Select as many worlds as it holds, or make an environment with as many",
            )
        rows = np.zeros_like(index) if held == 1 else index if held == num_worlds else range(held)
        lengths = {len(np.atleast_1d(value)) for value in self.arrays.values()}
        if lengths != {held}:
            raise Snapshot.misfit(f"its arrays have {sorted(lengths)} rows")
        out = {name: np.asarray(value)[rows] for name, value in self.arrays.items()}
        # Arrays are missing or, where those of the world are known, unknown. One of the two moments
        # may have edited fields of the model that the other has not.
        known, wanted = like or {}, {DRIVER_PREFIX + name for name in DRIVER_ARRAYS}
        strange = (wanted | known.keys()) - out.keys()
        if like is not None:
            strange |= out.keys() - wanted - known.keys()
        if strange := {name for name in strange if not name.startswith(_EDITED)}:
            raise Snapshot.misfit(f"{', '.join(sorted(strange)[:5])} missing or unknown")
        for name in DRIVER_ARRAYS:
            array, kind = out[DRIVER_PREFIX + name], "b" if name == "ended" else "i"
            whole = array.shape == (len(rows),) and array.dtype.kind == kind
            if not whole or (kind == "i" and np.any(array < 0)):
                told = "true or false" if kind == "b" else "whole numbers from 0"
                raise Snapshot.misfit(f"{name} must be {told}, one per world")
        for name, now in known.items():
            if name in out and out[name].shape[1:] != tuple(now.shape[1:]):
                raise Snapshot.misfit(f"{name} has shape {out[name].shape[1:]}")
        return out

    @staticmethod
    def misfit(problem: object) -> InvalidValueError:
        """Returns the error for a snapshot whose arrays are not those of its world."""
        return InvalidValueError(
            f"the snapshot does not fit its world: {problem}",
            allowed="what snapshot() or Snapshot.from_bytes returned",
        )


def shaping_options(options: WorldOptions) -> str:
    """Returns the options that shape a world, as JSON."""
    shaping = {k: v for k, v in changed_options(options).items() if k not in _NOT_SHAPING}
    return json.dumps(plain(shaping, _named), sort_keys=True)


def _same_options(text: str, options: WorldOptions) -> bool:
    """Returns whether options at rest mean those of a world, written in another way."""
    mine = json.loads(shaping_options(options))
    try:
        theirs = parse_json(text, "the options")
        return bool(
            theirs == mine
            or json.loads(shaping_options(parse_options(type(options), theirs))) == mine
        )
    except (InterverseError, ValueError, TypeError):
        return False


def _named(value: Any) -> str:
    """Returns what stands for a value that JSON has not: a function's name, or the text."""
    return getattr(value, "__qualname__", repr(value)) if callable(value) else str(value)
