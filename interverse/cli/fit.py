"""`interverse fit`: a world model from a world's id to one page; `score`: a model of one's own."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from interverse.cli.flags import AsJson, OptionWords, parse_pairs, tell
from interverse.core.errors import InvalidValueError
from interverse.fit.settings import FitRequest, ModelRequest
from interverse.fit.states import FitStates, fit_states
from interverse.fit.world import FitOwn, FitWorld, fit_own, fit_world
from interverse.scoring.grid import FAMILIES
from interverse.scoring.outside import build_model
from interverse.scoring.world_model import ScoreBudget, WorldModelScores, score_world_model


@dataclass(frozen=True, kw_only=True)
class FitCommand(ModelRequest):
    """What the library's `FitWorld` says, and how to print."""

    id: Annotated[str, tyro.conf.Positional]
    """A world of blocks or chemistry, such as blocks/observed-3-v1, for a model of its pictures; a
    world with continuous actions, such as tutorial/slider-v1, for a network on its states."""
    option: OptionWords = ()
    json: AsJson = False

    def usual_out(self) -> Path:
        """Returns where everything goes if no folder is given."""
        return _settings(self).folder


_SHARED = {item.name for item in fields(FitRequest)}
_OF_PICTURES = [item.name for item in fields(ModelRequest) if item.name not in _SHARED]
_OF_OWN = ("model", "device", "batch_size", "learning_rate")
FitCommand.__doc__ = FitWorld.__doc__  # what --help teaches


def fit(config: FitCommand) -> dict[str, Any]:
    """Fits; the log goes to standard error, the summary's text to standard output."""
    settings = _settings(config)
    if isinstance(settings, FitWorld):
        found = fit_world(settings)
    elif isinstance(settings, FitOwn):
        found = fit_own(settings)
    else:
        found = fit_states(settings)
    lines = []
    if found["complete"]:
        lines = (Path(found["folder"]) / "summary.md").read_text().splitlines()
    tell(config, found, *(line for line in lines if not line.startswith("![")))
    return found


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
                f"{told} belongs to {owner}",
                allowed=", ".join(f"--{one.replace('_', '-')}" for one in known)
                or "blocks and chemistry",
                fix=f"Leave {flag} out",
            )


@dataclass(frozen=True, kw_only=True)
class Score:
    """Scores a world model of your own: prediction, causes, planning, beside their yardsticks.

    A model has two methods, encode(observations) and rollout(latents, actions):

      interverse new model my_model

      interverse fit blocks/observed-3-v1 --model my_model:Own --out runs/own

      interverse score my_model:Own blocks/observed-3-v1 --weights runs/own/model.safetensors
    """

    model: Annotated[str, tyro.conf.Positional]
    """MODULE:BUILD: a model, or what builds one; it is given those of id, observation_shape,
    actions and objects that it asks for by name."""
    id: Annotated[str, tyro.conf.Positional]
    """A world's id."""
    weights: Path | None = None
    """A safetensors file of a Torch module's weights."""
    seed: int = 0
    """Of the test's episodes, and of what is trained on the model's latents."""
    budget: ScoreBudget = "small"
    """small: about a minute of one core. full: intervals a third as wide."""
    device: str = "cpu"
    """cpu or cuda."""
    option: OptionWords = ()
    json: AsJson = False


def score(config: Score) -> WorldModelScores:
    """Scores; progress goes to standard error, the table to standard output."""
    options = parse_pairs(config.option)
    model = build_model(config.model, config.id, options=options, weights=config.weights)
    how: dict[str, Any] = {"seed": config.seed, "budget": config.budget, "device": config.device}
    found = score_world_model(model, config.id, **how, **options)
    tell(config, found.to_dict(), str(found.table()))
    return found
