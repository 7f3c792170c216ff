"""Build a stack of which only the first and last level are given."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

import numpy as np

from interverse.core.rng import Noise
from interverse.scm import Space, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger.goals import draw
from interverse.worlds.trifinger.scene import ArenaScene
from interverse.worlds.trifinger.tasks.building import (
    MASS,
    building_edges,
    follow,
    piece_variables,
    scene_of,
)
from interverse.worlds.trifinger.tasks.obstacles import (
    COUNT,
    count_variable,
    place_obstacles,
    spare_obstacles,
)
from interverse.worlds.trifinger.tasks.stack import (
    CAUSES,
    default_stack,
    needs_rebuild,
    rebuild,
    stack_variables,
)
from interverse.worlds.trifinger.tasks.task import Edge, Task

Array = Any
_DEFAULT = (8, 0.035, 0.12)  # levels, least size, greatest width


@final
class CreativeStackedBlocks(Task):
    """Levels of blocks; how to fill those between the first and the last is left open."""

    name = "creative_stacked_blocks"
    generators = (*CAUSES, MASS, COUNT)
    interleaved = True
    varies = True

    def scene(self) -> ArenaScene:
        """Returns eight levels of three cubes, goals for the lowest and the highest."""
        scene = scene_of(default_stack(_DEFAULT[0], _DEFAULT[2], ends_only=True))
        return ArenaScene(blocks=scene.blocks, goals=scene.goals, obstacles=spare_obstacles())

    def partners(self, scene: ArenaScene) -> Sequence[int]:
        """Returns, for each goal, the block after which it is observed."""
        if scene.max_blocks is not None:
            return range(scene.goal_count)
        wanted = default_stack(_DEFAULT[0], _DEFAULT[2], ends_only=True).wanted
        return [int(k) for k in np.flatnonzero(wanted)]

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables, the stack's, and the number of obstacles."""
        stack = stack_variables(_DEFAULT[0], 3, _DEFAULT[2])
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
        return rebuild(rows, noise, self.capsules, _DEFAULT, ends_only=True)

    def solution(self, rows: Mapping[str, Array]) -> Mapping[str, Array]:
        """Returns nothing: between the given levels there are many ways."""
        return {}

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns levels, least size, greatest width and mass."""
        return {name: draw(name, spaces[name], noise) for name in (*CAUSES, MASS)}
