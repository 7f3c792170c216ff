"""Tasks that build: towers, two stacked blocks, and stacks of blocks of several sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import final

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
from interverse.worlds.trifinger.scene import WALL_RADIUS, ArenaScene, Block, Goal
from interverse.worlds.trifinger.tasks.building import (
    MASS,
    Construction,
    building_edges,
    changed_generators,
    fill,
    follow,
    level_rows,
    piece_variables,
    random_stack,
    scatter,
    scene_of,
    tower,
)
from interverse.worlds.trifinger.tasks.task import RATES, TIPS, Edge, Task
from interverse.worlds.trifinger.variables import UNBOUNDED, declare

_COUNTS, _DIMS, _CENTER = "tower/counts", "tower/dims", "tower/center"
_TOWER = (_COUNTS, _DIMS, _CENTER)
_CORNER, _GAP = 0.12, 0.005  # m
_BELOW_FINGERS = 0.23  # what stands under raised fingers may be so high, m
_IN_WALL = 0.17  # half edge of the square that fits into the wall, m
_PLACE, _TURN = "goal_tower/cylindrical_position", "goal_tower/orientation"
_BLOCK_HEIGHT = 0.065
_LOWER, _UPPER = (
    (f"block_{i}/cartesian_position", f"goal_{i}/cartesian_position") for i in range(2)
)


@final
class Towers(Task):
    """A tower cut into equal blocks; the blocks start in a row, the fingers raised."""

    name = "towers"
    generators = (*_TOWER, MASS)
    start = RAISED
    interleaved = True
    varies = True

    def scene(self) -> ArenaScene:
        """Returns five cubes and a column of five goals."""
        return scene_of(_shape(np.array((1, 1, 5)), np.array((0.035, 0.035, 0.175)), np.zeros(2)))

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables and the tower's."""
        return [
            *piece_variables(scene),
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

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the tower's variables make all pieces."""
        return building_edges(scene, _TOWER)

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Builds the tower anew where its variables are given."""
        follow(rows, given)
        if not changed_generators(given, _TOWER):
            return {}
        refused = {}
        for row, counts in enumerate(rows[_COUNTS]):
            reason = fill(rows, row, _shape(counts, rows[_DIMS][row], rows[_CENTER][row]))
            if reason is not None:
                refused[row] = reason
        return refused

    def pieces(self, rows: Rows, noise: Noise) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns how many blocks and goals there are: as many as the counts say."""
        count = np.prod(rows[_COUNTS], axis=1)
        return count, count

    def most_blocks(self, spaces: Mapping[str, Space]) -> int:
        """Returns how many blocks the greatest counts make."""
        return int(np.prod(spaces[_COUNTS].high))


def _shape(counts: Array, dims: Array, center: Array) -> Construction:
    x, y, z = (int(c) for c in counts)
    shape = tower((x, y, z), dims, center)
    return replace(shape, starts=_row(len(shape.sizes), shape.sizes[0]))


def _row(count: int, size: Array) -> Array:
    """Returns starts along the diagonal; a full row is followed by one a block higher.

    The original goes up by half a block, so that blocks of two rows stand in each other, and puts
    wide blocks into the wall; these move inwards. Where rows would reach up to the fingers the
    blocks stand in layers that fill the arena.
    """
    half, step = size[:2] / 2, size[:2] + _GAP
    inside = np.hypot(*(_CORNER + half)) <= WALL_RADIUS
    first = -(np.full(2, _CORNER) if inside else np.minimum(_CORNER, _IN_WALL - half))
    fit = 1 + int(np.floor((2 * _CORNER + 1e-9) / step).min())
    while fit > 1 and np.hypot(*(first + (fit - 1) * step + half)) > WALL_RADIUS:
        fit -= 1
    k = np.arange(count)
    flat = first + (k % fit)[:, None] * step
    layer = k // fit
    if size[2] * (layer[-1] + 1) > _BELOW_FINGERS:
        across = np.maximum(1, np.floor((2 * _IN_WALL + _GAP) / step)).astype(int)
        layer, k = np.divmod(k, across.prod())
        places = np.stack([k % across[0], k // across[0]], axis=1)
        flat = (places - (across - 1) / 2) * step
    return np.concatenate([flat, ((layer + 0.5) * size[2])[:, None]], axis=1)


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
            out += goal_variables(scene, i, bounded=False, sizes=UNBOUNDED)
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
        out = []
        for i in range(2):
            out += [(_PLACE, f"goal_{i}/cartesian_position"), (_TURN, f"goal_{i}/orientation")]
            out += [(f"block_{i}/size", f"block_{i}/cartesian_position")]
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


def _stack_variables(levels: int, least: int, width: float) -> list[Variable]:
    """Returns the variables of a stack.

    Args:
        levels: default number of levels.
        least: the least number in A.
        width: default width of a level, m.
    """
    return [
        declare(
            _LEVELS,
            "goal",
            levels,
            Integers(1, _MOST_LEVELS),
            spaces=(Integers(least, 5), Integers(6, _MOST_LEVELS)),
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


def _default_stack(levels: int, width: float, *, ends_only: bool) -> Construction:
    """Returns the default scene's stack of cubes."""
    return level_rows(levels, 0.035, width, ends_only)


def _rebuild(task: Task, rows: Rows, noise: Noise, *, ends_only: bool) -> Mapping[int, str]:
    """Builds every row's stack from its variables; returns rows that have no room.

    With the default values it is the default stack, otherwise a random one: the same values give
    the same stack, whatever was before.
    """
    refused = {}
    for row in range(len(rows[_LEVELS])):
        shape, rng = _stack(task, rows, noise, row, ends_only=ends_only)
        if rng is None:
            rows["block/color"][row] = (1.0, 0.0, 0.0)
        else:
            rows["block/color"][row] = rng.random(rows["block/color"][row].shape)
            if len(shape.sizes) <= rows["block/used"].shape[1]:
                # clear of the fingers at rest: where they are now is no cause of the stack
                robot = task.capsules, np.array(REST), np.array(HEIGHT)
                starts, yaws = scatter(rng, shape.sizes, robot)
                shape = replace(shape, starts=starts, yaws=yaws)
        reason = fill(rows, row, shape)
        if reason is not None:
            refused[row] = reason
    return refused


def _stack_pieces(
    task: Task, rows: Rows, noise: Noise, *, ends_only: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns how many blocks and goals the stacks of some rows have, (n,) each."""
    count = len(rows[_LEVELS])
    shapes = [_stack(task, rows, noise, row, ends_only=ends_only)[0] for row in range(count)]
    blocks = np.array([len(shape.sizes) for shape in shapes])
    return blocks, np.array([int(shape.wanted.sum()) for shape in shapes])


def _stack(
    task: Task, rows: Rows, noise: Noise, row: int, *, ends_only: bool
) -> tuple[Construction, np.random.Generator | None]:
    """Returns the stack of one row and what drew it; nothing draws the default one."""
    values = tuple(rows[cause][row].item() for cause in _STACK)
    default = _CREATIVE if ends_only else _DEFAULT
    levels, edge, width = values
    if values == default:
        return _default_stack(levels, width, ends_only=ends_only), None
    rng = noise.generator(f"stack{task.scene_tag(values, default)}", row)
    return random_stack(rng, levels, edge, width, ends_only), rng


_DEFAULT = (5, 0.035, 0.25)  # levels, least size, greatest width


@final
class StackedBlocks(Task):
    """Levels of blocks that stand upon each other; every piece is a goal."""

    name = "stacked_blocks"
    generators = (*_STACK, MASS)
    interleaved = True
    varies = True

    def scene(self) -> ArenaScene:
        """Returns five levels of seven cubes; the upper ones start in the air and fall."""
        return scene_of(_default_stack(_DEFAULT[0], _DEFAULT[2], ends_only=False))

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables and the stack's."""
        return [*piece_variables(scene), *_stack_variables(_DEFAULT[0], 1, _DEFAULT[2])]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the stack's variables make all pieces."""
        return building_edges(scene, _STACK, colors=True)

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Builds the stack anew where its variables are given."""
        follow(rows, given)
        if not changed_generators(given, _STACK):
            return {}
        return _rebuild(self, rows, noise, ends_only=False)

    def pieces(self, rows: Rows, noise: Noise) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns how many blocks and goals the stacks have."""
        return _stack_pieces(self, rows, noise, ends_only=False)


_CREATIVE = (8, 0.035, 0.12)  # levels, least size, greatest width


@final
class CreativeStackedBlocks(Task):
    """Levels of blocks; how to fill those between the first and the last is left open."""

    name = "creative_stacked_blocks"
    generators = (*_STACK, MASS, COUNT)
    drawn = (*_STACK, MASS)
    interleaved = True
    varies = True

    def scene(self) -> ArenaScene:
        """Returns eight levels of three cubes, goals for the lowest and the highest."""
        scene = scene_of(_default_stack(_CREATIVE[0], _CREATIVE[2], ends_only=True))
        return ArenaScene(blocks=scene.blocks, goals=scene.goals, obstacles=spare_obstacles())

    def partners(self, scene: ArenaScene) -> Sequence[int]:
        """Returns, for each goal, the block after which it is observed."""
        if scene.max_blocks is not None:
            return range(scene.goal_count)
        wanted = _default_stack(_CREATIVE[0], _CREATIVE[2], ends_only=True).wanted
        return [int(k) for k in np.flatnonzero(wanted)]

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the pieces' variables, the stack's, and the number of obstacles."""
        stack = _stack_variables(_CREATIVE[0], 3, _CREATIVE[2])
        return [*piece_variables(scene), *stack, count_variable(scene)]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the stack's variables make all pieces."""
        return building_edges(scene, _STACK, colors=True)

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Builds the stack anew and places obstacles where their variables are given."""
        follow(rows, given)
        if COUNT in given:
            place_obstacles(rows, noise)
        if not changed_generators(given, _STACK):
            return {}
        return _rebuild(self, rows, noise, ends_only=True)

    def pieces(self, rows: Rows, noise: Noise) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns how many blocks the stacks have, and how many of them are goals."""
        return _stack_pieces(self, rows, noise, ends_only=True)

    def solution(self, rows: Mapping[str, Array]) -> Mapping[str, Array]:
        """Returns nothing: between the given levels there are many ways."""
        return {}
