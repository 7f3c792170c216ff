"""`make` and `make_vec` build environments from ids; `register` adds a user's world."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from interverse.core.registry import Entry
from interverse.core.type_checks import blames_types
from interverse.envs.single import WorldEnv
from interverse.envs.vector import WorldVectorEnv
from interverse.worlds import WORLDS
from interverse.worlds.world import parse_options


def make(id: str, **options: Any) -> WorldEnv:
    """Returns one world as a Gymnasium environment.

    Args:
        id: a registered id; `interverse list` shows them.
        **options: the world's options; `interverse describe ID` shows them.

    >>> env = make("chemistry/chain-v1", objects=3)
    >>> observation, info = env.reset(seed=0, options={"do": {"object_0/color": 2}})
    >>> int(env.values["object_0/color"])
    2
    """
    if "world_id" in options:  # the one name that Gymnasium's registry gives a world besides
        check_options(id, options)
    env = WorldEnv(id, **options)
    env.spec = _spec(id, options)
    return env


def make_vec(id: str, num_envs: int = 1, **options: Any) -> WorldVectorEnv:
    """Returns N worlds as a Gymnasium vector environment.

    >>> venv = make_vec("chemistry/chain-v1", num_envs=8, objects=3)
    >>> observations, infos = venv.reset(seed=0)
    >>> observations["image"].shape
    (8, 50, 50, 3)
    """
    if "world_id" in options:
        check_options(id, options)
    venv = WorldVectorEnv(id, num_envs, **options)
    venv.spec = _spec(id, options)
    return venv


def check_options(id: str, options: Mapping[str, Any]) -> None:
    """Raises for what is no option of a world, such as a name that `make_vec` itself takes."""
    parse_options(WORLDS.load(id).options_type, options)


def _spec(id: str, options: Mapping[str, Any]) -> EnvSpec:
    """Returns Gymnasium's specification with these options, so that `gym.make` rebuilds it."""
    name = id.rpartition(":")[2]
    if name not in gym.registry:  # a world that another package adds
        register_with_gymnasium(name)
    spec = copy.deepcopy(gym.spec(name))
    spec.kwargs = {**spec.kwargs, **_listed(options)}
    return spec


def _listed(value: Any) -> Any:
    """Returns options with lists for arrays, as the specification's JSON needs them."""
    if isinstance(value, Mapping):
        return {name: _listed(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(_listed, value))
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@blames_types
def register(id: str, target: str, **options: Any) -> None:
    """Adds a world of your own under an id, here and in Gymnasium.

    Args:
        id: `folder/name-v1`.
        target: `"package.module:Class"`, a `World`; imported when first made.
        **options: options it is made with unless `make` gives others.
    """
    WORLDS.add(id, Entry(target, options))
    register_with_gymnasium(id)


def register_with_gymnasium(id: str) -> None:
    """Tells Gymnasium the id, as lazy strings."""
    gym.register(
        id=id,
        entry_point="interverse.envs:WorldEnv",
        vector_entry_point="interverse.envs:WorldVectorEnv",
        kwargs={"world_id": id},  # Gymnasium's own functions have an `id`
        disable_env_checker=True,
        order_enforce=False,
    )
