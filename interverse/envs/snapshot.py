"""A moment of an environment as plain arrays: to memory, to bytes, to another process."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.errors import FileFormatError, InvalidValueError, explain
from interverse.files.json_text import parse_json
from interverse.files.npz import read_npz

_FORMAT = "interverse-snapshot-1"
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
        return len(next(iter(self.arrays.values())))

    def to_bytes(self) -> bytes:
        """Returns the snapshot as bytes (an npz archive without pickles)."""
        header = json.dumps({"format": _FORMAT, "id": self.id, "options": self.options})
        buffer = io.BytesIO()
        stored = {_HEADER: np.frombuffer(header.encode(), dtype=np.uint8), **self.arrays}
        np.savez(buffer, allow_pickle=False, **stored)  # type: ignore[arg-type]
        return buffer.getvalue()

    @classmethod
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
                explain(
                    f"not a snapshot ({len(data)} bytes): {error}",
                    allowed=_FORMAT,
                    fix="Pass the bytes that Snapshot.to_bytes returned",
                )
            ) from error

    def check_fits(self, *, world_id: str, options: str) -> None:
        """Raises unless this snapshot belongs to a world of that id and those options."""
        for name, mine, theirs in (
            ("id", self.id, world_id),
            ("options", self.options, options),
        ):
            if mine != theirs:
                raise InvalidValueError(
                    explain(
                        f"the snapshot's {name} is {mine}, this environment's is {theirs}",
                        fix="Restore it in an environment made with the same id and options",
                    )
                )
