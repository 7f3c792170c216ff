"""Push a block to a place on the floor."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

from interverse.core.rng import Noise
from interverse.scm import Space, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger import rewards
from interverse.worlds.trifinger.goals import draw
from interverse.worlds.trifinger.objects import block_variables, goal_variables
from interverse.worlds.trifinger.scene import ArenaScene, Block, Goal
from interverse.worlds.trifinger.tasks.follow import same_size, size_constraints, size_edges
from interverse.worlds.trifinger.tasks.task import Edge, Task

Array = Any


@final
class Pushing(Task):
    """One block, one goal, both on the floor."""

    name = "pushing"
    weights = (750.0, 250.0, 100.0)
    dense = staticmethod(rewards.pushing)

    def scene(self) -> ArenaScene:
        """Returns a block in front of the middle and a goal behind it."""
        return ArenaScene(
            blocks=(Block(position=(0.0, -0.08, 0.0325), mass=0.02),),
            goals=(Goal(position=(0.0, 0.08, 0.0325)),),
        )

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the block's and the goal's variables; their heights are half their size."""
        return [
            *block_variables(scene, 0, heights="pinned"),
            *goal_variables(scene, 0, heights="pinned"),
        ]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that a size seats its object on the floor."""
        return size_edges(("block_0", "goal_0"))

    def constraints(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that block and goal have one size."""
        return size_constraints()

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Gives block and goal one size and seats both on the floor."""
        return same_size(rows, given, seated=("block", "goal"))

    def sample_goal(
        self, values: Mapping[str, Array], spaces: Mapping[str, Space], noise: Noise
    ) -> Mapping[str, Array]:
        """Returns a place, uniform in radius and angle, and a yaw."""
        names = ("goal_0/cylindrical_position", "goal_0/orientation")
        return {name: draw(name, spaces[name], noise) for name in names}
