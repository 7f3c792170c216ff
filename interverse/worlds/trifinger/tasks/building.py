"""Constructions of the building tasks, their variables, and how a scene is filled with them.

The functions of shapes say where goals stand and where their blocks start; they draw from the
generator they are given and touch no simulator. Heights are measured from the datum.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, from_yaw
from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import Noise
from interverse.scm import Box, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger.objects import block_variables, goal_variables
from interverse.worlds.trifinger.penetration import BoxSet, Capsules, box_depth, robot_depth
from interverse.worlds.trifinger.scene import WALL_RADIUS, ArenaScene, Block, Goal
from interverse.worlds.trifinger.tasks.task import Edge, Task
from interverse.worlds.trifinger.variables import GENERATOR_MASSES, UNBOUNDED, declare

Floats = NDArray[np.float64]

ARENA = 0.15  # half edge of the arena, m
_GAP = 0.005
_CORNER = 0.12
_BELOW_FINGERS = 0.23  # what stands under raised fingers may be so high, m
_IN_WALL = 0.17  # half edge of the square that fits into the wall, m
_DISC = 0.15  # m
_SPLITS = 3  # how often the pieces of a level may be halved

DROPS = (
    (0.1, 0.1, 0.2),
    (0.0, 0.0, 0.2),
    (0.05, 0.05, 0.3),
    (-0.05, -0.05, 0.1),
    (-0.12, -0.12, 0.2),
    (-0.12, 0.12, 0.2),
    (0.12, -0.10, 0.3),
    (0.09, -0.08, 0.1),
)
DROP_SECONDS = 0.8  # between two drops, and after the last


@final
@dataclass(frozen=True, slots=True, eq=False)
class Construction:
    """A structure to build, piece by piece.

    Attributes:
        sizes: full edges of the pieces, (K, 3), m.
        goals: where the pieces belong, (K, 3), m.
        wanted: which pieces are goals, (K,) bool; the others' blocks may serve freely.
        starts: where their blocks begin, (K, 3), m.
        yaws: the blocks' first turn about the vertical, (K,), rad; None: they stand straight.
        turns: the goals' quaternions, (K, 4); None: upright ones.
        colors: of all blocks there is room for; None leaves them as they are.
    """

    sizes: Floats
    goals: Floats
    wanted: NDArray[np.bool_]
    starts: Floats
    yaws: Floats | None = None
    turns: Floats | None = None
    colors: Floats | tuple[float, float, float] | None = None


def tower(counts: tuple[int, int, int], dims: Floats, centre: Floats) -> Construction:
    """Returns a tower cut evenly into counts blocks a side, standing on the floor at `centre`.

    Goals fill it upwards. The blocks start on a diagonal from a corner of the arena; a full row is
    followed by one a block higher. The original goes up by half a block, so that blocks of two rows
    stand in each other, and puts wide blocks into the wall; these move inwards. Where rows would
    reach up to the fingers the blocks stand in layers that fill the arena.

    Args:
        counts: blocks along x, y, z.
        dims: the whole tower's edges, (3,), m.
        centre: its x, y, (2,), m.
    """
    if min(counts) < 1:
        raise InvalidValueError(explain(f"a tower has at least one block a side, got {counts}"))
    size = np.asarray(dims, float) / np.array(counts)
    low = np.array([centre[0] - dims[0] / 2, centre[1] - dims[1] / 2, 0.0])
    goals = [
        low + size * (np.array((x, y, z)) + 0.5)
        for z in range(counts[2])
        for y in range(counts[1])
        for x in range(counts[0])  # as the original numbers them: along x first
    ]
    half, step = size[:2] / 2, size[:2] + _GAP
    inside = np.hypot(*(_CORNER + half)) <= WALL_RADIUS
    first = -(np.full(2, _CORNER) if inside else np.minimum(_CORNER, _IN_WALL - half))
    fit = 1 + int(np.floor((2 * _CORNER + 1e-9) / step).min())
    while fit > 1 and np.hypot(*(first + (fit - 1) * step + half)) > WALL_RADIUS:
        fit -= 1
    k = np.arange(len(goals))
    flat = first + (k % fit)[:, None] * step
    layer = k // fit
    if size[2] * (layer[-1] + 1) > _BELOW_FINGERS:
        across = np.maximum(1, np.floor((2 * _IN_WALL + _GAP) / step)).astype(int)
        layer, k = np.divmod(k, across.prod())
        places = np.stack([k % across[0], k // across[0]], axis=1)
        flat = (places - (across - 1) / 2) * step
    starts = np.concatenate([flat, ((layer + 0.5) * size[2])[:, None]], axis=1)
    wanted = np.ones(len(goals), bool)
    return Construction(np.tile(size, (len(goals), 1)), np.array(goals), wanted, starts)


def level_rows(levels: int, edge: float, width: float, ends_only: bool) -> Construction:
    """Returns the default stack: levels of equal cubes in a row, shifted to and fro.

    Args:
        levels: how many.
        edge: of the cubes, m.
        width: of a level, m; as many cubes as fit.
        ends_only: whether only the first and last level are goals (creative).
    """
    count = int(width / edge + 1e-9)
    row = (np.arange(count) - (count - 1) / 2) * edge
    level = np.repeat(np.arange(levels), count)
    odd = level % 2 == 1
    goals = np.zeros((levels * count, 3))
    goals[:, 0] = np.tile(row, levels) + np.where(odd, _GAP, -_GAP)
    goals[:, 2] = (level + 0.5) * edge
    starts = goals + np.array([0.0, 1.0, 0.0]) * np.where(odd, 0.1, -0.1)[:, None]
    wanted = (level == 0) | (level == levels - 1) | (not ends_only)
    return Construction(np.full((len(level), 3), edge), goals, wanted, starts)


def random_stack(
    rng: np.random.Generator, levels: int, edge: float, width: float, ends_only: bool
) -> Construction:
    """Returns a random stack that stands: each level's centre lies over the one below.

    Level 0 is placed anywhere in the arena; the wide pieces of a level are then halved, as long as
    every piece stays over the level below. Blocks start on the floor, anywhere in a disc.

    Args:
        rng: draws the levels and the starts.
        levels: how many.
        edge: depth and height of every piece, and the least width, m.
        width: the greatest width of a level, m.
        ends_only: whether only the first and last level are goals (creative).
    """
    room = ARENA - edge
    centre, y = rng.uniform(-room, room, 2)
    spans: list[tuple[float, float]] = []  # the x extent of every level
    left, right, front, back = -math.inf, math.inf, -room, room
    for _ in range(levels):
        if spans:  # over the level below, and over all that are beneath it
            left, right = max(left, spans[-1][0]), min(right, spans[-1][1])
            front, back = max(front, y - edge / 2), min(back, y + edge / 2)
            centre, y = rng.uniform(left, right), rng.uniform(front, back)
        widest = max(edge, min(width, 2 * (ARENA - abs(centre))))
        half = rng.uniform(edge, widest) / 2
        spans.append((centre - half, centre + half))
    pieces = _halve(spans, edge)  # they share the y of the last level drawn
    level = np.array([i for i, row in enumerate(pieces) for _ in row])
    low, high = np.array([piece for row in pieces for piece in row]).T
    goals = np.stack([(low + high) / 2, np.full(len(low), y), (level + 0.5) * edge], axis=1)
    sizes = np.stack([high - low, np.full(len(low), edge), np.full(len(low), edge)], axis=1)
    wanted = (level == 0) | (level == levels - 1) | (not ends_only)
    radius = _DISC * np.sqrt(rng.uniform(size=len(low)))
    angle, yaws = rng.uniform(-math.pi, math.pi, (2, len(low)))
    starts = np.stack([radius * np.cos(angle), radius * np.sin(angle), sizes[:, 2] / 2], axis=1)
    return Construction(sizes, goals, wanted, starts, yaws)


def drops(count: int, rng: np.random.Generator | None = None) -> Floats:
    """Returns the drops whose resting places are general's goals: places and rotation vectors.

    Args:
        count: how many cubes.
        rng: draws the poses. None takes the fixed list of the default scene, which holds eight;
            further ones repeat it.

    Returns:
        (count, 2, 3), m and rad.
    """
    if rng is None:
        return np.array([(DROPS[i % len(DROPS)], (0.0, 0.0, 0.0)) for i in range(count)])
    low, high = (-0.11, -0.11, 0.0), (0.11, 0.11, 0.22)
    turns = 0.0, 2 * math.pi, 3
    return np.array([(rng.uniform(low, high), rng.uniform(*turns)) for _ in range(count)])


def _halve(spans: list[tuple[float, float]], edge: float) -> list[list[tuple[float, float]]]:
    """Returns the pieces of each level, after halving those wider than two edges."""
    rows = [[span] for span in spans]
    for _ in range(_SPLITS):
        for i, row in enumerate(rows):
            halved: list[tuple[float, float]] = []
            for low, high in row:
                middle = (low + high) / 2
                both = [(low, middle), (middle, high)]
                middles = [(a + b) / 2 for a, b in both]
                stands = i == 0 or all(spans[i - 1][0] <= m <= spans[i - 1][1] for m in middles)
                halved += both if high - low > 2 * edge and stands else [(low, high)]
            rows[i] = halved
    return rows


MASS = "blocks/mass"
_TRIES = 24  # places drawn for each block before the next best is taken
_CLEAR = 0.002  # depth up to which a place counts as free, m
_POSE = ("size", "cartesian_position", "orientation")


class Built(Task):
    """A task whose scene is built from variables, its `causes`; its blocks share one mass."""

    causes: ClassVar[tuple[str, ...]]
    more_drawn: ClassVar[tuple[str, ...]] = ()  # of a block, beside pose and velocity
    varies = True

    @abstractmethod
    def build(self, rows: Rows, row: int, noise: Noise) -> Construction:
        """Returns what the causes of one row make."""

    def variables(self, scene: ArenaScene) -> list[Variable]:
        """Returns the variables of all pieces, and the mass they share."""
        out = []
        for i in range(scene.block_count):
            out += block_variables(scene, i, sizes=UNBOUNDED)
        for i in range(scene.goal_count):
            out += goal_variables(scene, i, place=None, sizes=UNBOUNDED)
        mass = declare(
            MASS,
            "latent",
            0.08,
            Box(0.001, 2.0),
            spaces=GENERATOR_MASSES,
            unit="kg",
            doc="Mass of every block.",
        )
        return [*out, mass]

    def edges(self, scene: ArenaScene) -> Sequence[Edge]:
        """Returns that the causes make all pieces."""
        blocks, goals = range(scene.block_count), range(scene.goal_count)
        moving = (*_POSE, "linear_velocity", "angular_velocity", *self.more_drawn)
        out = [
            (cause, f"block_{i}/{key}") for cause in self.causes for i in blocks for key in moving
        ]
        out += [(cause, f"goal_{i}/{key}") for cause in self.causes for i in goals for key in _POSE]
        return [*out, *((MASS, f"block_{i}/mass") for i in blocks), *super().edges(scene)]

    def settle(self, rows: Rows, given: Collection[str], noise: Noise) -> Mapping[int, str]:
        """Builds the scene anew where its causes are given."""
        if MASS in given:
            rows["block/mass"][:] = rows[MASS][:, None]
        if set(given).isdisjoint(self.causes):
            return {}
        count = range(len(rows[MASS]))
        reasons = {row: _fill(rows, row, self.build(rows, row, noise)) for row in count}
        return {row: reason for row, reason in reasons.items() if reason is not None}


def scene_of(shape: Construction) -> ArenaScene:
    """Returns the scene of a shape's blocks and goals."""
    upright = np.tile([0.0, 0.0, 0.0, 1.0], (len(shape.goals), 1))
    turns = (upright if shape.turns is None else shape.turns).tolist()
    starts, sizes, places = (part.tolist() for part in (shape.starts, shape.sizes, shape.goals))
    blocks = [
        Block(position=tuple(start), size=tuple(size), mass=0.08)
        for start, size in zip(starts, sizes, strict=True)
    ]
    goals = [
        Goal(position=tuple(places[i]), orientation=tuple(turns[i]), size=tuple(sizes[i]))
        for i in np.flatnonzero(shape.wanted).tolist()
    ]
    return ArenaScene(blocks=tuple(blocks), goals=tuple(goals))


def _fill(rows: Rows, row: int, shape: Construction) -> str | None:
    """Puts a shape into one row of a store; returns why it cannot be, or None."""
    count, goals = len(shape.sizes), int(shape.wanted.sum())
    room, goal_room = rows["block/used"].shape[1], rows["goal/used"].shape[1]
    if count > room or goals > goal_room:
        return explain(
            f"this scene needs {count} blocks and {goals} goals, "
            f"there is room for {room} and {goal_room}",
            fix=f"Make the environment with max_blocks={max(count, goals)} or more",
        )
    for kind in ("block", "goal"):
        rows[f"{kind}/used"][row] = False
        rows[f"{kind}/position"][row] = 0.0
        rows[f"{kind}/orientation"][row] = (0.0, 0.0, 0.0, 1.0)
        rows[f"{kind}/size"][row] = 0.065
    for key in ("block/linear_velocity", "block/angular_velocity"):
        rows[key][row] = 0.0
    rows["block/used"][row, :count], rows["goal/used"][row, :goals] = True, True
    rows["block/size"][row, :count] = shape.sizes
    rows["block/position"][row, :count] = shape.starts
    if shape.yaws is not None:
        rows["block/orientation"][row, :count] = from_yaw(shape.yaws)
    rows["goal/size"][row, :goals] = shape.sizes[shape.wanted]
    rows["goal/position"][row, :goals] = shape.goals[shape.wanted]
    if shape.turns is not None:
        rows["goal/orientation"][row, :goals] = shape.turns[shape.wanted]
    if shape.colors is not None:
        rows["block/color"][row] = shape.colors
    return None


def scatter(
    rng: np.random.Generator, sizes: Array, robot: tuple[Capsules, Array, Array]
) -> tuple[Array, Array]:
    """Returns places (K, 3) and yaws (K,) on the floor where blocks hardly touch anything.

    Each block gets the first free one of some places even over a disc; if none is free on the
    floor, one in the air above it, as the original does.

    Args:
        rng: draws the places.
        sizes: full edges, (K, 3), m.
        robot: link capsules, joint angles (9,) and hinge height.
    """
    placed = _solids(np.zeros((0, 3)), np.zeros((0, 4)), np.zeros((0, 3)))
    places, yaws = [], []
    for size in sizes:
        radius = _DISC * np.sqrt(rng.random(2 * _TRIES))
        angle, yaw = rng.uniform(-np.pi, np.pi, (2, 2 * _TRIES))
        lift = np.where(np.arange(2 * _TRIES) < _TRIES, 0.0, rng.uniform(0.0, 0.15, 2 * _TRIES))
        place = np.stack(
            [radius * np.cos(angle), radius * np.sin(angle), size[2] / 2 + lift], axis=1
        )
        turn = from_yaw(yaw)
        tried = _solids(place, turn, np.broadcast_to(size, place.shape))
        depth = np.maximum(box_depth(tried, placed), robot_depth(*robot, tried))
        best = int(np.argmax(depth < _CLEAR)) if (depth < _CLEAR).any() else int(np.argmin(depth))
        places.append(place[best])
        yaws.append(yaw[best])
        placed = _solids(np.array(places), from_yaw(np.array(yaws)), sizes[: len(places)])
    return np.array(places), np.array(yaws)


def _solids(place: Array, turn: Array, size: Array) -> BoxSet:
    names = tuple(str(k) for k in range(len(place)))
    return BoxSet(names, place[None], turn[None], size[None], np.ones((1, len(place)), dtype=bool))
