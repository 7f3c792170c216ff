"""Contact sheets: one state in many looks (Figures 1 and 9 to 13). Nothing is trained for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.envs import make
from interverse.envs.remastered import LOOKS, task_id
from interverse.reproduce.remastered.analysis import START

DOMAINS = {
    "ball_in_cup": "catch",
    "cartpole": "swingup",
    "cheetah": "run",
    "finger": "spin",
    "fish": "swim",
    "hopper": "stand",
    "humanoid": "stand",
    "pendulum": "swingup",
    "reacher": "easy",
    "walker": "walk",
}
"""Every domain, and the task whose first state is shown."""
_SETTLING = {"ball_in_cup": 10}  # decisions, until the string is taut
# Two domains each, by name; the paper's own order is not recorded.
SHEETS = {
    9: ("ball_in_cup", "cartpole"),
    10: ("cheetah", "finger"),
    11: ("fish", "hopper"),
    12: ("humanoid", "pendulum"),
    13: ("reacher", "walker"),
}


def looks(count: int) -> list[int]:
    """Returns the default look and then looks of the test range."""
    return [0, *LOOKS["test"][: count - 1]]


def one_state(domain: str, count: int, size: int) -> NDArray[np.uint8]:
    """Returns one state of a domain in `count` looks, (count, size, size, 3)."""
    options: dict[str, Any] = {"image_size": size, "frame_stack": 1, "channels_first": False}
    env = make(task_id(f"{domain}/{DOMAINS[domain]}"), **options)
    try:
        env.reset(seed=0, options={"do": {"dynamics_seed": START}})
        for _ in range(_SETTLING.get(domain, 0)):
            env.step(np.zeros(env.action_space.shape, np.float32))
        return np.stack([env.do({"visual_seed": look}).observation for look in looks(count)])
    finally:
        env.close()


def sheet(pictures: NDArray[np.uint8], columns: int, gap: int = 2) -> NDArray[np.uint8]:
    """Returns pictures (N, h, w, 3) side by side in rows, on white.

    >>> sheet(np.zeros((3, 4, 5, 3), np.uint8), columns=2, gap=1).shape
    (9, 11, 3)
    """
    count, height, width, _ = pictures.shape
    rows = -(-count // columns)
    shape = (rows * (height + gap) - gap, columns * (width + gap) - gap, 3)
    out = np.full(shape, 255, dtype=np.uint8)
    for i, picture in enumerate(pictures):
        top, left = (i // columns) * (height + gap), (i % columns) * (width + gap)
        out[top : top + height, left : left + width] = picture
    return out
