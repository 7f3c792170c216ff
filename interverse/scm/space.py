"""Sets of values a variable may take: boxes, integers, choices, angles, rotations.

A space answers four questions: its bounds (`low`, `high`), whether values lie in it (`inside`, one
answer per world; `contains`, one answer), and how uniform numbers map into it (`from_uniform`,
hence `sample`). Spaces are frozen and serialise to JSON.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from interverse.core.errors import InvalidValueError

FloatArray = NDArray[np.float64]
_LENGTH_TOLERANCE = 1e-3  # of a quaternion's squared length: one written with four digits is meant
_ROUNDING = 1e-9  # what turning one description of a value into another may cost
_TILT_TOLERANCE = 1e-6  # of the components that a turn about the vertical does not have


class Space(ABC):
    """A set of arrays of one shape."""

    shape: tuple[int, ...]
    integral: bool = False

    @property
    @abstractmethod
    def _bounds(self) -> tuple[ArrayLike, ArrayLike]:
        """The least and the greatest value, of each component or of all."""

    @functools.cached_property
    def _ends(self) -> list[NDArray[Any]]:
        """The bounds of each component, with a leading world axis where they depend on values."""
        kind, whole = np.int64 if self.integral else np.float64, len(self.shape)
        ends = [np.array(bound, dtype=kind) for bound in self._bounds]
        return [e if e.ndim > whole else np.array(np.broadcast_to(e, self.shape)) for e in ends]

    @property
    def low(self) -> NDArray[Any]:
        """The least value of each component."""
        return self._ends[0].copy()

    @property
    def high(self) -> NDArray[Any]:
        """The greatest value of each component."""
        return self._ends[1].copy()

    @abstractmethod
    def inside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether each of (..., *shape) values lies here, as (...)."""

    @abstractmethod
    def from_uniform(self, uniform: FloatArray) -> NDArray[Any]:
        """Returns values for (..., draws) numbers in [0, 1), as (..., *shape)."""

    @property
    def rule(self) -> str:
        """What a value must be beyond lying between low and high, for messages; mostly nothing."""
        return ""

    @property
    def draws(self) -> int:
        """How many uniform numbers one value needs."""
        return math.prod(self.shape)

    def contains(self, value: ArrayLike) -> bool:
        """Returns whether one value of this shape lies here."""
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or array.shape != self.shape:
            return False
        return bool(np.all(np.isfinite(array)) and np.all(self.inside(array)))

    def sample(self, rng: np.random.Generator) -> NDArray[Any]:
        """Returns one value, uniform in the space."""
        return self.from_uniform(rng.random(self.draws))

    def nearest(self, values: NDArray[Any]) -> NDArray[Any]:
        """Returns the point of the space next to each of (..., *shape) values."""
        inside = np.clip(np.rint(values) if self.integral else values, *self._ends)
        return inside.astype(np.int64) if self.integral else inside

    def same(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether each two of (..., *shape) values are one, but for rounding."""
        return self._all(np.abs(a - b) <= _ROUNDING * (1.0 + np.abs(a)))

    def _fix_bounds(self) -> None:
        """Keeps bounds that are arrays as copies that cannot be changed: worlds share spaces."""
        for name in ("least", "most"):
            if not np.isscalar(bound := getattr(self, name)):
                fixed = np.array(bound, dtype=np.int64 if self.integral else np.float64)
                fixed.flags.writeable = False
                object.__setattr__(self, name, fixed)

    def _shaped(self, uniform: FloatArray) -> FloatArray:
        return uniform.reshape((*uniform.shape[:-1], *self.shape))

    def _all(self, holds: NDArray[np.bool_]) -> NDArray[np.bool_]:
        axes = tuple(range(-len(self.shape), 0))
        return np.asarray(np.all(holds, axis=axes) if axes else holds)


@final
@dataclass(frozen=True, eq=False)
class Box(Space):
    """Real arrays between two bounds, per component; a bound may be open (excluded).

    Bounds may carry a leading world axis when they depend on other variables.

    >>> Box(0.3, 0.6).contains(0.6), Box(0.6, 0.8, open_low=True).contains(0.6)
    (True, False)
    """

    least: ArrayLike
    most: ArrayLike
    shape: tuple[int, ...] = ()
    open_low: bool = False
    open_high: bool = False

    def __post_init__(self) -> None:
        self._fix_bounds()
        if np.any(self.low > self.high):
            raise InvalidValueError(
                f"a Box needs low <= high, got low {self.low} and high {self.high}"
            )

    @property
    def _bounds(self) -> tuple[ArrayLike, ArrayLike]:
        return self.least, self.most

    def inside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether each value lies between the bounds.

        A component whose two bounds are equal is pinned and never open; the bound may have been
        rounded to float32, as worlds on a device keep their values.
        """
        low, high = self._ends
        free = low < high
        one = np.where(free, np.nan, low)
        pinned = np.abs(values - one) <= 2.0**-23 * np.abs(one)
        above = np.where(self.open_low & free, values > low, values >= low)
        below = np.where(self.open_high & free, values < high, values <= high)
        return self._all((above & below) | pinned)

    def from_uniform(self, uniform: FloatArray) -> FloatArray:
        """Returns values uniform in the box; rounding never lands on an open end."""
        low, high = self._ends
        return self.nearest(low + self._shaped(uniform) * (high - low))

    def nearest(self, values: NDArray[Any]) -> FloatArray:
        """Returns the point of the box next to each value, never on an open end."""
        low, high = self._ends
        values, free = np.clip(values, low, high), low < high
        if self.open_low:
            values = np.where(free & (values <= low), np.nextafter(low, high), values)
        if self.open_high:
            values = np.where(free & (values >= high), np.nextafter(high, low), values)
        return np.asarray(values)


@final
@dataclass(frozen=True, eq=False)
class Integers(Space):
    """Whole numbers between two bounds, both included."""

    least: ArrayLike
    most: ArrayLike
    shape: tuple[int, ...] = ()
    integral = True

    def __post_init__(self) -> None:
        self._fix_bounds()

    @property
    def _bounds(self) -> tuple[ArrayLike, ArrayLike]:
        return self.least, self.most

    def inside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether each value is whole and between the bounds."""
        low, high = self._ends
        return self._all((values == np.floor(values)) & (values >= low) & (values <= high))

    def from_uniform(self, uniform: FloatArray) -> NDArray[np.int64]:
        """Returns whole numbers, each equally likely."""
        low, high = self._ends
        drawn = np.floor(self._shaped(uniform) * (high - low + 1))
        return np.asarray(low + drawn.astype(np.int64))


def boolean(shape: tuple[int, ...] = ()) -> Integers:
    """Returns the space of zeros and ones."""
    return Integers(0, 1, shape)


@final
@dataclass(frozen=True, eq=False)
class Choice(Space):
    """Integers from a list of options."""

    options: tuple[int, ...]
    shape: tuple[int, ...] = ()
    integral = True

    @property
    def _bounds(self) -> tuple[ArrayLike, ArrayLike]:
        return min(self.options), max(self.options)

    def inside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether each value is one of the options."""
        return self._all(np.isin(values, self.options))

    def nearest(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Returns the option next to each value."""
        options = np.asarray(self.options, dtype=np.int64)
        return options[np.argmin(np.abs(np.asarray(values)[..., None] - options), axis=-1)]

    def from_uniform(self, uniform: FloatArray) -> NDArray[np.int64]:
        """Returns options, each equally likely."""
        chosen = (self._shaped(uniform) * len(self.options)).astype(np.int64)
        return np.asarray(np.asarray(self.options, dtype=np.int64)[chosen])


@final
@dataclass(frozen=True, eq=False)
class Angle(Space):
    """Angles in [-pi, pi], in radians."""

    shape: tuple[int, ...] = ()

    @property
    def _bounds(self) -> tuple[ArrayLike, ArrayLike]:
        return -math.pi, math.pi

    def inside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether each angle lies in [-pi, pi]."""
        return self._all(np.abs(values) <= math.pi)

    def from_uniform(self, uniform: FloatArray) -> FloatArray:
        """Returns angles uniform on the circle."""
        return np.asarray(math.pi * (2.0 * self._shaped(uniform) - 1.0))


@final
@dataclass(frozen=True, eq=False)
class UnitQuaternion(Space):
    """Rotations as unit quaternions x, y, z, w; with `yaw_only`, turns about the vertical."""

    yaw_only: bool = False
    shape: tuple[int, ...] = (4,)

    @property
    def _bounds(self) -> tuple[ArrayLike, ArrayLike]:
        return (0.0, 0.0, -1.0, -1.0) if self.yaw_only else -1.0, (
            0.0,
            0.0,
            1.0,
            1.0,
        ) if self.yaw_only else 1.0

    @property
    def rule(self) -> str:
        """That a rotation has length one."""
        return "with a norm of 1 (x, y, z, w)"

    @property
    def draws(self) -> int:
        """How many uniform numbers one rotation needs."""
        return 1 if self.yaw_only else 3

    def inside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether each quaternion has length one (and turns about z alone)."""
        unit = np.abs(np.sum(values * values, axis=-1) - 1.0) <= _LENGTH_TOLERANCE
        flat = np.all(np.abs(values[..., :2]) <= _TILT_TOLERANCE, axis=-1)
        return np.asarray(unit & flat if self.yaw_only else unit)

    def nearest(self, values: NDArray[Any]) -> FloatArray:
        """Returns each rotation with length one; with `yaw_only` its turn about z alone."""
        kept = values * np.array([0.0, 0.0, 1.0, 1.0]) if self.yaw_only else values
        length = np.linalg.norm(kept, axis=-1, keepdims=True)
        unit = np.array([0.0, 0.0, 0.0, 1.0])  # of what has no direction
        return np.where(length > 0.0, kept / np.where(length > 0.0, length, 1.0), unit)

    def same(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether each two quaternions are one rotation, whatever their signs, lengths."""
        one, other = (v / np.sqrt(np.sum(v * v, axis=-1, keepdims=True)) for v in (a, b))
        return np.asarray(np.abs(np.sum(one * other, axis=-1)) >= 1.0 - _ROUNDING)

    def from_uniform(self, uniform: FloatArray) -> FloatArray:
        """Returns rotations uniform on the circle or on the sphere (Shoemake's map)."""
        if self.yaw_only:
            half = math.pi * (uniform[..., 0] - 0.5)
            zero = np.zeros_like(half)
            return np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)
        a, b = np.sqrt(1.0 - uniform[..., 0]), np.sqrt(uniform[..., 0])
        t, s = 2.0 * math.pi * uniform[..., 1], 2.0 * math.pi * uniform[..., 2]
        return np.stack([a * np.sin(t), a * np.cos(t), b * np.sin(s), b * np.cos(s)], axis=-1)


def hull(a: Space, b: Space | None) -> Space:
    """Returns the smallest box around two spaces (the papers' space A_B), or `a` alone."""
    if b is None:
        return a
    if isinstance(a, Integers) and isinstance(b, Integers):
        return Integers(np.minimum(a.low, b.low), np.maximum(a.high, b.high), a.shape)
    if isinstance(a, Box) and isinstance(b, Box):
        return Box(np.minimum(a.low, b.low), np.maximum(a.high, b.high), a.shape)
    if isinstance(a, Choice) and isinstance(b, Choice):
        return Choice(tuple(sorted({*a.options, *b.options})), a.shape)
    raise InvalidValueError(
        f"no hull of a {type(a).__name__} and a {type(b).__name__}",
        allowed="two Box, two Integers or two Choice spaces",
    )


def space_to_json(space: Space) -> dict[str, Any]:
    """Returns a JSON-ready description: the kind and its bounds."""
    out: dict[str, Any] = {
        "kind": type(space).__name__,
        "low": np.asarray(space.low).tolist(),
        "high": np.asarray(space.high).tolist(),
        "shape": list(space.shape),
    }
    if isinstance(space, Box):
        out |= {"open_low": space.open_low, "open_high": space.open_high}
    if isinstance(space, Choice):
        out["options"] = list(space.options)
    if isinstance(space, UnitQuaternion):
        out["yaw_only"] = space.yaw_only
    return out


def space_from_json(data: dict[str, Any]) -> Space:
    """Returns the space that `space_to_json` described."""
    kind, shape = data["kind"], tuple(data["shape"])
    if kind == "Box":
        return Box(data["low"], data["high"], shape, data["open_low"], data["open_high"])
    if kind == "Integers":
        return Integers(data["low"], data["high"], shape)
    if kind == "Choice":
        return Choice(tuple(data["options"]), shape)
    if kind == "Angle":
        return Angle(shape)
    if kind == "UnitQuaternion":
        return UnitQuaternion(data["yaw_only"])
    raise InvalidValueError(
        f"unknown space kind {kind!r}", allowed="Box, Integers, Choice, Angle, UnitQuaternion"
    )
