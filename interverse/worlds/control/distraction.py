"""Distractions: camera, colours and a video behind the robot that move and mean nothing.

The levels are those of Distracting Control. At scale s the camera turns about the point it looks at
and its colours drift within ranges that grow with s; `dynamic=True` lets them walk at random during
an episode, `False` draws them once where it starts. They are state variables of the world with
noise of their own addresses, and nothing of the robot depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from interverse.art.pictures import Difficulty, Videos
from interverse.core.rng import Noise
from interverse.scm import Box, Integers, Variable

FloatArray = NDArray[np.float64]
Moved = dict[str, NDArray[Any]]  # variable -> value, of one world

CAMERA, VELOCITY = "distraction/camera", "distraction/camera_velocity"
COLOR, VIDEO, FRAME = "distraction/color", "distraction/video", "distraction/frame"
OPACITY = "distraction/floor_opacity"
# Of the floor before a video; Distracting Control's, 0.3 in domains not named.
_OPACITIES = {"cheetah": 1.0, "reacher": 0.0, "walker": 1.0}
_OPACITY = 0.3
DISTRACTIONS = ("camera", "color", "video")
KINDS = (
    *DISTRACTIONS,
    "floor",
)  # the last plays the video on the floor, as DMC-GB's hard mode does
MATERIALS = ("self", "effector", "target", "decoration")  # whose colours drift
_REFERENCE = 4.0  # metres: the radius at which the published velocities are given
_FROM_ABOVE = ("fish", "reacher")  # cameras that may tip either way; others stay above the floor


@final
class Distraction:
    """The mechanisms of one level: initial draws, steps, and what they do to camera and colours."""

    def __init__(
        self, domain: str, level: Difficulty, kinds: tuple[str, ...], videos: Videos, dynamic: bool
    ) -> None:
        self._level, self._kinds, self._dynamic = level, kinds, dynamic
        self.videos = videos
        self.on_sky, self.on_floor = "video" in kinds, "floor" in kinds
        self._opacity: float | None = None
        if self.on_sky and not self.on_floor and level.clear_floor:
            self._opacity = _OPACITIES.get(domain, _OPACITY)
        angle, (near, far) = level.camera_angle, level.camera_radius
        lowest = -angle if domain in _FROM_ABOVE else 0.0
        # azimuth, elevation and roll from the look's own, and the distance over its own
        self.low = np.array([-angle, lowest, -angle, near])
        self.high = np.array([angle, angle, angle, far])
        turn, roll = level.camera_step / _REFERENCE, level.roll_step
        self._push = np.array([turn, turn, roll, turn])
        fastest, roll = level.camera_speed / _REFERENCE, level.roll_speed
        self._fastest = np.array([fastest, fastest, roll, fastest])

    def variables(self) -> tuple[Variable, ...]:
        """Returns the variables that this level adds."""
        shape, size = (4,), self._level.color_range
        made = {
            "camera": (
                _variable(
                    CAMERA,
                    Box(self.low, self.high, shape),
                    np.array([0.0, 0.0, 0.0, 1.0]),
                    "Azimuth, elevation, roll (rad) and relative distance of the camera.",
                ),
                _variable(
                    VELOCITY,
                    Box(-self._fastest, self._fastest, shape),
                    np.zeros(4),
                    "Change of the camera's four numbers in a step.",
                ),
            ),
            "color": (
                _variable(
                    COLOR,
                    Box(-size, size, (3 * len(MATERIALS),)),
                    np.zeros(3 * len(MATERIALS)),
                    f"Added to red, green, blue of the materials {', '.join(MATERIALS)}.",
                ),
            ),
            "video": (
                _variable(
                    VIDEO,
                    Integers(0, self.videos.count - 1),
                    np.array(0),
                    "Which video plays behind the robot, or below it.",
                ),
                _variable(FRAME, Integers(0, 10**6), np.array(0), "Which of its frames is seen."),
            ),
        }
        kinds = dict.fromkeys("video" if kind == "floor" else kind for kind in self._kinds)
        seen_through = [] if self._opacity is None else [self._opacity_variable()]
        return (*(variable for kind in kinds for variable in made[kind]), *seen_through)

    def _opacity_variable(self) -> Variable:
        doc = "Opacity of the floor: the video behind it shows through."
        return _variable(OPACITY, Box(0.0, 1.0), np.array(self._opacity), doc)

    @staticmethod
    def edges(names: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Returns what causes what from one step to the next."""
        kept = (CAMERA, VELOCITY, COLOR, VIDEO, FRAME, OPACITY)
        pairs = [(n, f"{n}'") for n in kept if n in names]
        if CAMERA in names:
            pairs += [(CAMERA, f"{VELOCITY}'"), (VELOCITY, f"{CAMERA}'")]
        return pairs

    def start(self, noise: Noise) -> Moved:
        """Returns the values where an episode starts."""
        out: Moved = {}
        if "camera" in self._kinds:
            out[CAMERA] = self.low + (self.high - self.low) * noise.uniform(CAMERA, (4,))[0]
            out[VELOCITY] = np.zeros(4)
        if "color" in self._kinds:
            uniform = noise.uniform(COLOR, (3 * len(MATERIALS),))[0]
            out[COLOR] = self._level.color_range * (2.0 * uniform - 1.0)
        if self.on_sky or self.on_floor:
            out[VIDEO] = noise.integers(VIDEO, self.videos.count)[0]
            out[FRAME] = np.array(0)
        if self._opacity is not None:
            out[OPACITY] = np.array(self._opacity)
        return out

    def step(self, now: Moved, noise: Noise) -> Moved:
        """Returns the values a step later."""
        out: Moved = {}
        if FRAME in now:
            out[FRAME] = np.array(int(now[FRAME]) + 1)
        if not self._dynamic:
            return out
        if CAMERA in now:
            pushed = now[VELOCITY] + self._push * noise.normal(VELOCITY, (4,))[0]
            velocity = np.clip(pushed, -self._fastest, self._fastest)
            wished = now[CAMERA] + velocity
            out[CAMERA] = np.clip(wished, self.low, self.high)
            out[VELOCITY] = np.where(out[CAMERA] == wished, velocity, 0.0)  # stops at its bounds
        if COLOR in now:
            size = self._level.color_range
            walk = self._level.color_step * noise.normal(COLOR, now[COLOR].shape)[0]
            out[COLOR] = np.clip(now[COLOR] + walk, -size, size)
        return out


def moved_camera(
    moved: FloatArray, place: FloatArray, orientation: Rotation
) -> tuple[FloatArray, Rotation]:
    """Returns a camera turned about the point it looks at: the nearest to its owner's origin."""
    azimuth, elevation, roll, distance = moved
    axes = orientation.as_matrix()
    right, ahead = axes[:, 0], -axes[:, 2]
    pivot = place + ahead * float(np.dot(-place, ahead))
    turn = Rotation.from_rotvec([0.0, 0.0, azimuth]) * Rotation.from_rotvec(-elevation * right)
    own = Rotation.from_rotvec([0.0, 0.0, roll])
    return pivot + distance * turn.apply(place - pivot), turn * orientation * own


def _variable(name: str, domain: Any, default: NDArray[Any], doc: str) -> Variable:
    return Variable(name=name, kind="state", default=default, domain=domain, doc=doc)
