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
from interverse.fit.own import FitOwn, fit_own
from interverse.fit.settings import FitRequest, ModelRequest
from interverse.fit.states import FitStates, fit_states
from interverse.fit.world import FitWorld, fit_world
from interverse.scoring.grid import FAMILIES


@dataclass(frozen=True, kw_only=True)
class FitCommand(ModelRequest):
    """What the library's `FitWorld` says, and how to print."""

    id: Annotated[str, tyro.conf.Positional]
    """A world of blocks or chemistry, such as blocks/observed-3-v1, for a model of its pictures; a
    world with continuous actions, such as tutorial/slider-v1, for a network on its states."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as cpt_seed=2."""
    json: bool = False
    """Write all scores as one JSON document to standard output."""


_SHARED = {item.name for item in fields(FitRequest)}
_OF_PICTURES = [item.name for item in fields(ModelRequest) if item.name not in _SHARED]
_OF_OWN = ("model", "device", "batch_size", "learning_rate")
FitCommand.__doc__ = FitWorld.__doc__  # what --help teaches


def fit(config: FitCommand) -> dict[str, Any]:
    """Fits; the log goes to standard error, the summary's text to standard output."""
    settings = _settings(config)
    with redirect_stdout(sys.stderr):  # a world may print
        if isinstance(settings, FitWorld):
            found = fit_world(settings)
        elif isinstance(settings, FitOwn):
            found = fit_own(settings)
        else:
            found = fit_states(settings)
    if config.json:
        print_json(found)
    elif found["complete"]:
        sys.stdout.write((Path(found["folder"]) / "summary.md").read_text())
    return found


def out_folder(config: FitCommand) -> Path:
    """Returns where everything goes if no folder is given."""
    return _settings(config).folder


def _settings(config: FitCommand) -> FitWorld | FitStates | FitOwn:
    shared: dict[str, Any] = {name: getattr(config, name) for name in _SHARED}
    shared["options"] = parse_pairs(config.option)
    usual = {item.name: item.default for item in fields(ModelRequest)}
    given = {n: getattr(config, n) for n in _OF_PICTURES if getattr(config, n) != usual[n]}
    if config.model is not None and ":" in config.model:
        _check_flags(given, _OF_OWN, f"this library's models, not to {config.model}")
        return FitOwn(**shared, **given)
    if not config.id.startswith(FAMILIES):
        _check_flags(given, (), f"models of pictures, not to {config.id}")
        return FitStates(**shared)
    return FitWorld(**shared, **given)


def _check_flags(given: dict[str, Any], known: tuple[str, ...], owner: str) -> None:
    """Raises if a flag is given that has no use."""
    for name, value in given.items():
        if name not in known:
            flag = "--" + ("no-finetune" if name == "finetune" else name.replace("_", "-"))
            told = flag if name == "finetune" else f"{flag} {value}"
            raise InvalidValueError(
                explain(
                    f"{told} belongs to {owner}",
                    allowed=", ".join(f"--{one.replace('_', '-')}" for one in known)
                    or "blocks and chemistry",
                    fix=f"Leave {flag} out",
                )
            )
