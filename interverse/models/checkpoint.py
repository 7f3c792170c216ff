"""Training at rest: weights as safetensors, everything else as JSON, written all or nothing.

A progress record names the one tensor file it belongs to; the record is replaced last, so a run
killed at any moment finds a record and a file that fit together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from torch import Tensor

from interverse._version import __version__
from interverse.core.errors import FileFormatError, InvalidValueError, explain
from interverse.core.files.atomic import make_folder, write_text
from interverse.core.files.json_text import read_json_object
from interverse.core.files.tensor_files import read_safetensors, write_safetensors

RECORD = "progress.json"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is.

    Attributes:
        run: what was asked for; another run in the same folder is refused.
        stage: number of the stage in work; the number of stages when all are done.
        epoch: epochs of it that are done.
        best: lowest validation loss so far in this stage, per member.
        history: one row per epoch.
        tensors: weights, best weights and optimiser state by name.
    """

    run: Mapping[str, Any]
    stage: int
    epoch: int
    best: tuple[float, ...]
    history: tuple[Mapping[str, Any], ...]
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


def save(folder: Path, progress: Progress) -> None:
    """Writes a progress record; the one before it stays valid until this one is complete."""
    make_folder(folder)
    name = f"progress-{progress.stage}-{progress.epoch}.safetensors"
    write_tensors(folder / name, progress.tensors)
    record = {
        "version": __version__,
        "run": dict(progress.run),
        "stage": progress.stage,
        "epoch": progress.epoch,
        "best": [value if math.isfinite(value) else None for value in progress.best],
        "history": [dict(row) for row in progress.history],
        "tensors": name,
    }
    write_json(folder / RECORD, record)
    for old in folder.glob("progress-*.safetensors"):
        if old.name != name:
            old.unlink()


def load(folder: Path, run: Mapping[str, Any]) -> Progress | None:
    """Returns the progress of this run, or None where there is none yet."""
    path = folder / RECORD
    if not path.exists():
        return None
    record = read_json(path)
    try:
        if record["run"] != json.loads(json.dumps(dict(run))):
            raise InvalidValueError(
                f"{folder} holds the progress of another run: {_differences(record, run)}",
                fix="Choose another folder, or remove this one to start again",
            )
        return Progress(
            run=run,
            stage=record["stage"],
            epoch=record["epoch"],
            best=tuple(record["best"]),
            history=tuple(record["history"]),
            tensors=read_tensors(folder / record["tensors"]),
        )
    except KeyError as error:
        raise FileFormatError(explain(f"{path} has no field {error}")) from error


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes tensors to a file that appears complete or not at all."""
    write_safetensors(path, {name: tensor.detach().cpu() for name, tensor in tensors.items()})


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Returns the tensors of a file."""
    try:
        return read_safetensors(path)
    except (FileFormatError, OSError) as error:
        raise FileFormatError(
            f"{path} cannot be read as safetensors: {error}", fix="Train again"
        ) from error


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Writes a JSON document that appears complete or not at all."""
    write_text(path, json.dumps(record, indent=1))


def read_json(path: Path) -> dict[str, Any]:
    """Returns a JSON document."""
    try:
        return read_json_object(path)
    except (ValueError, OSError) as error:
        raise FileFormatError(explain(f"{path} cannot be read as JSON: {error}")) from error


def _differences(record: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Returns each value that differs, by its path, with what it was and is."""
    old, new = (_leaves(one) for one in (record["run"], json.loads(json.dumps(dict(run)))))
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return ", ".join(f"{name} was {old.get(name)}, is {new.get(name)}" for name in names)


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {path: value}
    parts = (_leaves(v, f"{path}/{k}" if path else k) for k, v in value.items())
    return {name: leaf for part in parts for name, leaf in part.items()}
