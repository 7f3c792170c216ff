"""Grid worlds: steps with images in a batch."""

from __future__ import annotations

import numpy as np

from interverse.bench.measure import Row, best_seconds, resident_mb
from interverse.envs import make_vec
from interverse.rollouts.policy import RandomPolicy

_WORLDS = 4096
_STEPS = 10


def blocks() -> list[Row]:
    """Returns frames a second and memory of 4,096 worlds of three blocks."""
    return steps_with_images("blocks/observed-3-v1", target="at least 100,000 frames/s")


def chemistry() -> list[Row]:
    """Returns frames a second and memory of 4,096 chemistry worlds."""
    return steps_with_images("chemistry/chain-v1", target="at least 100,000 frames/s")


def steps_with_images(world_id: str, *, target: str) -> list[Row]:
    """Returns frames a second of a grid world in a batch, and the memory the batch takes."""
    make_vec(world_id, num_envs=1).reset(seed=0)  # the code is loaded before memory is read
    before = resident_mb()
    venv = make_vec(world_id, num_envs=_WORLDS, max_steps=10**6)
    venv.reset(seed=0)
    policy = RandomPolicy(venv.unwrapped.world.action_space)
    policy.reset(np.ones(_WORLDS, dtype=bool), np.arange(_WORLDS))
    actions = [policy(np.zeros(_WORLDS)) for _ in range(_STEPS)]

    def run() -> None:
        for action in actions:
            venv.step(action)

    seconds = best_seconds(run)
    memory = resident_mb() - before
    rate = _WORLDS * _STEPS / seconds
    return [
        Row(
            name=world_id,
            metric="frames per second, batch of 4096",
            value=rate,
            unit="1/s",
            target=target,
        ),
        Row(
            name=world_id,
            metric="memory of 4096 worlds",
            value=memory,
            unit="MB",
            target="under 300 MB",
        ),
    ]
