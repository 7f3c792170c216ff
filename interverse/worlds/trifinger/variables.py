"""Every variable of the TriFinger worlds, declared once: name, bounds, A and B, and its slot.

A slot says which array of the world's store holds the variable: `block_2/mass` is
`store["block/mass"][:, 2]`. Bounds that depend on other variables are functions of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from interverse.scm import Binding, Box, Integers, Space, UnitQuaternion, Variable
from interverse.scm.variable import Bounds, Kind, Values
from interverse.worlds.trifinger.robot import HINGED, REST
from interverse.worlds.trifinger.scene import FLOOR_TEXTURES, LIGHTS, OBSERVATION_CAMERAS, Scene

Array = Any  # a NumPy array or a Torch tensor

FINGERS = ("finger_0", "finger_1", "finger_2")
LINK_NAMES = tuple(link.name for link in HINGED)
DELAY_LIMIT = 5  # steps that a command can wait

SHADES = (Box(0.5, 1.0, (3,)), Box(0.0, 0.5, (3,), open_high=True))  # light is A, dark is B
TINTS = (Box(0.0, 0.5, (3,)), Box(0.5, 1.0, (3,), open_low=True))  # dark is A, light is B
MASSES = (Box(0.015, 0.045), Box(0.045, 0.1, open_low=True))
SIZES = (Box(0.055, 0.075, (3,)), Box(0.075, 0.095, (3,), open_low=True))
FRICTIONS = (Box(0.3, 0.6), Box(0.6, 0.8, open_low=True))
YAWS = (UnitQuaternion(yaw_only=True), None)
GENERATOR_MASSES = (Box(0.02, 0.06), Box(0.06, 0.08, open_low=True))
UNBOUNDED: tuple[None, None] = (None, None)

_COLOR = Box(0.0, 1.0, (3,))
_POSITION = Box((-0.25, -0.25, -0.05), (0.25, 0.25, 0.5), (3,))
_CYLINDRICAL = Box((0.0, -2 * math.pi, -0.05), (0.35, 2 * math.pi, 0.5), (3,))
_SIZE = Box(0.01, 0.2, (3,))
_MASS = Box(0.001, 2.0)
_FRICTION = Box(0.0, 2.0)
_ROTATION = UnitQuaternion()
_LOWEST = -np.inf  # direction of `np.nextafter` that keeps a bound just outside an open box

Spaces = tuple[Bounds | None, Bounds | None]
Heights = Literal["free", "pinned"] | tuple[tuple[float, float], tuple[float, float]]


@final
@dataclass(frozen=True, slots=True)
class Slot:
    """Where a variable's values are kept: an array of the store, an index after the world axis."""

    key: str
    index: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Declared:
    """A variable and where it is kept; None for one that is computed when read."""

    variable: Variable
    slot: Slot | None


def declare(
    name: str,
    kind: Kind,
    default: Any,
    domain: Space,
    *,
    slot: Slot | None,
    spaces: Spaces = UNBOUNDED,
    **more: Any,
) -> Declared:
    """Returns a declared variable; `spaces` is the pair A, B."""
    a, b = spaces
    variable = Variable(
        name=name, kind=kind, default=default, domain=domain, space_a=a, space_b=b, **more
    )
    return Declared(variable, slot)


# --- arena and robot -----------------------------------------------------------------------------


def arena_variables(scene: Scene) -> list[Declared]:
    """Returns gravity, floor, stage, light and cameras."""
    key = LIGHTS[0]
    out = [
        declare(
            "gravity",
            "latent",
            scene.gravity,
            Box(-20.0, 0.0),
            slot=Slot("gravity"),
            spaces=(Box(-10.0, -7.0), Box(-7.0, -4.0, open_low=True)),
            unit="m/s2",
            doc="Vertical acceleration of free fall; negative is down.",
            bindings=(Binding("opt.gravity", None, 2),),
        ),
        _friction("floor/friction", scene.floor_friction, Slot("floor/friction"), FRICTIONS),
        _friction("stage/friction", scene.stage_friction, Slot("stage/friction"), FRICTIONS),
        _color("floor/color", scene.floor_color, Slot("floor/color"), SHADES, "floor"),
        _color("stage/color", scene.stage_color, Slot("stage/color"), TINTS, "stage"),
        declare(
            "floor/texture",
            "appearance",
            FLOOR_TEXTURES.index(scene.floor_texture),
            Integers(0, len(FLOOR_TEXTURES) - 1),
            slot=Slot("floor/texture"),
            doc=f"Pattern of the floor: {', '.join(FLOOR_TEXTURES)}.",
        ),
        declare(
            "light/direction",
            "appearance",
            key.direction,
            Box((-1.0, -1.0, -1.0), (1.0, 1.0, -0.1), (3,)),
            slot=Slot("light/direction"),
            doc="The way the rays of the main light travel.",
            bindings=(Binding("light_dir", key.name),),
        ),
        declare(
            "light/color",
            "appearance",
            key.color,
            _COLOR,
            slot=Slot("light/color"),
            doc="Colour and strength of the main light.",
            bindings=(Binding("light_diffuse", key.name),),
        ),
    ]
    for i, camera in enumerate(OBSERVATION_CAMERAS):
        low, high = np.array(camera.eye) - 0.2, np.array(camera.eye) + 0.2
        out += [
            declare(
                f"{camera.name}/position",
                "appearance",
                camera.eye,
                Box(low, high, (3,)),
                slot=Slot("camera/position", (i,)),
                unit="m",
                doc="Place of the camera in the world.",
            ),
            declare(
                f"{camera.name}/rotation",
                "appearance",
                (0.0, 0.0, 0.0),
                Box(-0.5, 0.5, (3,)),
                slot=Slot("camera/rotation", (i,)),
                unit="rad",
                doc="Rotation vector by which the camera is turned from its default.",
            ),
        ]
    return out


def robot_variables(scene: Scene, start: tuple[float, ...] = REST) -> list[Declared]:
    """Returns joints, fingertips, links, and how commands reach the robot."""
    low, high = np.array([link.limits for link in HINGED] * 3).T
    least, most = np.array([link.action_limits for link in HINGED] * 3).T
    middle = np.array((-0.69, 0.0, 0.0) * 3)
    out = [
        declare(
            "joint_positions",
            "state",
            start,
            Box(low, high, (9,)),
            slot=Slot("joint_positions"),
            spaces=(Box(least, middle, (9,)), Box(middle, most, (9,), open_low=True)),
            unit="rad",
            doc="Angles of upper, middle and lower hinge, finger by finger.",
        ),
        declare(
            "joint_velocities",
            "state",
            np.zeros(9),
            Box(-20.0, 20.0, (9,)),
            slot=Slot("joint_velocities"),
            unit="rad/s",
        ),
        declare(
            "end_effector_positions",
            "state",
            np.zeros(9),
            Box(-1.0, 1.0, (9,)),
            slot=None,
            unit="m",
            read_only=True,
            doc="Fingertips, finger by finger; heights from the datum.",
        ),
        declare(
            "robot/height",
            "robot",
            scene.robot_height,
            Box(0.25, 0.45),
            slot=Slot("robot/height"),
            unit="m",
            doc="World height of the first hinges.",
            bindings=(Binding("body_pos", "robot", 2),),
        ),
        declare(
            "robot/joint_damping",
            "robot",
            scene.joint_damping,
            Box(0.0, 0.1),
            slot=Slot("robot/joint_damping"),
            unit="N m s/rad",
            doc="Viscous damping of every hinge, beside that of the controller.",
        ),
        *_hook_variables(),
    ]
    for f, finger in enumerate(FINGERS):
        for j, link in enumerate(LINK_NAMES):
            out += _link_variables(scene, finger, f, link, j)
    return out


def _hook_variables() -> list[Declared]:
    """Returns what a real robot adds: late commands, a slower controller, noisy sensors."""
    return [
        declare(
            "robot/action_delay",
            "robot",
            0,
            Integers(0, DELAY_LIMIT),
            slot=Slot("robot/action_delay"),
            unit="steps",
            doc="Steps that pass before a command reaches the motors.",
        ),
        declare(
            "robot/control_period",
            "robot",
            1,
            Integers(1, 10),
            slot=Slot("robot/control_period"),
            unit="steps",
            doc="Steps for which a command is held: the control rate is 1 / (period x step time).",
        ),
        declare(
            "robot/observation_noise",
            "robot",
            0.0,
            Box(0.0, 0.5),
            slot=Slot("robot/observation_noise"),
            doc="Standard deviation of sensor noise, as a share of half an observation's range.",
        ),
    ]


def _link_variables(scene: Scene, finger: str, f: int, link: str, j: int) -> list[Declared]:
    name = f"{finger}/{link}"
    return [
        declare(
            f"{name}/mass",
            "latent",
            scene.link_masses[f][j],
            _MASS,
            slot=Slot("link/mass", (f, j)),
            spaces=MASSES,
            unit="kg",
            doc="The inertia scales along.",
            bindings=(Binding("body_mass", f"{finger}_{link}"),),
        ),
        _color(
            f"{name}/color",
            scene.link_colors[f][j + 1],
            Slot("link/color", (f, j)),
            TINTS,
            f"{finger}_{link}",
        ),
    ]


# --- objects -------------------------------------------------------------------------------------


def block_variables(
    scene: Scene, i: int, *, heights: Heights = "free", sizes: Spaces = SIZES
) -> list[Declared]:
    """Returns the variables of one block.

    Args:
        scene: where its defaults stand.
        i: its number.
        heights: how A and B bound its height: see `cylindrical`.
        sizes: A and B of its size.
    """
    name, slots = f"block_{i}", (i,)
    out = [
        declare(
            f"{name}/mass",
            "latent",
            0.08,
            _MASS,
            slot=Slot("block/mass", slots),
            spaces=MASSES,
            unit="kg",
            bindings=(Binding("body_mass", name),),
        ),
        declare(
            f"{name}/size",
            "latent",
            (0.065,) * 3,
            _SIZE,
            slot=Slot("block/size", slots),
            spaces=sizes,
            unit="m",
            doc="Full edges. The block is set on the floor again and keeps its mass.",
            bindings=(Binding("geom_size", name, None, 0.5),),
        ),
        _color(f"{name}/color", (1.0, 0.0, 0.0), Slot("block/color", slots), SHADES, name),
        _friction(f"{name}/friction", 1.0, Slot("block/friction", slots)),
        *_pose_variables(name, Slot("block/position", slots), "state", heights),
    ]
    for quantity, most, unit in (("linear", 2.0, "m/s"), ("angular", 30.0, "rad/s")):
        out.append(
            declare(
                f"{name}/{quantity}_velocity",
                "state",
                np.zeros(3),
                Box(-most, most, (3,)),
                slot=Slot(f"block/{quantity}_velocity", slots),
                unit=unit,
                doc="In the world frame.",
            )
        )
    return out


def goal_variables(
    i: int, *, heights: Heights = "free", bounded: bool = True, sizes: Spaces = SIZES
) -> list[Declared]:
    """Returns the variables of one goal; `bounded=False` leaves its pose without A and B."""
    name, slots = f"goal_{i}", (i,)
    return [
        declare(
            f"{name}/size",
            "goal",
            (0.065,) * 3,
            _SIZE,
            slot=Slot("goal/size", slots),
            spaces=sizes,
            unit="m",
            doc="Full edges.",
        ),
        _color(f"{name}/color", (0.0, 1.0, 0.0), Slot("goal/color", slots), SHADES, name),
        *_pose_variables(name, Slot("goal/position", slots), "goal", heights, bounded=bounded),
    ]


def _pose_variables(
    name: str, slot: Slot, kind: Kind, heights: Heights, *, bounded: bool = True
) -> list[Declared]:
    place = cylindrical(f"{name}/size", heights) if bounded else UNBOUNDED
    return [
        declare(
            f"{name}/cartesian_position",
            kind,
            np.zeros(3),
            _POSITION,
            slot=slot,
            unit="m",
            doc="The centre; the height is measured from the datum.",
        ),
        declare(
            f"{name}/cylindrical_position",
            kind,
            np.zeros(3),
            _CYLINDRICAL,
            slot=None,
            spaces=place,
            unit="m, rad, m",
            doc="Radius, angle and height of the centre; it wins over a cartesian position.",
        ),
        declare(
            f"{name}/orientation",
            kind,
            (0.0, 0.0, 0.0, 1.0),
            _ROTATION,
            slot=Slot(slot.key.replace("position", "orientation"), slot.index),
            spaces=YAWS if bounded else UNBOUNDED,
            doc="Quaternion x, y, z, w.",
        ),
    ]


def obstacle_variables(scene: Scene) -> list[Declared]:
    """Returns size and colour of the wall of pick_and_place."""
    wall = scene.obstacles[0]
    x, y = wall.size[:2]
    return [
        declare(
            "obstacle/size",
            "latent",
            wall.size,
            Box(0.005, 0.6, (3,)),
            slot=Slot("obstacle/size", (0,)),
            spaces=(
                Box((x, y, 0.02), (x, y, 0.065), (3,)),
                Box((x, y, 0.065), (x, y, 0.1), (3,), open_low=True),
            ),
            unit="m",
            doc="Full edges of the wall; it stands on the floor at any height.",
            bindings=(Binding("geom_size", wall.name, None, 0.5),),
        ),
        _color("obstacle/color", wall.color, Slot("obstacle/color", (0,)), SHADES, wall.name),
    ]


def success_variable() -> Declared:
    """Returns the read-only share of the goal that is filled."""
    return declare(
        "fractional_success",
        "goal",
        0.0,
        Box(0.0, np.inf),
        slot=None,
        read_only=True,
        doc="Share of the goal's volume that blocks fill.",
    )


def _friction(name: str, default: float, slot: Slot, spaces: Spaces = UNBOUNDED) -> Declared:
    return declare(
        name,
        "latent",
        default,
        _FRICTION,
        slot=slot,
        spaces=spaces,
        doc="Sliding friction; that of two surfaces is the product of theirs.",
    )


def _color(name: str, default: Any, slot: Slot, spaces: Spaces, material: str) -> Declared:
    return declare(
        name,
        "appearance",
        default,
        _COLOR,
        slot=slot,
        spaces=spaces,
        doc="Red, green, blue.",
        bindings=(Binding("mat_rgba", material, (0, 1, 2)),),
    )


# --- bounds that follow other variables ----------------------------------------------------------


def cylindrical(size: str, heights: Heights) -> tuple[Bounds, Bounds]:
    """Returns A and B of a cylindrical position.

    Args:
        size: the variable whose third component is the object's height h.
        heights: "free" (from h / 2 up to 0.15 in A, 0.3 in B), "pinned" (h / 2), or two ranges.
    """

    def bounds(part: int, values: Values) -> Box:
        half = np.asarray(values[size], dtype=np.float64)[..., 2] / 2
        if heights == "free":
            low, high = half, np.full_like(half, (0.15, 0.3)[part])
            low = np.nextafter(low, _LOWEST) if part else low  # only the shared bound is open
        elif heights == "pinned":
            low, high = half, half
        else:
            low, high = (np.full_like(half, z) for z in heights[part])  # type: ignore[misc]
        return ring(part, low, high)

    return (lambda v: bounds(0, v)), (lambda v: bounds(1, v))


def ring(part: int, low: Array, high: Array) -> Box:
    """Returns the ring of A (part 0, radius to 0.11) or B (1, 0.11 to 0.15) between two heights."""
    inner, outer = ((0.0, 0.11), (0.11, 0.15))[part]
    turn = -math.pi if part == 0 else float(np.nextafter(-math.pi, _LOWEST))
    lows = np.stack([np.full_like(low, inner), np.full_like(low, turn), low], axis=-1)
    highs = np.stack([np.full_like(high, outer), np.full_like(high, math.pi), high], axis=-1)
    return Box(lows, highs, (3,), open_low=part == 1)


def to_cylindrical(position: Array) -> Array:
    """Returns radius, angle and height of points x, y, z, (..., 3)."""
    xp = array_namespace(position)
    x, y, z = position[..., 0], position[..., 1], position[..., 2]
    return xp.stack([xp.sqrt(x * x + y * y), xp.atan2(y, x), z], axis=-1)


def to_cartesian(position: Array) -> Array:
    """Returns x, y, z of points given by radius, angle and height, (..., 3)."""
    xp = array_namespace(position)
    radius, angle, z = position[..., 0], position[..., 1], position[..., 2]
    return xp.stack([radius * xp.cos(angle), radius * xp.sin(angle), z], axis=-1)


def values_of(
    rows: Mapping[str, Array], read: Callable[[str], Array]
) -> Mapping[str, NDArray[Any]]:
    """Returns a mapping that looks in `rows` first and then asks `read`."""
    return _Reader(rows, read)


class _Reader(dict[str, Any]):
    def __init__(self, rows: Mapping[str, Array], read: Callable[[str], Array]) -> None:
        super().__init__(rows)
        self._read = read

    def __missing__(self, name: str) -> Array:
        return self._read(name)
