"""Tasks that build: towers, two stacked blocks, and stacks of blocks of several sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array
from interverse.core.rng import Noise
from interverse.scm import Box, Integers, Space, UnitQuaternion, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger import rewards
from interverse.worlds.trifinger.objects import (
    COUNT,
    YAWS,
    block_variables,
    count_variable,
    goal_variables,
    place_obstacles,
    ring,
    spare_obstacles,
    to_cartesian,
    to_cylindrical,
)
from interverse.worlds.trifinger.robot import HEIGHT, RAISED, REST
from interverse.worlds.trifinger.scene import ArenaScene, Block, Goal
from interverse.worlds.trifinger.tasks.building import (
    MASS,
    Built,
    Construction,
    level_rows,
    random_stack,
    scatter,
    scene_of,
    tower,
)
from interverse.worlds.trifinger.tasks.task import RATES, TIPS, Edge, Task
from interverse.worlds.trifinger.variables import UNBOUNDED, declare

_COUNTS, _DIMS, _CENTER = "tower/counts", "tower/dims", "tower/center"
_TOWER = (_COUNTS, _DIMS, _CENTER)
_PLACE, _TURN = "goal_tower/cylindrical_position", "goal_tower/orientation"
_BLOCK_HEIGHT = 0.065
_LOWER, _UPPER = (
    (f"block_{i}/cartesian_position", f"goal_{i}/cartesian_position") for i in range(2)
)


@final
class Towers(Built):
    """A tower cut into equal blocks; the blocks start in a row, the fingers raised."""

    name = "towers"
    causes = _TOWER
    generators = (*_TOWER, MASS)
    start = RAISED
    interleaved = True

    def scene(self) -> ArenaScene:
        """Returns five cubes and a column of five goals."""
        return scene_of(tower((1, 1, 5), np.array((0.035, 0.035, 0.175)), np.zeros(2)))

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables and the tower's."""
        return [
            *super().variables(scene),
            declare(
                _COUNTS,
                "goal",
                (1, 1, 5),
                Integers(1, 6, (3,)),
                spaces=(Integers(1, 3, (3,)), Integers(4, 5, (3,))),
                doc="Blocks along x, y and z.",
            ),
            declare(
                _DIMS,
                "goal",
                (0.035, 0.035, 0.175),
                Box(0.02, 0.3, (3,)),
                spaces=(Box(0.08, 0.12, (3,)), Box(0.12, 0.20, (3,), open_low=True)),
                unit="m",
                doc="Edges of the whole tower.",
            ),
            declare(
                _CENTER,
                "goal",
                (0.0, 0.0),
                Box(-0.15, 0.15, (2,)),
                spaces=(Box(-0.1, 0.05, (2,)), Box(0.05, 0.1, (2,), open_low=True)),
                unit="m",
                doc="Where the tower stands: x, y.",
            ),
        ]

    def build(self, rows: Rows, row: int, noise: Noise) -> Construction:
        """Returns the tower of one row."""
        x, y, z = rows[_COUNTS][row].tolist()
        return tower((x, y, z), rows[_DIMS][row], rows[_CENTER][row])

    def pieces(self, rows: Rows, noise: Noise) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns how many blocks and goals there are: as many as the counts say."""
        count = np.prod(rows[_COUNTS], axis=1)
        return count, count

    def most_blocks(self, spaces: Mapping[str, Space]) -> int:
        """Returns how many blocks the greatest counts make."""
        return int(np.prod(spaces[_COUNTS].high))


@final
class Stacking2(Task):
    """Two blocks, and a tower of two goals that moves as one."""

    name = "stacking2"
    weights = (750.0, 250.0, 250.0, 125.0, 0.005)
    dense = staticmethod(rewards.stacking2)
    term_causes = (
        (TIPS, *_LOWER, "block_1/cartesian_position"),
        _LOWER,
        (*_LOWER, *_UPPER),
        (*_LOWER, *_UPPER),
        (RATES,),
    )
    drawn = (_PLACE, _TURN)

    def scene(self) -> ArenaScene:
        """Returns two blocks on the floor and two goals, one upon the other."""
        return ArenaScene(
            blocks=(
                Block(position=(0.0, 0.0, 0.0325), mass=0.02),
                Block(position=(0.01, 0.08, 0.0325), mass=0.02),
            ),
            goals=(
                Goal(position=(-0.06, -0.06, 0.0325)),
                Goal(position=(-0.06, -0.06, 0.0975)),
            ),
        )

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The tower's place and turn."""
        return _PLACE, _TURN

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the variables of blocks and goals, and the tower's place and turn."""
        out = []
        for i in range(2):
            out += block_variables(scene, i, sizes=UNBOUNDED)
            out += goal_variables(scene, i, place=None, sizes=UNBOUNDED)
        height = np.array(_BLOCK_HEIGHT)
        return [
            *out,
            declare(
                _PLACE,
                "goal",
                to_cylindrical(np.array((-0.06, -0.06, _BLOCK_HEIGHT))),
                Box((0.0, -2 * np.pi, 0.02), (0.35, 2 * np.pi, 0.15), (3,)),
                spaces=(ring(0, height, height), ring(1, height, height)),
                unit="m, rad, m",
                doc="Radius and angle of the tower; the height of one of its blocks.",
            ),
            declare(
                _TURN,
                "goal",
                (0.0, 0.0, 0.0, 1.0),
                UnitQuaternion(),
                spaces=YAWS,
                doc="Quaternion x, y, z, w of both goals.",
            ),
        ]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the tower carries its goals, and that a size lifts its block."""
        out = [*super().edges(scene)]
        for i in range(2):
            out += [(_PLACE, f"goal_{i}/cartesian_position"), (_TURN, f"goal_{i}/orientation")]
        return out

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Moves both goals with the tower."""
        if _PLACE in given:
            place = to_cartesian(rows["goal_tower/place"])
            for i in range(2):
                rows["goal/position"][:, i, :2] = place[:, :2]
                rows["goal/position"][:, i, 2] = place[:, 2] * (i + 0.5)
        if _TURN in given:
            rows["goal/orientation"][:] = rows["goal_tower/orientation"][:, None]
        return {}


_LEVELS, _MIN_SIZE, _MAX_WIDTH = "stack/levels", "stack/min_size", "stack/max_width"
_STACK = (_LEVELS, _MIN_SIZE, _MAX_WIDTH)
_MOST_LEVELS = 8


class _Stacks(Built):
    """Levels of blocks of several sizes that stand upon each other.

    With the default values it is the default stack of cubes, otherwise a random one: the same
    values give the same stack, whatever was before.
    """

    causes = _STACK
    more_drawn = ("color",)
    interleaved = True
    ends_only = False  # whether only the first and the last level are goals
    default: ClassVar[tuple[int, float, float]]  # levels, least size, greatest width
    fewest = 1  # levels in A

    def scene(self) -> ArenaScene:
        """Returns the default stack; the upper cubes start in the air and fall."""
        return scene_of(level_rows(*self.default, self.ends_only))

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables and the stack's."""
        levels, _, width = self.default
        return [
            *super().variables(scene),
            declare(
                _LEVELS,
                "goal",
                levels,
                Integers(1, _MOST_LEVELS),
                spaces=(Integers(self.fewest, 5), Integers(6, _MOST_LEVELS)),
                doc="Levels of the stack.",
            ),
            declare(
                _MIN_SIZE,
                "goal",
                0.035,
                Box(0.02, 0.1),
                spaces=(Box(0.035, 0.065), Box(0.065, 0.075, open_low=True)),
                unit="m",
                doc="Depth and height of every piece, and the least width.",
            ),
            declare(
                _MAX_WIDTH,
                "goal",
                width,
                Box(0.02, 0.3),
                spaces=(Box(0.035, 0.12), Box(0.12, 0.15, open_low=True)),
                unit="m",
                doc="The greatest width of a level.",
            ),
        ]

    def build(self, rows: Rows, row: int, noise: Noise) -> Construction:
        """Returns the stack of one row, with scattered blocks of random colours unless default."""
        shape, rng = self._stack(rows, row, noise)
        if rng is None:
            return replace(shape, colors=(1.0, 0.0, 0.0))
        shape = replace(shape, colors=rng.random(rows["block/color"][row].shape))
        if len(shape.sizes) > rows["block/used"].shape[1]:  # it will be refused
            return shape
        # clear of the fingers at rest: where they are now is no cause of the stack
        robot = self.capsules, np.array(REST), np.array(HEIGHT)
        starts, yaws = scatter(rng, shape.sizes, robot)
        return replace(shape, starts=starts, yaws=yaws)

    def pieces(self, rows: Rows, noise: Noise) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns how many blocks the stacks have, and how many of them are goals."""
        shapes = [self._stack(rows, row, noise)[0] for row in range(len(rows[_LEVELS]))]
        counts = [(len(shape.sizes), int(shape.wanted.sum())) for shape in shapes]
        blocks, goals = np.array(counts, dtype=np.int64).reshape(-1, 2).T
        return blocks, goals

    def _stack(
        self, rows: Rows, row: int, noise: Noise
    ) -> tuple[Construction, np.random.Generator | None]:
        """Returns the stack of one row and what drew it; nothing draws the default one."""
        levels, edge, width = values = tuple(rows[cause][row].item() for cause in _STACK)
        if values == self.default:
            return level_rows(*self.default, self.ends_only), None
        rng = noise.generator(f"stack{self.scene_tag(values, self.default)}", row)
        return random_stack(rng, levels, edge, width, self.ends_only), rng


@final
class StackedBlocks(_Stacks):
    """Levels of blocks that stand upon each other; every piece is a goal."""

    name = "stacked_blocks"
    generators = (*_STACK, MASS)
    default = (5, 0.035, 0.25)


@final
class CreativeStackedBlocks(_Stacks):
    """Levels of blocks; how to fill those between the first and the last is left open."""

    name = "creative_stacked_blocks"
    generators = (*_STACK, MASS, COUNT)
    drawn = (*_STACK, MASS)
    default = (8, 0.035, 0.12)
    ends_only = True
    fewest = 3

    def scene(self) -> ArenaScene:
        """Returns the default stack, goals for the lowest and the highest level, and obstacles."""
        return replace(super().scene(), obstacles=spare_obstacles())

    def partners(self, scene: ArenaScene) -> Sequence[int]:
        """Returns, for each goal, the block after which it is observed."""
        if scene.max_blocks is not None:
            return range(scene.goal_count)
        wanted = level_rows(*self.default, self.ends_only).wanted
        return [int(k) for k in np.flatnonzero(wanted)]

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables, the stack's, and the number of obstacles."""
        return [*super().variables(scene), count_variable(scene)]

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Builds the stack anew and places obstacles where their variables are given."""
        if COUNT in given:
            place_obstacles(rows, noise)
        return super().settle(rows, given, noise)

    def solution(self, rows: Mapping[str, Array]) -> Mapping[str, Array]:
        """Returns nothing: between the given levels there are many ways."""
        return {}
