"""Rules of inertia, which follows from mass and size: data, and formulas as array functions.

No simulator derives a body's inertia when its mass or its geom's size is edited, so a scene names
the bodies that follow a rule, and the engine applies it after every edit. The formulas round as
MuJoCo's compiler does: an edited model equals a recompiled one to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from interverse.core.arrays import Array, namespace


@final
@dataclass(frozen=True, slots=True)
class Solid:
    """A body of one homogeneous geom: inertia from its mass and the geom's size."""

    body: str
    geom: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledInertia:
    """A body whose inertia grows in proportion to its mass, from a reference pair."""

    body: str
    mass: float  # reference, kg
    inertia: tuple[float, float, float]  # principal, at the reference mass, kg m2

    def at(self, mass: float) -> tuple[float, float, float]:
        """Returns the inertia at another mass: for a scene to compile, as the engine edits."""
        x, y, z = self.inertia
        ratio = mass / self.mass
        return x * ratio, y * ratio, z * ratio


def scaled_inertia(rule: ScaledInertia, mass: Array) -> Array:
    """Returns principal inertia (..., 3) in proportion to mass (...), from the reference pair."""
    ratio = mass / rule.mass
    return _stack(mass, *(entry * ratio for entry in rule.inertia))


def box_inertia(mass: Array, size: Array) -> Array:
    """Returns principal inertia (..., 3) of solid boxes: mass (...), half sizes (..., 3)."""
    x, y, z = (size[..., i] * size[..., i] for i in range(3))
    return _stack(mass, mass * (y + z) / 3, mass * (x + z) / 3, mass * (x + y) / 3)


def sphere_inertia(mass: Array, size: Array) -> Array:
    """Returns principal inertia (..., 3) of solid spheres; size[..., 0] is the radius."""
    one = 2 * mass * size[..., 0] * size[..., 0] / 5
    return _stack(mass, one, one, one)


def cylinder_inertia(mass: Array, size: Array) -> Array:
    """Returns principal inertia (..., 3) of solid cylinders; size: radius, half height."""
    radius, height = size[..., 0], 2 * size[..., 1]
    side = mass * (3 * radius * radius + height * height) / 12
    return _stack(mass, side, side, mass * radius * radius / 2)


def capsule_inertia(mass: Array, size: Array) -> Array:
    """Returns principal inertia (..., 3) of solid capsules; size: radius, half height."""
    radius, height = size[..., 0], 2 * size[..., 1]
    caps = mass * 4 * radius / (4 * radius + 3 * height)
    tube = mass - caps
    cap = 2 * caps * radius * radius / 5
    side = tube * (3 * radius * radius + height * height) / 12
    side = side + (cap + caps * height * (3 * radius + 2 * height) / 8)
    return _stack(mass, side, side, tube * radius * radius / 2 + cap)


SOLIDS: dict[str, Callable[[Array, Array], Array]] = {
    "box": box_inertia,
    "capsule": capsule_inertia,
    "cylinder": cylinder_inertia,
    "sphere": sphere_inertia,
}


def _stack(like: Array, *parts: Array) -> Array:
    return namespace(like).stack(parts, axis=-1)
