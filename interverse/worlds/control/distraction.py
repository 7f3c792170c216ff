"""Distractions: camera, colours and a video behind the robot that move and mean nothing.

The levels are those of Distracting Control. At scale s the camera turns about the point it looks at
and the colours of all materials drift within ranges that grow with s; `dynamic=True` lets them walk
at random during an episode and plays the video, `False` draws them once where it starts, with one
frame. They are state variables of the world with noise of their own addresses, and nothing of the
robot depends on them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from interverse.art.pictures import Difficulty, Videos
from interverse.core.rng import Noise
from interverse.scm import Binding, Box, Integers, Variable
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.gallery import by_world, six_faces
from interverse.worlds.control.looks import CameraPose, factors
from interverse.worlds.control.paint import PIXELS, SHOWN
from interverse.worlds.control.scene import FLOOR, FLOOR_PICTURE, PICTURE_SIZE, SKY_PICTURE

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
# Whose colours drift: every material that something in the suite wears, with its own colour.
MATERIALS = {
    "grid": (1.0, 1.0, 1.0),  # times the floor's picture
    "self": (0.7, 0.5, 0.3),
    "effector": (0.7, 0.4, 0.2),
    "decoration": (0.3, 0.5, 0.7),
    "eye": (0.0, 0.2, 1.0),
    "target": (0.6, 0.3, 0.3),
    "site": (0.5, 0.5, 0.5),
}
_STOCK = np.array(list(MATERIALS.values())).ravel()
# What sets some of them, where the domain has it.
_LOOKS = {"self": "body/color", "effector": "effector/color", "target": "target/color"}
_FIRST_FRAMES = 10_000  # one of them at random is any frame of a video, on its way out or back
_REFERENCE = 4.0  # metres: the radius at which the published velocities are given
_FROM_ABOVE = ("fish", "reacher")  # cameras that may tip either way; others stay above the floor


@final
class Distraction:
    """The mechanisms of one level: initial draws, steps, and what they do to camera and colours."""

    def __init__(
        self, domain: str, level: Difficulty, kinds: tuple[str, ...], videos: Videos, dynamic: bool
    ) -> None:
        self._domain, self._level, self._kinds, self._dynamic = domain, level, kinds, dynamic
        self._videos = videos
        self._on_sky, self._on_floor = "video" in kinds, "floor" in kinds
        self._opacity: float | None = None
        if self._on_sky and not self._on_floor and level.clear_floor:
            self._opacity = _OPACITIES.get(domain, _OPACITY)
        angle, (near, far) = level.camera_angle, level.camera_radius
        lowest = -angle if domain in _FROM_ABOVE else 0.0
        # azimuth, elevation and roll from the look's own, and the distance over its own
        self.low = np.array([-angle, lowest, -angle, near])
        self.high = np.array([angle, angle, angle, far])
        turn, roll = level.camera_step / _REFERENCE, level.roll_step
        self._push = np.array([turn, turn, roll, turn])
        # what may be added to colours, which stay colours
        self._darkest = np.maximum(-level.color_range, -_STOCK)
        self._brightest = np.minimum(level.color_range, 1.0 - _STOCK)
        fastest, roll = level.camera_speed / _REFERENCE, level.roll_speed
        self._fastest = np.array([fastest, fastest, roll, fastest])

    def variables(self, model: Any) -> tuple[Variable, ...]:
        """Returns the variables that this level adds to a world of a compiled model."""
        out: list[Variable] = []
        if "camera" in self._kinds:
            out += self._camera_variables(model)
        if "color" in self._kinds:
            out.append(self._color_variable())
        if self._on_sky or self._on_floor:
            last = self._videos.count - 1
            doc = "Which video plays behind the robot, or below it."
            out.append(_variable(VIDEO, Integers(0, last), np.array(0), doc, *self._surfaces()))
            doc = "Which of its frames is seen."
            out.append(_variable(FRAME, Integers(0, 10**6), np.array(0), doc))
        if self._opacity is not None:
            doc, floor = "Opacity of the floor: the video behind it shows through.", FLOOR
            where = Binding("mat_rgba", floor, 3)
            out.append(_variable(OPACITY, Box(0.0, 1.0), np.array(self._opacity), doc, where))
        return tuple(out)

    def _camera_variables(self, model: Any) -> tuple[Variable, Variable]:
        camera, shape = DOMAINS[self._domain].camera, (4,)
        moved = _MovedCamera(CameraPose(model.camera(camera).quat))
        of = ("camera/position", "camera/rotation", CAMERA)
        return (
            _variable(
                CAMERA,
                Box(self.low, self.high, shape),
                np.array([0.0, 0.0, 0.0, 1.0]),
                "Azimuth, elevation, roll (rad) and relative distance of the camera.",
                Binding("cam_pos", camera, function=moved.place, of=of),
                Binding("cam_quat", camera, function=moved.orientation, of=of),
            ),
            _variable(
                VELOCITY,
                Box(-self._fastest, self._fastest, shape),
                np.zeros(4),
                "Change of the camera's four numbers in a step.",
            ),
        )

    def _color_variable(self) -> Variable:
        known = {factor.name for factor in factors(self._domain)}
        bindings = []
        for i, material in enumerate(MATERIALS):
            place, name = slice(3 * i, 3 * i + 3), _LOOKS.get(material)
            of = (COLOR,) if name not in known else (COLOR, name)
            drift = functools.partial(_drifted, place)
            bindings.append(Binding("mat_rgba", material, (0, 1, 2), function=drift, of=of))
        doc = f"Added to red, green, blue of the materials {', '.join(MATERIALS)}."
        domain = Box(self._darkest, self._brightest, _STOCK.shape)
        return _variable(COLOR, domain, np.zeros(_STOCK.shape), doc, *bindings)

    def _surfaces(self) -> Iterator[Binding]:
        """Returns the bindings of the surfaces that play the video."""
        of = (VIDEO, FRAME)
        for texture, plays, pixels in (
            (FLOOR_PICTURE, self._on_floor, self._frame),
            (SKY_PICTURE, self._on_sky, self._sky),
        ):
            if plays:
                yield Binding(PIXELS, texture, function=functools.partial(by_world, pixels), of=of)
                yield Binding(SHOWN, texture, function=_always, of=of)

    def _frame(self, video: NDArray[Any], frame: NDArray[Any]) -> NDArray[np.uint8]:
        return self._videos.frame(int(video), int(frame), PICTURE_SIZE)

    def _sky(self, video: NDArray[Any], frame: NDArray[Any]) -> NDArray[np.uint8]:
        return six_faces(self._frame(video, frame))

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
            uniform = noise.uniform(COLOR, _STOCK.shape)[0]
            out[COLOR] = self._darkest + (self._brightest - self._darkest) * uniform
        if self._on_sky or self._on_floor:
            out[VIDEO] = noise.integers(VIDEO, self._videos.count)[0]
            first = noise.integers(FRAME, _FIRST_FRAMES)[0] if self._level.any_frame else 0
            out[FRAME] = np.array(first)
        if self._opacity is not None:
            out[OPACITY] = np.array(self._opacity)
        return out

    def step(self, now: Moved, noise: Noise) -> Moved:
        """Returns the values a step later."""
        out: Moved = {}
        if not self._dynamic:
            return out
        if FRAME in now:
            out[FRAME] = np.array(int(now[FRAME]) + 1)
        if CAMERA in now:
            pushed = now[VELOCITY] + self._push * noise.normal(VELOCITY, (4,))[0]
            velocity = np.clip(pushed, -self._fastest, self._fastest)
            wished = now[CAMERA] + velocity
            out[CAMERA] = np.clip(wished, self.low, self.high)
            out[VELOCITY] = np.where(out[CAMERA] == wished, velocity, 0.0)  # stops at its bounds
        if COLOR in now:
            walk = self._level.color_step * noise.normal(COLOR, now[COLOR].shape)[0]
            out[COLOR] = np.clip(now[COLOR] + walk, self._darkest, self._brightest)
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


@final
class _MovedCamera:
    """Poses of a camera that is turned about what it looks at: functions for bindings.

    Each takes a look's positions (n, 3) and rotations (n, 3), and what is added to them (n, 4).
    """

    def __init__(self, pose: CameraPose) -> None:
        self._pose = pose
        self._latest: tuple[bytes, FloatArray] = b"", np.empty((0, 7))

    def place(self, *values: FloatArray) -> FloatArray:
        """Returns the places, (n, 3)."""
        return self._moved(*values)[:, :3]

    def orientation(self, *values: FloatArray) -> FloatArray:
        """Returns the orientations (w, x, y, z), (n, 4)."""
        return self._moved(*values)[:, 3:]

    def _moved(self, *values: FloatArray) -> FloatArray:
        """Returns places and orientations, worked out once for both; worlds in threads share it."""
        key, latest = b"".join(value.tobytes() for value in values), self._latest
        if latest[0] != key:
            latest = self._latest = key, by_world(self._one, *values)
        return latest[1]

    def _one(self, place: FloatArray, rotation: FloatArray, moved: FloatArray) -> FloatArray:
        place, turned = moved_camera(moved, place, self._pose.orientation(rotation))
        return np.append(place, turned.as_quat(scalar_first=True))


def _drifted(place: slice, *values: FloatArray) -> FloatArray:
    """Returns colours of a material (n, 3), added to what a look sets or else to its own."""
    added, *color = values
    base = color[0][:, :3] if color else _STOCK[place]
    return np.clip(base + added[:, place], 0.0, 1.0)


def _always(video: NDArray[Any], frame: NDArray[Any]) -> NDArray[np.bool_]:
    return np.ones(len(video), dtype=bool)


def _variable(
    name: str, domain: Any, default: NDArray[Any], doc: str, *bindings: Binding
) -> Variable:
    return Variable(
        name=name, kind="state", default=default, domain=domain, doc=doc, bindings=bindings
    )
