"""One row of the tables: a model, its loss and its world; and its results at rest, per seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from interverse.benchmarks.causalmbrl.provenance import versions
from interverse.core.errors import InvalidValueError, explain
from interverse.models.checkpoint import read_json, write_json
from interverse.models.world_model import Loss

MODELS = ("ae", "gnn", "modular", "vae")
LOSSES: tuple[Loss, ...] = ("contrastive", "nll")
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "contrastive": {"Contrastive": "contrastive"},
    "nll": {"NLL": "transition", "NLL Finetuned": "finetune"},
}
"""By loss: the printed name of each result, and the training stage whose weights it has."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbrlRow:
    """A model, its loss, its world, and in chemistry the draw of the world's mechanisms."""

    world: str
    model: str
    loss: Loss
    cpt_seed: int = 0

    @property
    def name(self) -> str:
        """For files and logs."""
        return f"{world_name(self.world, self.cpt_seed)}.{self.model}.{self.loss}"

    @property
    def options(self) -> dict[str, int]:
        """Options of its world."""
        return {"cpt_seed": self.cpt_seed} if self.world.startswith("chemistry/") else {}

    @property
    def variants(self) -> Mapping[str, str]:
        """The printed name of each result, and the training stage whose weights it has."""
        return VARIANTS[self.loss]


def world_name(world: str, cpt_seed: int = 0) -> str:
    """Returns a world's name in files and logs; chemistry's has the draw of its mechanisms.

    >>> world_name("chemistry/chain-v1", 2), world_name("blocks/observed-3-v1")
    ('chemistry-chain-v1.draw-2', 'blocks-observed-3-v1')
    """
    draw = f".draw-{cpt_seed}" if world.startswith("chemistry/") else ""
    return world.replace("/", "-") + draw


def row_file(out: Path, name: str, seed: int) -> Path:
    """Returns where the results of a row and seed lie."""
    return out / "rows" / f"{name}.seed-{seed}.json"


def baselines_name(world: str, cpt_seed: int = 0) -> str:
    """Returns the name under which a world's baselines are kept, like `MbrlRow.name`."""
    return f"{world_name(world, cpt_seed)}.baselines"


def discovery_file(out: Path, world: str, cpt_seed: int = 0) -> Path:
    """Returns where a world's causal discovery lies, which has no seed."""
    return out / "rows" / f"{world_name(world, cpt_seed)}.discovery.json"


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

    def made_by_run(self, run: Mapping[str, Any]) -> None:
        """Adds the run (commit, command, device) that the next scores come from, once."""
        runs = self.content.setdefault("runs", [])
        if dict(run) not in runs:
            runs.append(dict(run))

    def trained_as(self, training: Mapping[str, Any]) -> None:
        """Notes the training that the scores are of; scores of another training are dropped."""
        if self.content.get("training", training) != training:
            self.content["scores"] = {}
        self.content["training"] = dict(training)

    def note(self, name: str, value: Any) -> None:
        """Adds something else worth knowing and writes the file."""
        self.content[name] = value
        self.write()

    def write(self) -> None:
        """Writes the file, all or nothing."""
        write_json(self.path, self.content)


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
