"""Distractions: camera, colours and a video behind the robot that move and mean nothing.

The levels are those of Distracting Control. At scale s the camera moves on a sphere about the robot
and the colours of all materials drift within ranges that grow with s; `dynamic=True` lets them walk
at random during an episode, a step at every control step, and plays the video, `False` draws them
once where it starts, with one frame. They are state variables of the world with noise of their own
addresses, and nothing of the robot depends on them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.art.pictures import Difficulty, Videos
from interverse.core.rng import Noise
from interverse.scm import Binding, Box, Integers, Variable
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.gallery import by_world, six_faces
from interverse.worlds.control.looks import CameraPose, factors
from interverse.worlds.control.orbit import MovedCamera, orbit_of
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
_PLACE, _ROLL = [0, 1, 3], 2  # of a velocity: what has one speed in all, and what turns by itself
_FROM_ABOVE = ("fish", "reacher")  # cameras that may tip over the top; others stop there


@final
class Distraction:
    """The mechanisms of one level: initial draws, steps, and what they do to camera and colours."""

    def __init__(
        self,
        model: Any,
        domain: str,
        level: Difficulty,
        kinds: tuple[str, ...],
        videos: Videos,
        dynamic: bool,
    ) -> None:
        """Takes the compiled domain, a level, what moves, what plays and whether it does."""
        self._model, self._domain, self._level = model, domain, level
        self._kinds, self._videos, self._dynamic = kinds, videos, dynamic
        self._on_sky, self._on_floor = "video" in kinds, "floor" in kinds
        self._opacity: float | None = None
        if self._on_sky and not self._on_floor and level.clear_floor:
            self._opacity = _OPACITIES.get(domain, _OPACITY)
        angle, (near, far) = level.camera_angle, level.camera_radius
        self._orbit = orbit_of(model, DOMAINS[domain].camera)
        free = domain in _FROM_ABOVE
        lowest, highest = (-angle, angle) if free else self._orbit.elevations(angle)
        # azimuth, elevation and roll from the look's own, and the distance over its own
        self.low = np.array([-angle, lowest, -angle, near])
        self.high = np.array([angle, highest, angle, far])
        turn, roll = level.camera_step / _REFERENCE, level.roll_step
        self._push = np.array([turn, turn, roll, turn])
        # what may be added to colours, which stay colours
        self._darkest = np.maximum(-level.color_range, -_STOCK)
        self._brightest = np.minimum(level.color_range, 1.0 - _STOCK)
        fastest, roll = level.camera_speed / _REFERENCE, level.roll_speed
        self._fastest = np.array([fastest, fastest, roll, fastest])

    def variables(self) -> tuple[Variable, ...]:
        """Returns the variables that this level adds to a world."""
        out: list[Variable] = []
        if "camera" in self._kinds:
            out += self._camera_variables()
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

    def _camera_variables(self) -> tuple[Variable, Variable]:
        camera, shape = DOMAINS[self._domain].camera, (4,)
        moved = MovedCamera(CameraPose(self._model.camera(camera).quat), self._orbit)
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
                "Change of the camera's four numbers in a control step.",
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
            out[VELOCITY] = self._first_velocity(noise) if self._dynamic else np.zeros(4)
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

    def _first_velocity(self, noise: Noise) -> FloatArray:
        """Returns any direction at any speed: metres first, so that near cameras start fast."""
        direction = noise.normal(f"{VELOCITY}/direction", (3,))[0]
        speed, roll = noise.uniform(f"{VELOCITY}/speed", (2,))[0]
        share = np.empty(4)
        share[_PLACE] = direction / np.linalg.norm(direction)
        share[_PLACE] *= min(1.0, speed * _REFERENCE / self._orbit.radius)
        share[_ROLL] = 2.0 * roll - 1.0
        return share * self._fastest

    def step(self, now: Moved, noise: Noise, repeats: int) -> Moved:
        """Returns the values a decision later: a step for each of its control steps."""
        out: Moved = {}
        if not self._dynamic:
            return out
        if FRAME in now:
            frames = 1 if self._level.by_decision else repeats
            out[FRAME] = np.array(int(now[FRAME]) + frames)
        if CAMERA in now:
            out[CAMERA], out[VELOCITY] = now[CAMERA], now[VELOCITY]
            for push in noise.normal(VELOCITY, (repeats, 4))[0]:
                out[CAMERA], out[VELOCITY] = self._moved(out[CAMERA], out[VELOCITY], push)
        if COLOR in now:
            out[COLOR] = now[COLOR]
            for walk in noise.normal(COLOR, (repeats, *now[COLOR].shape))[0]:
                drifted = out[COLOR] + self._level.color_step * walk
                out[COLOR] = np.clip(drifted, self._darkest, self._brightest)
        return out

    def _moved(
        self, camera: FloatArray, velocity: FloatArray, push: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Returns the camera and its velocity a control step later."""
        velocity = velocity + self._push * push
        speed, most = float(np.linalg.norm(velocity[_PLACE])), self._fastest[0]
        if speed > most:
            velocity[_PLACE] *= most / speed
        velocity = np.clip(velocity, -self._fastest, self._fastest)
        wished = camera + velocity
        reached = np.clip(wished, self.low, self.high)
        made = np.clip(reached - camera, -self._fastest, self._fastest)
        return reached, np.where(reached == wished, velocity, made)  # stops at its bounds


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
