"""New goals on request, as the task's own sampler draws them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import Noise, check_seed
from interverse.envs.single import WorldEnv
from interverse.envs.values import to_numpy
from interverse.scm.variable import SpaceName

_APART = 1_000_003  # steps between the addresses of two draws: longer than any episode


def sample_new_goal(
    env: Any, *, space: SpaceName | None = None, draw: int = 0
) -> dict[str, NDArray[Any]]:
    """Returns a goal as values for `do`; applies nothing.

    The goal depends on the seed, the episode, the step and `draw` alone.

    Args:
        env: an environment of interverse, single or vector, wrapped or not, after a reset.
        space: where to draw from; None takes the environment's active space.
        draw: which of many goals of this moment.

    >>> import interverse as iv
    >>> env = iv.make("trifinger/pushing-v1")
    >>> _ = env.reset(seed=0)
    >>> goal = sample_new_goal(env, space="A")
    >>> sorted(env.do(goal).changed)[:2]
    ['goal_0/cartesian_position', 'goal_0/cylindrical_position']
    """
    driver = env.unwrapped.driver
    if not np.all(driver.running):
        raise InvalidValueError(explain("there is no episode yet", fix="Call reset() first"))
    steps = driver.steps + _APART * check_seed(draw, name="draw")
    noise = Noise(driver.seeds, driver.episodes, steps)
    chosen = driver.world.options.space if space is None else space
    goal = driver.world.sample_goal(np.arange(len(steps)), noise, chosen)
    single = isinstance(env.unwrapped, WorldEnv)
    return {name: to_numpy(v)[0] if single else to_numpy(v) for name, v in goal.items()}
