"""Build a stack of levels out of many blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

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
from interverse.worlds.trifinger.tasks.stack import (
    CAUSES,
    default_stack,
    needs_rebuild,
    rebuild,
    stack_variables,
)
from interverse.worlds.trifinger.tasks.task import Edge, Task

Array = Any
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

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns levels, least size, greatest width and mass."""
        return {name: draw(name, spaces[name], noise) for name in self.generators}
