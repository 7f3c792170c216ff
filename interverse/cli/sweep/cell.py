"""One cell of a sweep: its folder, trained and scored, and a record of what it holds.

The folder is that of `interverse train --out`, with `scores/` as `interverse evaluate --out` writes
it. `finished.json` is written last and holds the hashes of the policy and of the scores.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interverse.cli.sweep.plan import SweepCell
from interverse.cli.train import training
from interverse.core.code import claim_file
from interverse.core.errors import FileFormatError
from interverse.core.files.atomic import remove_stale, scratch_folder, write_bytes, write_json
from interverse.core.files.json_text import read_json_object
from interverse.protocols.evaluate import RESULT_FILE, evaluate
from interverse.protocols.folder import file_hash
from interverse.rollouts.policy import load_policy
from interverse.worlds.own_code import own_code

CELL_FILE, FINISHED_FILE, FAILED_FILE = "cell.json", "finished.json", "failed.json"
SCORES = "scores"
_KEPT = ("policy/*", f"{SCORES}/{RESULT_FILE}", f"{SCORES}/index.json")


def claim(cell: SweepCell, folder: Path, *, allow_other_code: bool) -> None:
    """Marks a folder as the cell's, or raises if it was begun as another or by other code."""
    code = own_code(cell.task, training(cell.command(folder))[0].options)
    identity = {"train": list(cell.train), "evaluate": list(cell.evaluate), "code": code}
    claim_file(folder / CELL_FILE, identity, "cell", allow_other_code=allow_other_code)


def run_cell(cell: SweepCell, folder: Path, *, allow_other_code: bool = False) -> None:
    """Trains, scores and records a cell, from wherever its folder stands."""
    remove_stale(folder)
    fresh = not (folder / "train.json").exists()
    started = time.monotonic()
    settings, train = training(cell.command(folder, allow_other_code=allow_other_code))
    policy = train(settings, progress=False)
    trained = time.monotonic()
    evaluate(
        load_policy(policy),  # by content: where it lies must not be part of the scores
        cell.task,
        out=folder / SCORES,
        experiment=cell.experiment,
        allow_other_code=allow_other_code,
        **cell.evaluation(),
    )
    seconds = [trained - started, time.monotonic() - trained] if fresh else None
    write_json(folder / FINISHED_FILE, {"files": _hashes(folder), "seconds": seconds})
    (folder / FAILED_FILE).unlink(missing_ok=True)


def run_elsewhere(cell: SweepCell, _shared: None) -> dict[str, bytes] | str:
    """Returns the files of a cell that was run in a folder of this machine, or its error."""
    with scratch_folder() as folder:
        try:
            run_cell(cell, folder)
        except Exception as error:  # the other cells go on
            return describe(error)
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != ".lock"
        }


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes the files of a cell that was run elsewhere; the record that makes them count last."""
    for name in sorted(files, key=lambda name: name == FINISHED_FILE):
        write_bytes(folder / name, files[name])
    (folder / FAILED_FILE).unlink(missing_ok=True)


def describe(error: Exception) -> str:
    """Returns an error as the record of a failed cell has it."""
    return f"{type(error).__name__}: {error}"


def is_finished(folder: Path) -> bool:
    """Returns whether a folder holds what its record says: its files are compared by content."""
    held = read_record(folder)
    return held is not None and bool(held.get("files")) and held.get("files") == _hashes(folder)


def read_record(folder: Path) -> dict[str, Any] | None:
    """Returns the record of a finished cell; None if there is none, or a torn one."""
    try:
        return read_json_object(folder / FINISHED_FILE)
    except (FileNotFoundError, FileFormatError):
        return None


def _hashes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): file_hash(path)
        for pattern in _KEPT
        for path in sorted(folder.glob(pattern))
    }
