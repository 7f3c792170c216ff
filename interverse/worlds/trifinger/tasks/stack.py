"""Stacks of levels, default or random, for stacked_blocks and creative_stacked_blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from interverse.core.rng import Noise
from interverse.scm import Box, Integers, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger.penetration import Capsules
from interverse.worlds.trifinger.robot import HEIGHT, REST
from interverse.worlds.trifinger.shapes import Construction, level_rows, random_stack
from interverse.worlds.trifinger.tasks.building import fill, scatter
from interverse.worlds.trifinger.variables import declare

Array = Any

LEVELS, MIN_SIZE, MAX_WIDTH = "stack/levels", "stack/min_size", "stack/max_width"
CAUSES = (LEVELS, MIN_SIZE, MAX_WIDTH)
MOST_LEVELS = 8


def stack_variables(levels: int, least: int, width: float) -> list[Variable]:
    """Returns the variables of a stack.

    Args:
        levels: default number of levels.
        least: the least number in A.
        width: default width of a level, m.
    """
    return [
        declare(
            LEVELS,
            "goal",
            levels,
            Integers(1, MOST_LEVELS),
            spaces=(Integers(least, 5), Integers(6, MOST_LEVELS)),
            doc="Levels of the stack.",
        ),
        declare(
            MIN_SIZE,
            "goal",
            0.035,
            Box(0.02, 0.1),
            spaces=(Box(0.035, 0.065), Box(0.065, 0.075, open_low=True)),
            unit="m",
            doc="Depth and height of every piece, and the least width.",
        ),
        declare(
            MAX_WIDTH,
            "goal",
            width,
            Box(0.02, 0.3),
            spaces=(Box(0.035, 0.12), Box(0.12, 0.15, open_low=True)),
            unit="m",
            doc="The greatest width of a level.",
        ),
    ]


def default_stack(levels: int, width: float, *, ends_only: bool) -> Construction:
    """Returns the default scene's stack of cubes."""
    return level_rows(levels, 0.035, width, ends_only)


def rebuild(
    rows: Rows, noise: Noise, capsules: Capsules, default: Sequence[float], *, ends_only: bool
) -> Mapping[int, str]:
    """Builds every row's stack from its variables; returns rows that have no room.

    With the default values it is the default stack, otherwise a random one whose draws have this
    episode's address: the same values give the same stack, whatever was before.
    """
    refused = {}
    for row in range(len(rows[LEVELS])):
        values = tuple(rows[cause][row].item() for cause in CAUSES)
        if values == tuple(default):
            shape = default_stack(values[0], values[2], ends_only=ends_only)
            rows["block/color"][row] = (1.0, 0.0, 0.0)
        else:
            rng = noise.generator("stack", row)
            levels, edge, width = values
            shape = random_stack(rng, levels, edge, width, ends_only)
            rows["block/color"][row] = rng.random(rows["block/color"][row].shape)
            if len(shape.sizes) <= rows["block/used"].shape[1]:
                # clear of the fingers at rest: where they are now is no cause of the stack
                starts, yaws = scatter(
                    rng, shape.sizes, (capsules, np.array(REST), np.array(HEIGHT))
                )
                shape = replace(shape, starts=starts, yaws=yaws)
        reason = fill(rows, row, shape)
        if reason is not None:
            refused[row] = reason
    return refused


def needs_rebuild(given: Collection[str]) -> bool:
    """Returns whether an intervention asks for another stack."""
    return bool(set(CAUSES) & set(given))
