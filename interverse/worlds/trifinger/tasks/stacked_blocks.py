"""Stacks of levels: stacked_blocks, and creative_stacked_blocks with its middle levels free."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from interverse.core.arrays import Array
from interverse.core.rng import Noise
from interverse.scm import Box, Integers, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger.penetration import Capsules
from interverse.worlds.trifinger.robot import HEIGHT, REST
from interverse.worlds.trifinger.scene import ArenaScene
from interverse.worlds.trifinger.tasks.building import (
    MASS,
    Construction,
    building_edges,
    fill,
    follow,
    level_rows,
    piece_variables,
    random_stack,
    scatter,
    scene_of,
)
from interverse.worlds.trifinger.tasks.reaching import (
    COUNT,
    count_variable,
    place_obstacles,
    spare_obstacles,
)
from interverse.worlds.trifinger.tasks.task import Edge, Task
from interverse.worlds.trifinger.variables import declare

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


_DEFAULT = (5, 0.035, 0.25)  # levels, least size, greatest width


@final
class StackedBlocks(Task):
    """Levels of blocks that stand upon each other; every piece is a goal."""

    name = "stacked_blocks"
    generators = (*CAUSES, MASS)
    interleaved = True
    varies = True

    def scene(self) -> ArenaScene:
        """Returns five levels of seven cubes; the upper ones start in the air and fall."""
        return scene_of(default_stack(_DEFAULT[0], _DEFAULT[2], ends_only=False))

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables and the stack's."""
        return [*piece_variables(scene), *stack_variables(_DEFAULT[0], 1, _DEFAULT[2])]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the stack's variables make all pieces."""
        return building_edges(scene, CAUSES, colors=True)

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Builds the stack anew where its variables are given."""
        follow(rows, given)
        if not needs_rebuild(given):
            return {}
        return rebuild(rows, noise, self.capsules, _DEFAULT, ends_only=False)


_CREATIVE = (8, 0.035, 0.12)  # levels, least size, greatest width


@final
class CreativeStackedBlocks(Task):
    """Levels of blocks; how to fill those between the first and the last is left open."""

    name = "creative_stacked_blocks"
    generators = (*CAUSES, MASS, COUNT)
    drawn = (*CAUSES, MASS)
    interleaved = True
    varies = True

    def scene(self) -> ArenaScene:
        """Returns eight levels of three cubes, goals for the lowest and the highest."""
        scene = scene_of(default_stack(_CREATIVE[0], _CREATIVE[2], ends_only=True))
        return ArenaScene(blocks=scene.blocks, goals=scene.goals, obstacles=spare_obstacles())

    def partners(self, scene: ArenaScene) -> Sequence[int]:
        """Returns, for each goal, the block after which it is observed."""
        if scene.max_blocks is not None:
            return range(scene.goal_count)
        wanted = default_stack(_CREATIVE[0], _CREATIVE[2], ends_only=True).wanted
        return [int(k) for k in np.flatnonzero(wanted)]

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables, the stack's, and the number of obstacles."""
        stack = stack_variables(_CREATIVE[0], 3, _CREATIVE[2])
        return [*piece_variables(scene), *stack, count_variable(scene)]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the stack's variables make all pieces."""
        return building_edges(scene, CAUSES, colors=True)

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Builds the stack anew and places obstacles where their variables are given."""
        follow(rows, given)
        if COUNT in given:
            place_obstacles(rows, noise)
        if not needs_rebuild(given):
            return {}
        return rebuild(rows, noise, self.capsules, _CREATIVE, ends_only=True)

    def solution(self, rows: Mapping[str, Array]) -> Mapping[str, Array]:
        """Returns nothing: between the given levels there are many ways."""
        return {}
