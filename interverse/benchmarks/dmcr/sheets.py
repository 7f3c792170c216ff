"""Contact sheets: states in many looks (Figures 1 and 9 to 13). Nothing is trained for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.benchmarks.dmcr.analysis import START
from interverse.envs import make
from interverse.envs.remastered import LOOKS, task_id

DmcrFrames = NDArray[np.uint8]  # (N, size, size, 3)
SHEETS = {
    1: "walker/walk",
    10: "cartpole/swingup",
    11: "walker/walk",
    12: "reacher/easy",
    13: "finger/spin",
}
"""The figures that show one state in many looks, and the task their captions name."""
TRAJECTORY = "hopper/hop"  # Figure 9: six moments of one trajectory, in four looks
AUGMENTED = "walker/walk"  # Figure 8: one picture under alterations and augmentations
_EVERY = 10  # decisions between its moments
_SETTLING = {"ball_in_cup/catch": 10}  # decisions, until the string is taut


def looks(count: int) -> list[int]:
    """Returns the default look and then looks of the test range."""
    return [0, *LOOKS["test"][: count - 1]]


def one_state(task: str, count: int, size: int, options: Mapping[str, Any]) -> DmcrFrames:
    """Returns one state of a task such as "walker/walk" in `count` looks."""
    env = _made(task, size, options)
    try:
        for _ in range(_SETTLING.get(task, 0)):
            env.step(np.zeros(env.action_space.shape, np.float32))
        return _in_looks(env, looks(count))
    finally:
        env.close()


def trajectory(count: int, moments: int, size: int, options: Mapping[str, Any]) -> DmcrFrames:
    """Returns Figure 9's pictures, a row of `moments` for each of `count` looks."""
    env = _made(TRAJECTORY, size, options)
    try:
        seen = [_in_looks(env, looks(count))]
        for t in range((moments - 1) * _EVERY):
            env.step(np.sin(0.3 * t + np.arange(env.action_space.shape[0])).astype(np.float32))
            if (t + 1) % _EVERY == 0:
                seen.append(_in_looks(env, looks(count)))
        return np.stack(seen, axis=1).reshape(-1, *seen[0].shape[1:])
    finally:
        env.close()


def _made(task: str, size: int, options: Mapping[str, Any]) -> Any:
    shape = {"image_size": size, "frame_stack": 1, "channels_first": False}
    env = make(task_id(task), **{**options, **shape})
    env.reset(seed=0, options={"do": {"dynamics_seed": START}})
    return env


def _in_looks(env: Any, chosen: Sequence[int]) -> DmcrFrames:
    return np.stack([env.do({"visual_seed": look}).observation for look in chosen])


def sheet(pictures: DmcrFrames, columns: int, gap: int = 2) -> DmcrFrames:
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
