"""An episode of an evaluation once more, to be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.protocols.unit import Unit, play
from interverse.rollouts.policy import PolicyLike
from interverse.worlds.world import World


@final
@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Pictures of an episode and its row of the results, as it came out this time."""

    frames: NDArray[np.uint8]  # (frame, height, width, 3)
    row: dict[str, Any]


def watch(unit: Unit, policy: PolicyLike, *, episode: int, most: int = 60) -> Watched:
    """Returns pictures of one episode, played by itself from its address.

    Args:
        unit: task, options, protocol and seed; its own numbers do not matter.
        policy: what acts.
        episode: the episode's number.
        most: about how many pictures, evenly spaced, the first and the last moment among them.
    """
    frames: list[NDArray[np.uint8]] = []

    def look(world: World, step: int) -> None:
        every = -(-world.max_steps // most)
        if step % every == 0 or step == world.max_steps:
            frames.append(np.asarray(world.render(0)))

    rows = play(unit, policy, np.array([episode]), look)
    return Watched(np.stack(frames), rows[0])
