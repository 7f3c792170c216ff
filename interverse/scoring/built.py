"""Anyone's model by its name, MODULE:BUILD: built, and its weights read."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
from torch import nn

from interverse.core.errors import InvalidValueError, explain
from interverse.core.registry import Entry
from interverse.envs.build import build_world
from interverse.models.checkpoint import read_tensors

_TOLD = ("id", "observation_shape", "actions", "objects")


def world_facts(id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a model may be built for: id, observation shape, actions, objects.

    `actions` is how many there are, or how many numbers an action has. `objects` are blocks or
    chemistry's objects, 1 elsewhere.
    """
    world: Any = build_world(id, 1, options)
    try:
        seen, acted = world.observation_space, world.action_space
        pictures = isinstance(seen, gymnasium.spaces.Dict)
        shape = (seen["image"] if pictures and "image" in seen.spaces else seen).shape
        discrete = isinstance(acted, gymnasium.spaces.Discrete)
        return {
            "id": id,
            "observation_shape": shape,
            "actions": int(acted.n) if discrete else int(acted.shape[0]),
            "objects": int(getattr(world.options, "objects", 1)),
        }
    finally:
        world.close()


def build_model(
    name: str, id: str, *, options: Mapping[str, Any], weights: Path | None = None
) -> Any:
    """Returns the model that MODULE:BUILD names.

    Args:
        name: BUILD is a model, or a class or function that returns one; it is given those of id,
            observation_shape, actions and objects that it asks for by name.
        id: the world it is for.
        options: of that world.
        weights: a safetensors file, for a Torch module.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InvalidValueError(
            explain(
                f"model is {name!r}",
                allowed="MODULE:BUILD, such as my_model:Own",
                fix="interverse new model my_model writes a first one",
            )
        )
    try:
        model = Entry(name).load()
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0]:
            raise
        raise InvalidValueError(
            explain(f"there is no module {module_name!r}", fix="Call this in its folder")
        ) from error
    except AttributeError as error:
        raise InvalidValueError(explain(f"{module_name} has no {attribute!r}")) from error
    if inspect.isclass(model) or not hasattr(model, "rollout"):
        model = _called(name, model, world_facts(id, options))
    if weights is not None:
        if not isinstance(model, nn.Module):
            raise InvalidValueError(
                explain(f"{name} is no Torch module, and has no weights", fix="Leave weights out")
            )
        model.load_state_dict(read_tensors(weights))
    return model


def _called(name: str, build: Any, facts: Mapping[str, Any]) -> Any:
    asked = inspect.signature(build).parameters.values()
    required = [p.name for p in asked if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    unknown = [one for one in required if one not in _TOLD]
    if unknown:
        raise InvalidValueError(
            explain(
                f"{name} asks for {', '.join(unknown)}",
                allowed=", ".join(_TOLD),
                fix="Give the others defaults",
            )
        )
    return build(**{p.name: facts[p.name] for p in asked if p.name in facts})
