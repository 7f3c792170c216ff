"""One row of the tables: a model, its loss and its world; and its results at rest, per seed."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, final

from interverse._version import __version__
from interverse.errors import InvalidValueError, explain
from interverse.models.checkpoint import read_json, write_json
from interverse.models.world_model import Loss

MODELS = ("ae", "gnn", "modular", "vae")
LOSSES: tuple[Loss, ...] = ("contrastive", "nll")
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "contrastive": {"Contrastive": "contrastive"},
    "nll": {"NLL": "transition", "NLL Finetuned": "finetune"},
}
"""By loss: the printed name of each result, and the training stage whose weights it has."""
_PACKAGES = ("gymnasium", "h5py", "numpy", "torch")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A model, its loss, its world."""

    world: str
    model: str
    loss: Loss

    @property
    def name(self) -> str:
        """For files and logs."""
        return f"{self.world.replace('/', '-')}.{self.model}.{self.loss}"

    @property
    def variants(self) -> Mapping[str, str]:
        """The printed name of each result, and the training stage whose weights it has."""
        return VARIANTS[self.loss]


def row_file(out: Path, name: str, seed: int) -> Path:
    """Returns where the results of a row and seed lie."""
    return out / "rows" / f"{name}.seed-{seed}.json"


def baselines_name(world: str) -> str:
    """Returns the name under which a world's baselines are kept, as `Row.name` is for models."""
    return f"{world.replace('/', '-')}.baselines"


def discovery_file(out: Path, world: str) -> Path:
    """Returns where a world's causal discovery lies, which has no seed."""
    return out / "rows" / f"{world.replace('/', '-')}.discovery.json"


@final
class Record:
    """The results of one row and seed: a JSON file that is complete after every change.

    Args:
        path: the file.
        asked: what decides the numbers; a file that was made otherwise is refused.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path = path
        self.content: dict[str, Any] = {**asked, "made_by": versions(), "scores": {}}
        if path.exists():
            self.content = read_json(path)
            _check_same(path, self.content, asked)

    def has(self, variant: str, kind: str) -> bool:
        """Whether a score is there."""
        return kind in self.content["scores"].get(variant, {})

    def put(self, variant: str, kind: str, score: Mapping[str, Any]) -> None:
        """Adds a score and writes the file."""
        self.content["scores"].setdefault(variant, {})[kind] = dict(score)
        self.write()

    def note(self, name: str, value: Any) -> None:
        """Adds something else worth knowing and writes the file."""
        self.content[name] = value
        self.write()

    def write(self) -> None:
        """Writes the file, all or nothing."""
        write_json(self.path, self.content)


def versions() -> dict[str, str]:
    """Returns what made a number, as far as names and versions tell."""
    found = {"interverse": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _check_same(path: Path, found: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raises if a record was made with other settings."""
    asked = json.loads(json.dumps(dict(asked)))
    other = {name: found.get(name) for name in asked if found.get(name) != asked[name]}
    if other:
        told = ", ".join(f"{name} was {value}" for name, value in other.items())
        raise InvalidValueError(
            explain(
                f"{path} was made with other settings: {told}",
                fix="Choose another folder with --out, or remove the file",
            )
        )
