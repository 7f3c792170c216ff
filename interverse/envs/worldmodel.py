"""Worlds for the package stable-worldmodel, with a `variation_space` made of their variables.

Importing this module registers `worldmodel/FAMILY-NAME-v1` with Gymnasium for every world, so that
the package makes them by name:

    swm.World("interverse.envs.worldmodel:worldmodel/tutorial-slider-v1", num_envs=4, ...)
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import numpy as np

from interverse.core.errors import MissingExtraError
from interverse.envs.make import make
from interverse.scm import Box, Integers, Variable
from interverse.scm.variable import SpaceName
from interverse.worlds import WORLDS

try:
    from stable_worldmodel import spaces as swm_spaces
except ImportError as error:
    raise MissingExtraError(
        "stable-worldmodel is not installed", fix="pip install stable-worldmodel"
    ) from error

_ATTEMPTS = 20  # draws of variations that a world may refuse together


class VariationEnv(gym.Env[Any, Any]):
    """A world whose variables are variations, by their own names: those with bounds of their own.

    Of two descriptions of one thing (the size of a block and of its goal) the first is taken;
    bounds that follow from another variable are no fixed space. In `reset`, the options
    `variation=[...]` (names to draw) and `variation_values={...}` are one `do` at the start.

    Args:
        world_id: a world's id.
        variation: the space that variations are drawn from: A, B or A_B.
        render_mode: "rgb_array" or None.
        **options: of the world, as for `make`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 25}  # noqa: RUF012 - Gymnasium's form

    def __init__(
        self,
        world_id: str,
        variation: SpaceName = "A",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        # The package steps worlds on threads of its data writer; a GL context stays on one thread.
        self._thread = ThreadPoolExecutor(1)
        self.env = self._call(make, world_id, render_mode=render_mode, **options)
        self.env_name, self.render_mode = world_id, render_mode
        self.observation_space = self.env.observation_space
        self.action_space = self.env.action_space
        self._call(self.env.reset, seed=0)
        parts: dict[str, Any] = {}
        for name, variable in self.env.world.variables.items():
            space = None if variable.read_only else _space(variable, variation)
            if space is not None and not self.env.graph.twins(name) & parts.keys():
                parts[name] = space
        self.variation_space = swm_spaces.Dict(parts)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode under the variations that are asked for."""
        super().reset(seed=seed)
        given = dict(options or {})
        drawn = list(given.get("variation", ()))
        if drawn == ["all"]:
            drawn = list(self.variation_space.spaces)
        for attempt in range(_ATTEMPTS):
            swm_spaces.reset_variation_space(
                self.variation_space, None if seed is None else seed + attempt, given
            )
            names = [*drawn, *given.get("variation_values", {})]
            do = {name: self.variation_space[name].value for name in names}
            try:
                start = {"do": do} if do else None
                seen, info = self._call(self.env.reset, seed=seed, options=start)
            except ValueError:  # together they cannot be: draw again, as curricula do
                if attempt == _ATTEMPTS - 1 or not drawn:
                    raise
                continue
            break
        return seen, {**info, "env_name": self.env_name}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advances the world by one action."""
        seen, reward, terminated, truncated, info = self._call(self.env.step, action)
        return seen, float(reward), terminated, truncated, {**info, "env_name": self.env_name}

    def render(self) -> Any:
        """Returns a picture."""
        return self._call(self.env.render)

    def close(self) -> None:
        """Releases the world."""
        self._call(self.env.close)
        self._thread.shutdown()

    def _call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return self._thread.submit(function, *args, **options).result()


def _space(variable: Variable, name: SpaceName) -> Any:
    """Returns a variable's space as the package knows it; None where it has none."""
    if callable(variable.space_a) or callable(variable.space_b):
        return None
    space = variable.space(name)
    if not isinstance(space, Box | Integers):  # angles and rotations are no boxes
        return None
    kind: Any = np.int64 if isinstance(space, Integers) else np.float64
    low, high = (np.broadcast_to(b, variable.shape).astype(kind) for b in (space.low, space.high))
    first = np.clip(np.asarray(variable.default, dtype=kind), low, high)
    return swm_spaces.Box(low, high, dtype=kind, init_value=first)


for _id in WORLDS:
    if (_name := f"worldmodel/{_id.replace('/', '-')}") not in gym.registry:
        gym.register(
            id=_name,
            entry_point="interverse.envs.worldmodel:VariationEnv",
            kwargs={"world_id": _id},
            disable_env_checker=True,
        )
