"""`interverse fit`: a world model from a world's id to one page."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from interverse.benchmarks.causalmbrl.fit_states import FitStates, fit_states
from interverse.benchmarks.causalmbrl.fit_world import FAMILIES, FitBudget, FitWorld, fit_world
from interverse.cli.evaluate import parse_pairs
from interverse.core.errors import InvalidValueError, explain
from interverse.models.table import MODELS


@dataclass(frozen=True, kw_only=True)
class FitCommand:
    """What the library's `FitWorld` says, and how to print."""

    id: Annotated[str, tyro.conf.Positional]
    """A world of blocks or chemistry, such as blocks/observed-3-v1, for a model of its pictures; a
    world with continuous actions, such as tutorial/slider-v1, for a network on its states."""
    model: str | None = None
    """Of pictures: modular by default, or ae, vae, gnn, action_gnn, transformer, slot_transformer,
    learned_graph, lstm, rim, rssm or scoff."""
    loss: str | None = None
    """Of pictures: contrastive by default (nll for models that have no other), or jepa or nll."""
    budget: FitBudget = "smoke"
    """smoke: a minute or two on two cores. reduced: a fifth of the published data, a small encoder.
    full: the published sizes, for a GPU."""
    seeds: int = 1
    """Seeds 1 to N."""
    epochs: int | None = None
    """Epochs per stage, if not the budget's."""
    pretrain_epochs: int | None = None
    """nll: epochs of its first stage, by far the dearest, if not as many."""
    finetune: bool = True
    """nll: whether encoder, decoder and transition train on together at the end."""
    device: str = "cpu"
    """cpu or cuda (pictures alone)."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as cpt_seed=2."""
    time_limit: float | None = None
    """Stop cleanly after so many seconds; the same command then goes on."""
    out: Path | None = None
    """Folder for everything; by default runs/fit/ID.MODEL.LOSS.BUDGET (states:
    runs/fit/ID.network.BUDGET)."""
    json: bool = False
    """Write all scores as one JSON document to standard output."""


FitCommand.__doc__ = FitWorld.__doc__  # what --help teaches


def fit(config: FitCommand) -> dict[str, Any]:
    """Fits; the log goes to standard error, the summary's text to standard output."""
    settings = _settings(config)
    found = fit_world(settings) if isinstance(settings, FitWorld) else fit_states(settings)
    if config.json:
        sys.stdout.write(json_module.dumps(found, indent=1) + "\n")
    elif found["complete"]:
        sys.stdout.write((Path(found["folder"]) / "summary.md").read_text())
    return found


def out_folder(config: FitCommand) -> Path:
    """Returns where everything goes if no folder is given."""
    return _settings(config).folder


def _settings(config: FitCommand) -> FitWorld | FitStates:
    skipped = ("option", "json")
    given = {f.name: getattr(config, f.name) for f in fields(config) if f.name not in skipped}
    asked = {name: value for name, value in given.items() if value is not None}
    options = parse_pairs(config.option)
    if config.id.startswith(FAMILIES):
        if config.loss is None and config.model in MODELS:
            asked["loss"] = MODELS[config.model].losses[0]
        return FitWorld(**asked, options=options)
    for name in ("model", "loss", "pretrain_epochs", "finetune", "device"):
        if given[name] != getattr(FitCommand, name):
            flag = "--" + ("no-finetune" if name == "finetune" else name.replace("_", "-"))
            told = flag if name == "finetune" else f"{flag} {given[name]}"
            raise InvalidValueError(
                explain(
                    f"{told} belongs to models of pictures, not to {config.id}",
                    allowed="blocks and chemistry",
                    fix=f"Leave {flag} out",
                )
            )
        asked.pop(name, None)
    return FitStates(**asked, options=options)
