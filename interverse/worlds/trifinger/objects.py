"""The variables of blocks, goals and walls with their bounds, and the causal graph of all.

Positions are measured from the datum; bindings add it. A block that is not in use is parked.
The graph is declared once for any number of blocks and goals. Velocities of the next moment follow
from everything physical now (contact lets anything push anything), positions from positions and the
new velocities, the score from where blocks and goals are. Looks cause nothing.
"""

from __future__ import annotations

import functools
import math
from typing import Literal

import numpy as np

from interverse.core.arrays import Array, inverse, like, namespace, rotate, to_mujoco
from interverse.core.rng import Noise
from interverse.scm import Binding, Box, CausalGraph, Integers, UnitQuaternion, Variable
from interverse.scm.store import Rows
from interverse.scm.variable import Kind, Values
from interverse.worlds.trifinger.contacts import friction_bindings
from interverse.worlds.trifinger.robot import DATUM
from interverse.worlds.trifinger.scene import ArenaScene, Obstacle, parking_position
from interverse.worlds.trifinger.variables import (
    ARENA_CAUSES,
    MASS_DOMAIN,
    MASSES,
    ROBOT_CAUSES,
    SHADES,
    UNBOUNDED,
    Spaces,
    color,
    declare,
    friction,
)

Place = Literal["free", "pinned"] | Spaces | None
"""A and B of a cylindrical position: heights from half the object's size up to 0.15 m in A, 0.3 m
in B ("free"), or just that ("pinned"); two of one's own; None: neither it nor a turn has any."""

SIZES = (Box(0.055, 0.075, (3,)), Box(0.075, 0.095, (3,), open_low=True))
YAWS = (UnitQuaternion(yaw_only=True), None)

_POSITION = Box((-0.25, -0.25, -0.05), (0.25, 0.25, 0.5), (3,))
_CYLINDRICAL = Box((0.0, -2 * math.pi, -0.05), (0.35, 2 * math.pi, 0.5), (3,))
_SIZE = Box(0.01, 0.2, (3,))
_ROTATION = UnitQuaternion()
_LOWEST = -np.inf  # direction of `np.nextafter` that keeps a bound just outside an open box
COUNT = "obstacles/count"
_MOST_CUBES = 5
_CUBE_EDGE = 0.01  # m
_CUBES = (-0.15, -0.15, 0.0), (0.15, 0.15, 0.3)  # of their centres, m


def block_variables(
    scene: ArenaScene, i: int, *, place: Place = "free", sizes: Spaces = SIZES
) -> list[Variable]:
    """Returns the variables of one block.

    Args:
        scene: where its defaults stand.
        i: its number.
        place: A and B of its place.
        sizes: A and B of its size.
    """
    name = f"block_{i}"
    mesh = i < len(scene.blocks) and scene.blocks[i].mesh is not None
    out = [
        declare(
            f"{name}/mass",
            "latent",
            0.08,
            MASS_DOMAIN,
            spaces=MASSES,
            unit="kg",
            bindings=(Binding("body_mass", name),),
        ),
        declare(
            f"{name}/size",
            "latent",
            (0.065,) * 3,
            _SIZE,
            spaces=sizes,
            unit="m",
            cube=True,
            doc="Full edges. The block keeps its mass and stays on what it stands on.",
            bindings=() if mesh else (_half_size(name),),
        ),
        color(f"{name}/color", (1.0, 0.0, 0.0), SHADES, name),
        friction(f"{name}/friction", 1.0, friction_bindings(scene)),
        *_pose_variables(name, "state", place, parking_position(i)),
    ]
    turn, used = f"{name}/orientation", f"{name}/used"
    for quantity, most, unit, index, function, more in (
        ("linear", 2.0, "m/s", (0, 1, 2), _if_used, (used,)),
        ("angular", 30.0, "rad/s", (3, 4, 5), _own_spin, (turn, used)),
    ):
        velocity = f"{name}/{quantity}_velocity"
        bound = Binding("qvel", name, index, function=function, of=(velocity, *more))
        out.append(
            declare(
                velocity,
                "state",
                np.zeros(3),
                Box(-most, most, (3,)),
                unit=unit,
                doc="In the world frame.",
                bindings=(bound,),
            )
        )
    return out


def goal_variables(
    scene: ArenaScene, i: int, *, place: Place = "free", sizes: Spaces = SIZES
) -> list[Variable]:
    """Returns the variables of one goal; arguments as for `block_variables`."""
    name = f"goal_{i}"
    mesh = i < len(scene.goals) and scene.goals[i].mesh is not None
    return [
        declare(
            f"{name}/size",
            "goal",
            (0.065,) * 3,
            _SIZE,
            spaces=sizes,
            unit="m",
            cube=True,
            doc="Full edges.",
            bindings=() if mesh else (_half_size(name),),
        ),
        color(f"{name}/color", (0.0, 1.0, 0.0), SHADES, name),
        *_pose_variables(name, "goal", place, None),
    ]


def _pose_variables(
    name: str,
    kind: Kind,
    place: Place,
    parking: tuple[float, float, float] | None,
) -> list[Variable]:
    """Returns place and turn; `parking` is where a free body waits, None for a mocap body."""
    position, used = f"{name}/cartesian_position", f"{name}/used"
    if parking is None:
        place_binding = Binding("mocap_pos", name, function=above_datum)
        turn_binding = Binding("mocap_quat", name, function=to_mujoco)
    else:
        put = functools.partial(placed, parking)
        place_binding = Binding("qpos", name, (0, 1, 2), function=put, of=(position, used))
        turn_binding = Binding("qpos", name, (3, 4, 5, 6), function=to_mujoco)
    return [
        declare(
            position,
            kind,
            np.zeros(3),
            _POSITION,
            unit="m",
            doc="The centre; the height is measured from the datum.",
            bindings=(place_binding,),
        ),
        declare(
            f"{name}/cylindrical_position",
            kind,
            np.zeros(3),
            _CYLINDRICAL,
            spaces=cylindrical(f"{name}/size", place),
            unit="m, rad, m",
            doc="Radius, angle and height of the centre; it wins over a cartesian position.",
        ),
        declare(
            f"{name}/orientation",
            kind,
            (0.0, 0.0, 0.0, 1.0),
            _ROTATION,
            spaces=UNBOUNDED if place is None else YAWS,
            doc="Quaternion x, y, z, w.",
            bindings=(turn_binding,),
        ),
    ]


def obstacle_variables(scene: ArenaScene) -> list[Variable]:
    """Returns size and colour of the wall of pick_and_place."""
    wall = scene.obstacles[0]
    x, y = wall.size[:2]
    return [
        declare(
            "obstacle/size",
            "latent",
            wall.size,
            Box(0.005, 0.6, (3,)),
            spaces=(
                Box((x, y, 0.02), (x, y, 0.065), (3,)),
                Box((x, y, 0.065), (x, y, 0.1), (3,), open_low=True),
            ),
            unit="m",
            doc="Full edges of the wall; it stands on the floor at any height.",
            bindings=(_half_size(wall.name), obstacle_place(wall, 0)),
        ),
        color("obstacle/color", wall.color, SHADES, wall.name),
    ]


def spare_obstacles() -> tuple[Obstacle, ...]:
    """Returns the cubes a scene keeps ready, below the floor."""
    return tuple(
        Obstacle(name=f"obstacle_{i}", position=(0.0, 0.0, -3.0 - i), size=(_CUBE_EDGE,) * 3)
        for i in range(_MOST_CUBES)
    )


def count_variable(scene: ArenaScene) -> Variable:
    """Returns the variable that says how many cubes there are."""
    return declare(
        COUNT,
        "latent",
        0,
        Integers(0, _MOST_CUBES),
        spaces=(Integers(1, _MOST_CUBES), None),
        doc="Fixed cubes of 1 cm at random places of the arena.",
        bindings=tuple(obstacle_place(o, i) for i, o in enumerate(scene.obstacles)),
    )


def place_obstacles(rows: Rows, noise: Noise) -> None:
    """Puts the first cubes at addressed random places; the same ones whatever their number."""
    count = rows["obstacle/used"].shape[1]
    u = noise.uniform(COUNT, (count, 3))
    low, high = (np.array(corner) for corner in _CUBES)
    rows["obstacle/used"][:] = np.arange(count) < rows[COUNT][:, None]
    place = low + u * (high - low)
    rows["obstacle/position"][:] = np.where(
        rows["obstacle/used"][..., None], place, rows["obstacle/position"]
    )


def obstacle_place(obstacle: Obstacle, i: int) -> Binding:
    """Returns the binding that puts an obstacle where the store says, below the floor if unused."""
    put = functools.partial(placed, (0.0, 0.0, -3.0 - i))
    of = (f"obstacle_{i}/position", f"obstacle_{i}/used")
    return Binding("mocap_pos", obstacle.name, function=put, of=of)


# --- functions of bindings -----------------------------------------------------------------------


def _half_size(name: str) -> Binding:
    """Returns the binding of a box's edges; a mesh keeps the size it was compiled with."""
    return Binding("geom_size", name, None, 0.5)


def above_datum(position: Array) -> Array:
    """Returns world coordinates of points measured from the datum, (n, 3)."""
    return position + like((0.0, 0.0, DATUM), position)


def placed(parking: tuple[float, float, float], position: Array, used: Array) -> Array:
    """Returns world coordinates of objects in use, and where the others wait, (n, 3)."""
    xp = namespace(position)
    return xp.where(used[..., None], above_datum(position), like(parking, position))


def _if_used(value: Array, used: Array) -> Array:
    xp = namespace(value)
    return xp.where(used[..., None], value, xp.zeros_like(value))


def _own_spin(velocity: Array, orientation: Array, used: Array) -> Array:
    """Returns angular velocities in the block's own frame, as MuJoCo keeps them, (n, 3)."""
    return _if_used(rotate(inverse(orientation), velocity), used)


# --- bounds that follow other variables ----------------------------------------------------------


def cylindrical(size: str, place: Place) -> Spaces:
    """Returns A and B of a cylindrical position of an object whose full edges are `size`."""
    if not isinstance(place, str):
        return place or UNBOUNDED

    def bounds(part: int, values: Values) -> Box:
        half = np.asarray(values[size], dtype=np.float64)[..., 2] / 2
        if place == "pinned":
            return ring(part, half, half)
        low = np.nextafter(half, _LOWEST) if part else half  # only the shared bound is open
        return ring(part, low, np.full_like(half, (0.15, 0.3)[part]))

    return functools.partial(bounds, 0), functools.partial(bounds, 1)


def ring(part: int, low: Array, high: Array) -> Box:
    """Returns the ring of A (part 0, radius to 0.11) or B (1, 0.11 to 0.15) between two heights."""
    inner, outer = ((0.0, 0.11), (0.11, 0.15))[part]
    turn = -math.pi if part == 0 else float(np.nextafter(-math.pi, _LOWEST))
    lows = np.stack([np.full_like(low, inner), np.full_like(low, turn), low], axis=-1)
    highs = np.stack([np.full_like(high, outer), np.full_like(high, math.pi), high], axis=-1)
    return Box(lows, highs, (3,), open_low=part == 1)


def to_cylindrical(position: Array) -> Array:
    """Returns radius, angle and height of points x, y, z, (..., 3)."""
    xp = namespace(position)
    x, y, z = position[..., 0], position[..., 1], position[..., 2]
    return xp.stack([xp.sqrt(x * x + y * y), xp.atan2(y, x), z], axis=-1)


def to_cartesian(position: Array) -> Array:
    """Returns x, y, z of points given by radius, angle and height, (..., 3)."""
    xp = namespace(position)
    radius, angle, z = position[..., 0], position[..., 1], position[..., 2]
    return xp.stack([radius * xp.cos(angle), radius * xp.sin(angle), z], axis=-1)


Edge = tuple[str, str]

_BLOCK = (
    "mass",
    "size",
    "friction",
    "cartesian_position",
    "orientation",
    "linear_velocity",
    "angular_velocity",
)


@functools.lru_cache(maxsize=32)  # of hundreds of variables: built once, never changed
def causal_graph(
    names: tuple[str, ...],
    *,
    blocks: int,
    goals: int,
    tip_commands: bool = False,
    edges: tuple[Edge, ...] = (),
    constraints: tuple[Edge, ...] = (),
    scored: tuple[str, ...] = (),
    rewarded: tuple[str, ...] = (),
) -> CausalGraph:
    """Returns the graph over a world's variables.

    Args:
        names: the variables.
        blocks: how many blocks there are.
        goals: how many goals.
        tip_commands: whether actions say where fingertips go: joint angles follow from that.
        edges: what the task adds within a moment; they hold in the next one too.
        constraints: pairs of variables that describe one thing.
        scored: what the fractional success follows from.
        rewarded: what the reward follows from.
    """
    block_names = [f"block_{i}" for i in range(blocks)]
    goal_names = [f"goal_{i}" for i in range(goals)]
    obstacle = [n for n in names if n in ("obstacle/size", "obstacles/count")]
    pieces = (f"{b}/{q}" for b in block_names for q in _BLOCK)
    causes = [*ARENA_CAUSES, *ROBOT_CAUSES, *pieces, *obstacle]
    out = [(cause, "joint_velocities'") for cause in causes]
    # what commands follow from: a robot that is placed holds still
    wait, period = "robot/command_wait", "robot/control_period"
    kinematics = ("joint_positions", "robot/height") if tip_commands else ()
    out += [(c, "robot/commands'") for c in ("robot/commands", wait, *kinematics)]
    out += [("joint_positions", "robot/commands"), (wait, f"{wait}'"), (period, f"{wait}'")]
    out += [("joint_positions", "joint_positions'"), ("joint_velocities'", "joint_positions'")]
    for block in block_names:
        for turn, place in (("linear", "cartesian_position"), ("angular", "orientation")):
            out += [(cause, f"{block}/{turn}_velocity'") for cause in causes]
            out += [(f"{block}/{turn}_velocity'", f"{block}/{place}'")]
            out += [(f"{block}/{place}", f"{block}/{place}'")]
        out.append((f"{block}/cartesian_position'", f"{block}/cylindrical_position'"))
    stepped = {effect for _, effect in out}
    for mark in ("", "'"):
        out.append((f"joint_positions{mark}", f"end_effector_positions{mark}"))
        out.append(("robot/height", f"end_effector_positions{mark}"))
        for cause in scored:  # what a step moves counts as the step leaves it
            moved = cause == "end_effector_positions" or f"{cause}'" in stepped
            out.append((f"{cause}{mark}" if moved else cause, f"fractional_success{mark}"))
    out += edges
    twins = [
        (f"{o}/cartesian_position", f"{o}/cylindrical_position")
        for o in (*block_names, *goal_names)
    ]
    return CausalGraph.build(names, out, [*twins, *constraints], outcomes={"reward": rewarded})
