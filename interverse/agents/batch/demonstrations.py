"""Demonstrations: a task's scripted baseline, as starts along its paths and as actions to imitate.

Where a reward is met only after a long way, episodes that begin on the way of one who knows it meet
it soon (Salimans and Chen, 2018), and a policy that begins with what was shown keeps to that way
(Rajeswaran et al., 2018). Episodes that the baseline did not solve show nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.curriculum import Curriculum
from interverse.agents.batch.starts import Starts, merge, on_cpu
from interverse.core.errors import InvalidValueError
from interverse.envs import make_vec

_SOLVED = 0.8  # fractional success at the end of an episode worth showing
_APART = 40  # steps between two starts of an episode
_PAIRED = 8  # steps between two actions that are kept


@final
@dataclass(frozen=True, slots=True, eq=False)
class Demonstrations:
    """What solved episodes showed.

    Attributes:
        starts: states along them.
        observations, actions: some of their steps, (n, k) and (n, 9), float32.
    """

    starts: Starts
    observations: NDArray[np.float32]
    actions: NDArray[np.float32]


def demonstrate(
    task: str,
    curriculum: Curriculum,
    episodes: int,
    *,
    seed: int,
    options: Mapping[str, Any],
    plain: float = 0.1,
) -> Demonstrations:
    """Plays episodes of the scripted baseline on the CPU engine; it takes seconds for each.

    Args:
        task: a world's id.
        curriculum: what intervenes at the start of an episode.
        episodes: how many, side by side.
        seed: of the first; episode i has seed + i.
        options: of the world; its space is A unless it says otherwise.
        plain: share of the episodes that the curriculum leaves as the task has them.
    """
    settings = {"space": "A", **on_cpu(options)}
    venv: Any = make_vec(task, num_envs=episodes, autoreset_mode="disabled", **settings)
    try:
        world, everyone = venv.unwrapped.world, np.arange(episodes)
        policy = world.scripted_policy()
        if policy is None:
            raise InvalidValueError(
                f"{task} has no scripted baseline to learn from", fix="Leave out shown"
            )
        venv.reset(seed=seed)
        curriculum.check(venv.unwrapped.driver)
        curriculum.intervene(venv.unwrapped.driver, everyone[round(plain * episodes) :])
        seen, saved, pairs, info = world.observe(), [], [], {}
        for step in range(world.max_steps - 1):
            if step % _APART == 0:
                saved.append({k: np.asarray(v) for k, v in world.save(everyone).items()})
            action = policy(seen)
            if step % _PAIRED == 0:
                pairs.append((np.array(seen, np.float32), np.array(action, np.float32)))
            seen, _, _, _, info = venv.step(action)
    finally:
        venv.close()
    good = np.flatnonzero(np.asarray(info["fractional_success"]) > _SOLVED)
    if not len(good):
        raise InvalidValueError(
            f"the scripted baseline solved none of {episodes} episodes of {task}",
            fix="Show more episodes",
        )
    parts = [Starts({name: rows[good] for name, rows in state.items()}) for state in saved]
    observations, actions = (np.concatenate([p[k][good] for p in pairs]) for k in range(2))
    return Demonstrations(merge(parts, task, settings), observations, actions)
