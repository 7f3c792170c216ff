"""The variables of blocks, goals and walls, and the bounds that follow their sizes."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from interverse.scm import Binding, Box, UnitQuaternion
from interverse.scm.variable import Bounds, Kind, Values
from interverse.sim.arrays import namespace
from interverse.worlds.trifinger.scene import Scene
from interverse.worlds.trifinger.variables import (
    MASS_DOMAIN,
    MASSES,
    SHADES,
    UNBOUNDED,
    Declared,
    Slot,
    Spaces,
    color,
    declare,
    friction,
)

Array = Any  # a NumPy array or a Torch tensor
Heights = Literal["free", "pinned"] | tuple[tuple[float, float], tuple[float, float]]

SIZES = (Box(0.055, 0.075, (3,)), Box(0.075, 0.095, (3,), open_low=True))
YAWS = (UnitQuaternion(yaw_only=True), None)

_POSITION = Box((-0.25, -0.25, -0.05), (0.25, 0.25, 0.5), (3,))
_CYLINDRICAL = Box((0.0, -2 * math.pi, -0.05), (0.35, 2 * math.pi, 0.5), (3,))
_SIZE = Box(0.01, 0.2, (3,))
_ROTATION = UnitQuaternion()
_LOWEST = -np.inf  # direction of `np.nextafter` that keeps a bound just outside an open box


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
            MASS_DOMAIN,
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
        color(f"{name}/color", (1.0, 0.0, 0.0), Slot("block/color", slots), SHADES, name),
        friction(f"{name}/friction", 1.0, Slot("block/friction", slots)),
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
        color(f"{name}/color", (0.0, 1.0, 0.0), Slot("goal/color", slots), SHADES, name),
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
        color("obstacle/color", wall.color, Slot("obstacle/color", (0,)), SHADES, wall.name),
    ]


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
    xp = namespace(position)
    x, y, z = position[..., 0], position[..., 1], position[..., 2]
    return xp.stack([xp.sqrt(x * x + y * y), xp.atan2(y, x), z], axis=-1)


def to_cartesian(position: Array) -> Array:
    """Returns x, y, z of points given by radius, angle and height, (..., 3)."""
    xp = namespace(position)
    radius, angle, z = position[..., 0], position[..., 1], position[..., 2]
    return xp.stack([radius * xp.cos(angle), radius * xp.sin(angle), z], axis=-1)
