"""Checkpoints of a run: two generations on the disk, each with the hashes of all its files.

A generation is a record (JSON), tensors (safetensors) and files that its run wrote before. Nothing
is unpickled, so nothing in a checkpoint can run code.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from interverse.core.errors import FileFormatError, explain
from interverse.core.files.atomic import atomic, file_hash, make_folder, remove_stale
from interverse.core.files.json_text import read_json_object

if TYPE_CHECKING:
    from torch import Tensor

_KEPT = 2  # generations
_RECORDS = "generation-*.json"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """All that a run needs to go on as if it had never stopped.

    Attributes:
        step: how far the run was.
        record: what JSON holds; NumPy arrays and numbers come back as lists and plain numbers.
        tensors: by name.
        files: names of files in the checkpoints' folder that belong to it, written before.
    """

    step: int
    record: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    files: tuple[str, ...] = ()


@final
class Checkpoints:
    """The checkpoints in a folder.

    Attributes:
        folder: where they are; a run may write files of its own here and name them in a checkpoint.
        told: what was wrong with a newer checkpoint than the one that `load` returned, or empty.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.told = folder, ""
        self._hashes: dict[str, str] = {}  # of files that are never written again
        self._damaged: set[int] = set()

    def save(self, checkpoint: Checkpoint) -> None:
        """Writes a checkpoint; the one before it stays, older ones go.

        Its record is written last, and each file is on the disk before it has its name: a run that
        is killed, or whose machine is, finds a whole one.
        """
        from interverse.core.files.tensor_files import write_safetensors  # loads Torch

        make_folder(self.folder)
        remove_stale(self.folder)
        number = 1 + max(self._numbers(), default=0)
        before = sorted({*self._numbers()} - self._damaged)
        tensors = f"generation-{number}.safetensors"
        on_host = {name: t.detach().cpu() for name, t in checkpoint.tensors.items()}
        write_safetensors(self.folder / tensors, on_host, durable=True)
        self._hashes |= {
            n: file_hash(self.folder / n) for n in {*checkpoint.files} - {*self._hashes}
        }
        held = {
            "step": checkpoint.step,
            "record": dict(checkpoint.record),
            "tensors": tensors,
            "files": {name: self._hashes[name] for name in checkpoint.files}
            | {tensors: file_hash(self.folder / tensors)},
        }
        held = json.loads(json.dumps(held, default=_plain))  # what a reader will find
        with atomic(self.folder / f"generation-{number}.json", durable=True) as partial:
            partial.write_text(json.dumps({"hash": _signature(held), **held}))
        kept = [number, *before[1 - _KEPT :]]
        self._remove_all_but(kept, {*checkpoint.files})

    def load(self) -> Checkpoint | None:
        """Returns the newest whole checkpoint, None where there is none yet.

        Where the newest is damaged it is the one before, and `told` says so.

        Raises:
            FileFormatError: if all are damaged.
        """
        problems = []
        for number in sorted(self._numbers(), reverse=True):
            try:
                found = self._read(number)
            except (FileFormatError, OSError, KeyError, TypeError) as error:
                problems.append(str(error).rstrip("."))
                self._damaged.add(number)
                continue
            if problems:
                self.told = explain(
                    f"a checkpoint in {self.folder} is damaged ({'; '.join(problems)})",
                    fix=f"Going on from the one before, at step {found.step:,}",
                )
            return found
        if not problems:
            return None
        raise FileFormatError(
            f"every checkpoint in {self.folder} is damaged ({'; '.join(problems)})",
            fix="Delete the folder to start the run afresh",
        )

    def clear(self) -> None:
        """Removes all checkpoints, with the files that belong to them."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._hashes.clear()

    def _numbers(self) -> list[int]:
        names = [path.stem.rpartition("-")[2] for path in self.folder.glob(_RECORDS)]
        return [int(name) for name in names if name.isdigit()]

    def _read(self, number: int) -> Checkpoint:
        from interverse.core.files.tensor_files import read_safetensors  # loads Torch

        file = self.folder / f"generation-{number}.json"
        held = read_json_object(file)
        if held.pop("hash", None) != _signature(held):
            raise FileFormatError(f"{file.name} is not what was written")
        for name, wanted in held["files"].items():
            if file_hash(self.folder / name) != wanted:
                raise FileFormatError(f"{name} is not what was written")
        tensors = read_safetensors(self.folder / held["tensors"])
        files = {name: sum_ for name, sum_ in held["files"].items() if name != held["tensors"]}
        self._hashes |= files
        return Checkpoint(
            step=held["step"], record=held["record"], tensors=tensors, files=tuple(files)
        )

    def _remove_all_but(self, numbers: Iterable[int], files: set[str]) -> None:
        """Removes what belongs to none of these generations, whose newest has these files."""
        keep = set(files)
        for number in numbers:
            keep |= {f"generation-{number}.json", f"generation-{number}.safetensors"}
            try:
                keep |= {*read_json_object(self.folder / f"generation-{number}.json")["files"]}
            except (FileFormatError, KeyError):
                continue  # damaged since: what it had beside its tensors may go
        for path in self.folder.iterdir():
            if path.is_file() and path.name not in keep:
                path.unlink()
                self._hashes.pop(path.name, None)


def _signature(held: Mapping[str, Any]) -> str:
    """Returns a hash of a record's content, however it is spaced."""
    text = json.dumps(held, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    """Returns NumPy's numbers and arrays as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a checkpoint's record holds a {type(value).__name__}")
