"""From a visual seed to a look: one independent stream per factor, every draw always made.

Seed 0 is the default look, a positive seed has pictures for floor and sky, a negative one the
default floor and sky in other colours. A factor's number stands at the address (seed, factor), so
leaving one factor out never changes another. The one exception is written out in `visible`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from interverse.core.rng import Noise
from interverse.worlds.control.domains import DOMAINS, EULER_DEGREES, TILT, TILT_DEFAULT, Range
from interverse.worlds.control.gallery import NO_PICTURE, Gallery

FloatArray = NDArray[np.float64]
Look = dict[str, NDArray[Any]]  # factor -> value

SWITCHES = ("bg", "floor", "body", "target", "reflectance", "camera", "light")
ALPHA = (0.75, 1.0)
REFLECTANCE = (0.0, 0.5)
# Base of all three channels, then what each channel adds.
HEADLIGHT = {
    "light/ambient": ((0.1, 0.8), 0.05),
    "light/diffuse": ((0.4, 0.9), 0.1),
    "light/specular": ((0.05, 0.3), 0.02),
}
LAMP = {
    "light/lamp_diffuse": ((0.5, 1.1), 0.02),
    "light/lamp_specular": ((0.0, 1.2), 0.02),
}
_WXYZ, _XYZW = [3, 0, 1, 2], [1, 2, 3, 0]
TRIES = 12  # colours of the body that are tried
LEAST_DISTANCE = 0.2  # between the body's colour and what it is seen against, in RGB


@final
@dataclass(frozen=True, slots=True)
class Factor:
    """One thing a look decides: its variable, the switch it belongs to, its default."""

    name: str
    switch: str
    default: NDArray[np.float64] | NDArray[np.int64]


_NONE = np.array(NO_PICTURE)
BACKGROUND = (
    Factor("background/texture", "bg", _NONE),
    Factor("background/color_1", "bg", np.array((0.4, 0.6, 0.8))),
    Factor("background/color_2", "bg", np.array((0.0, 0.0, 0.0))),
)
FLOOR = (
    Factor("floor/texture", "floor", _NONE),
    Factor("floor/color_1", "floor", np.array((0.1, 0.2, 0.3))),
    Factor("floor/color_2", "floor", np.array((0.2, 0.3, 0.4))),
)
BODY = Factor("body/color", "body", np.array((0.7, 0.5, 0.3, 1.0)))
EFFECTOR = Factor("effector/color", "body", np.array((0.7, 0.4, 0.2, 1.0)))
TARGET = Factor("target/color", "target", np.array((0.6, 0.3, 0.3, 1.0)))
LIGHTS = (
    Factor("light/ambient", "light", np.array((0.4, 0.4, 0.4))),
    Factor("light/diffuse", "light", np.array((0.8, 0.8, 0.8))),
    Factor("light/specular", "light", np.array((0.1, 0.1, 0.1))),
)
LAMPS = (
    Factor("light/lamp_diffuse", "light", np.array((0.6, 0.6, 0.6))),
    Factor("light/lamp_specular", "light", np.array((0.3, 0.3, 0.3))),
)


@functools.cache
def factors(domain: str, poles: int = 1) -> tuple[Factor, ...]:
    """Returns what a look of this domain decides."""
    has = DOMAINS[domain]
    place = np.array(has.camera_at) + _pole_shift(poles)
    return (
        *(BACKGROUND if has.background else ()),
        *FLOOR,
        Factor("reflectance", "reflectance", np.array(0.2)),
        BODY,
        *((EFFECTOR,) if has.effector else ()),
        *((TARGET,) if has.target else ()),
        Factor("camera/position", "camera", place),
        Factor("camera/rotation", "camera", np.zeros(3)),
        Factor("light/position", "light", np.array(has.lamp_at)),
        *LIGHTS,
        *(LAMPS if has.lamp_colours else ()),
    )


def other_than(*defaults: FloatArray | NDArray[np.int64]) -> Callable[..., NDArray[np.bool_]]:
    """Returns a function for bindings: whether any of several values is not its default, (n,)."""

    def differs(*values: NDArray[Any]) -> NDArray[np.bool_]:
        pairs = zip(values, defaults, strict=True)
        unequal = [(v != d).reshape(len(v), -1) for v, d in pairs]
        return np.any(np.concatenate(unequal, axis=1), axis=1)

    return differs


@final
class CameraPose:
    """Poses of a camera from its compiled orientation (w, x, y, z): functions for bindings."""

    def __init__(self, quat: FloatArray) -> None:
        self._quat, self._stock = quat.copy(), Rotation.from_quat(quat[_XYZW])

    def turned(self, rotation: FloatArray) -> FloatArray:
        """Returns orientations (n, 4) for rotation vectors (n, 3)."""
        if not np.any(rotation):
            return np.repeat(self._quat[None], len(rotation), axis=0)  # every bit as compiled
        quat = (self._stock * Rotation.from_rotvec(rotation)).as_quat()[:, _WXYZ]
        return np.where(rotation.any(axis=1, keepdims=True), quat, self._quat)

    def orientation(self, rotation: FloatArray) -> Rotation:
        """Returns the orientation for one rotation vector."""
        return self._stock * Rotation.from_rotvec(rotation)


def camera_range(domain: str, poles: int = 1) -> tuple[FloatArray, FloatArray]:
    """Returns the corners between which the camera is drawn."""
    low, high = (np.array(corner) for corner in DOMAINS[domain].camera_range)
    return low + _pole_shift(poles), high + _pole_shift(poles)


def _pole_shift(poles: int) -> FloatArray:
    """Returns how far the suite moves cartpole's camera back for more poles."""
    return np.array([0.0, -1.0 - 2.0 * poles + 4.0 if poles > 1 else 0.0, 0.0])


def draw_look(
    domain: str, seed: int, gallery: Gallery, poles: int = 1, *, pictures: str = "A_B"
) -> Look:
    """Returns the value of every factor that a visual seed stands for.

    The same seed gives the same numbers in every domain that has the factor. Pictures come from
    space A, from B or from both.
    """
    decided = factors(domain, poles)
    if seed == 0:
        return {factor.name: factor.default.copy() for factor in decided}
    names = [factor.name for factor in decided]
    zero = np.zeros(TRIES, dtype=np.int64)
    tries = Noise(zero + seed, zero, np.arange(TRIES)).uniforms(names, 4)
    uniform = dict(zip(names, tries[0], strict=True))
    look: Look = {name: _value(name, u, domain, poles) for name, u in uniform.items()}
    chosen = {part: shelf.chosen(pictures) for part, shelf in gallery.shelves.items()}
    look |= _surfaces(uniform, chosen, textured=seed > 0)
    surround = surroundings(look, gallery)
    for i, factor in enumerate(decided):
        if factor.switch == "body":
            look[factor.name] = visible(tries[:, i], surround)
    return look


def with_switches(look: Look, domain: str, vary: Collection[str], poles: int = 1) -> Look:
    """Returns the look with the default for every factor whose switch is off."""
    return {
        factor.name: look[factor.name] if factor.switch in vary else factor.default.copy()
        for factor in factors(domain, poles)
    }


def drawn_names(domain: str, vary: Collection[str], poles: int = 1) -> tuple[str, ...]:
    """Returns the factors that a visual seed draws: switched on, and not the same for every seed.

    Some domains keep the camera's orientation or the lamp's place.
    """
    has = DOMAINS[domain]
    kept = {"camera/rotation"} if has.turn == "none" else set()
    kept |= {"light/position"} if has.lamp_range is None else set()
    decided = factors(domain, poles)
    return tuple(f.name for f in decided if f.switch in vary and f.name not in kept)


def visible(tries: FloatArray, surround: FloatArray) -> FloatArray:
    """Returns the first colour of the body that stands out: the redraw rule.

    Colours are tried in turn until one is at least `LEAST_DISTANCE` (Euclidean, RGB in 0..1) from
    the mean colours of the floor and the sky of this look, and from the default floor's, so that it
    may be seen with those factors switched off too. After `TRIES` colours the farthest is taken.

    Args:
        tries: uniform numbers, (tries, 4).
        surround: mean colours, (n, 3).
    """
    gaps = tries[:, None, 1:4] - surround[None]
    distance = np.sqrt((gaps**2).sum(axis=-1)).min(axis=1)
    far = np.flatnonzero(distance >= LEAST_DISTANCE)
    return _rgba(tries[far[0] if len(far) else int(distance.argmax())])


def surroundings(look: Look, gallery: Gallery) -> FloatArray:
    """Returns the mean colours that a body of this look is seen against, (n, 3)."""
    default = (FLOOR[1].default + FLOOR[2].default) / 2
    means = [default]
    for part in ("floor", "background"):
        index = int(look.get(f"{part}/texture", NO_PICTURE))
        if index != NO_PICTURE:
            means.append(gallery.mean_colour(part, index))
        elif f"{part}/color_1" in look:
            means.append((look[f"{part}/color_1"] + look[f"{part}/color_2"]) / 2)
    return np.stack(means)


def _surfaces(
    uniform: dict[str, FloatArray], chosen: Mapping[str, Sequence[int]], *, textured: bool
) -> Look:
    """Returns which of the chosen pictures, or which colours, floor and sky have."""
    out: Look = {}
    defaults = {factor.name: factor.default for factor in (*BACKGROUND, *FLOOR)}
    for part, pictures in chosen.items():
        if f"{part}/texture" not in uniform:
            continue
        place = int(uniform[f"{part}/texture"][0] * len(pictures))
        out[f"{part}/texture"] = np.array(pictures[place] if textured else NO_PICTURE)
        for name in (f"{part}/color_1", f"{part}/color_2"):
            out[name] = defaults[name].copy() if textured else uniform[name][:3].copy()
    return out


def _value(name: str, u: FloatArray, domain: str, poles: int) -> FloatArray:
    """Returns a factor's value for its uniform numbers, pictures and colours of surfaces apart."""
    has = DOMAINS[domain]
    if name.endswith("/color"):
        return _rgba(u)
    if name in HEADLIGHT or name in LAMP:
        (low, high), spread = HEADLIGHT[name] if name in HEADLIGHT else LAMP[name]
        return low + (high - low) * u[0] + spread * (2.0 * u[1:4] - 1.0)
    if name == "reflectance":
        return np.array(_between(REFLECTANCE, u[0]))
    if name == "camera/position":
        near, far = camera_range(domain, poles)
        return near + (far - near) * u[:3]
    if name == "camera/rotation" and has.turn == "euler":
        return turn_from_degrees(_corner(EULER_DEGREES, u))
    if name == "camera/rotation" and has.turn == "tilt":
        return turn_from_tilt(_between(TILT, u[0]))
    if name == "light/position":
        return np.array(has.lamp_at) if has.lamp_range is None else _corner(has.lamp_range, u)
    return np.zeros(3)  # no turn, or a surface, decided in `_surfaces`


def turn_from_degrees(degrees: FloatArray) -> FloatArray:
    """Returns the rotation vector of hopper's camera for its Euler angles."""
    default = Rotation.from_euler("XYZ", [90.0, 0.0, 0.0], degrees=True)
    return (default.inv() * Rotation.from_euler("XYZ", degrees, degrees=True)).as_rotvec()


def turn_from_tilt(tilt: float) -> FloatArray:
    """Returns the rotation vector of pendulum's camera for the tilt of its upward axis."""
    return np.array([np.arctan(TILT_DEFAULT) - np.arctan(tilt), 0.0, 0.0])


def _rgba(u: FloatArray) -> FloatArray:
    return np.array([u[1], u[2], u[3], _between(ALPHA, u[0])])


def _between(ends: tuple[float, float], u: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * float(u)


def _corner(corners: Range, u: FloatArray) -> FloatArray:
    low, high = (np.array(corner) for corner in corners)
    return low + (high - low) * u[:3]
