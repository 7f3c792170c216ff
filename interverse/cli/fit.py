"""`interverse fit`: a world model from a world's id to one page."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from interverse.cli.evaluate import parse_pairs
from interverse.cli.json_output import print_json
from interverse.core.errors import InvalidValueError, explain
from interverse.fit.settings import FitRequest
from interverse.fit.states import FitStates, fit_states
from interverse.fit.world import FAMILIES, FitWorld, fit_world
from interverse.models.table import MODELS


@dataclass(frozen=True, kw_only=True)
class FitCommand(FitRequest):
    """What the library's `FitWorld` says, and how to print."""

    id: Annotated[str, tyro.conf.Positional]
    """A world of blocks or chemistry, such as blocks/observed-3-v1, for a model of its pictures; a
    world with continuous actions, such as tutorial/slider-v1, for a network on its states."""
    model: str | None = None
    """Of pictures: modular by default, or ae, vae, gnn, action_gnn, transformer, slot_transformer,
    learned_graph, lstm, rim, rssm or scoff."""
    loss: str | None = None
    """Of pictures: contrastive by default (nll for models that have no other), or jepa or nll."""
    pretrain_epochs: int | None = None
    """nll: epochs of its first stage, by far the dearest, if not as many."""
    finetune: bool = True
    """nll: whether encoder, decoder and transition train on together at the end."""
    device: str = "cpu"
    """cpu or cuda (pictures alone)."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as cpt_seed=2."""
    json: bool = False
    """Write all scores as one JSON document to standard output."""


_OF_PICTURES = ("model", "loss", "pretrain_epochs", "finetune", "device")
FitCommand.__doc__ = FitWorld.__doc__  # what --help teaches


def fit(config: FitCommand) -> dict[str, Any]:
    """Fits; the log goes to standard error, the summary's text to standard output."""
    settings = _settings(config)
    with redirect_stdout(sys.stderr):  # a world may print
        found = fit_world(settings) if isinstance(settings, FitWorld) else fit_states(settings)
    if config.json:
        print_json(found)
    elif found["complete"]:
        sys.stdout.write((Path(found["folder"]) / "summary.md").read_text())
    return found


def out_folder(config: FitCommand) -> Path:
    """Returns where everything goes if no folder is given."""
    return _settings(config).folder


def _settings(config: FitCommand) -> FitWorld | FitStates:
    shared: dict[str, Any] = {f.name: getattr(config, f.name) for f in fields(FitRequest)}
    shared["options"] = parse_pairs(config.option)
    if not config.id.startswith(FAMILIES):
        _check_states(config)
        return FitStates(**shared)
    given = {name: getattr(config, name) for name in _OF_PICTURES}
    if config.loss is None and config.model in MODELS:
        given["loss"] = MODELS[config.model].losses[0]
    return FitWorld(**shared, **{name: v for name, v in given.items() if v is not None})


def _check_states(config: FitCommand) -> None:
    """Raises if a flag is given that only models of pictures have."""
    for name in _OF_PICTURES:
        value = getattr(config, name)
        if value != getattr(FitCommand, name):
            flag = "--" + ("no-finetune" if name == "finetune" else name.replace("_", "-"))
            told = flag if name == "finetune" else f"{flag} {value}"
            raise InvalidValueError(
                explain(
                    f"{told} belongs to models of pictures, not to {config.id}",
                    allowed="blocks and chemistry",
                    fix=f"Leave {flag} out",
                )
            )
