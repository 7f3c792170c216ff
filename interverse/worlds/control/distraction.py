"""Distractions: camera, colours and a video behind the robot that move and mean nothing.

The levels are those of Distracting Control. At scale s the camera moves on a sphere about the robot
and the colours of all materials drift within ranges that grow with s; `dynamic=True` lets them walk
at random during an episode, a step at every control step, and plays the video, `False` draws them
once where it starts, with one frame. They are state variables of the world with noise of their own
addresses, and nothing of the robot depends on them. Colours of DMC-GB's modes are drawn once, too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from interverse.art.pictures import Difficulty, Videos
from interverse.core.rng import Noise
from interverse.scm import Binding, Box, Integers, Variable
from interverse.sim.single import scratch_data, settle
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.gallery import NO_PICTURE, by_world, six_faces
from interverse.worlds.control.looks import CameraPose, Look, factors
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
KINDS = (*DISTRACTIONS, "floor")  # the last plays it on the floor, as DMC-GB's hard mode does
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
_FIXED = 0  # MuJoCo's mode of a camera that follows nothing
_FROM_ABOVE = ("fish", "reacher")  # cameras that may tip over the top; others stop there


# --- a camera on a sphere about the robot, as in Distracting Control ------------------------------


@final
class Orbit(NamedTuple):
    """The sphere of a model's camera; places are in the frame of the camera's owner.

    Attributes:
        centre: the origin of the world, or the centre of mass that the camera follows.
        robot: the robot's centre of mass.
        radius: of the camera's own place, metres.
        elevation: of that place above the horizon of the centre, radians.
    """

    centre: FloatArray
    robot: FloatArray
    radius: float
    elevation: float

    def elevations(self, angle: float) -> tuple[float, float]:
        """Returns the least and the greatest turn: not below the horizon nor over the top.

        >>> orbit = Orbit(np.zeros(3), np.zeros(3), radius=4.0, elevation=0.05)
        >>> orbit.elevations(0.157)
        (-0.05, 0.157)
        """
        high = min(angle, math.pi / 2 - self.elevation)
        return min(max(-angle, -self.elevation), high), high


def orbit_of(model: Any, camera: str) -> Orbit:
    """Returns the sphere of a camera where the model starts."""
    data, number = scratch_data(model), model.camera(camera).id
    settle(model, data)
    owner, robot = model.cam_bodyid[number], data.subtree_com[1]
    centre = np.zeros(3) if model.cam_mode[number] == _FIXED else robot
    axes, origin = data.xmat[owner].reshape(3, 3), data.xpos[owner]
    arm = data.cam_xpos[number] - centre
    return Orbit(
        centre=axes.T @ (centre - origin),
        robot=axes.T @ (robot - origin),
        radius=float(np.linalg.norm(arm)),
        elevation=math.atan2(arm[2], math.hypot(arm[0], arm[1])),
    )


def moved_camera(
    moved: FloatArray, place: FloatArray, orientation: Rotation, orbit: Orbit
) -> tuple[FloatArray, Rotation]:
    """Returns a camera elsewhere on its sphere, still looking at what it looked at.

    Args:
        moved: azimuth, elevation and roll in radians, and the distance over its own.
        place: its own, which need not be the one that the orbit was made from.
        orientation: its own; it looks at the point ahead that is as far away as the robot.
        orbit: the sphere.
    """
    azimuth, elevation, roll, distance = moved
    axes = orientation.as_matrix()
    right, ahead = axes[:, 0], -axes[:, 2]
    target = place + ahead * float(np.linalg.norm(place - orbit.robot))
    turn = Rotation.from_rotvec([0.0, 0.0, azimuth]) * Rotation.from_rotvec(-elevation * right)
    stands = orbit.centre + distance * turn.apply(place - orbit.centre)
    aim = _shortest_turn(turn.apply(ahead), target - stands)
    own = Rotation.from_rotvec([0.0, 0.0, roll])
    return stands, aim * turn * orientation * own


def _shortest_turn(start: FloatArray, end: FloatArray) -> Rotation:
    """Returns the rotation that takes one direction to another."""
    axis = np.cross(start, end)
    length = float(np.linalg.norm(axis))
    if length == 0.0:
        return Rotation.identity()
    return Rotation.from_rotvec(axis / length * math.atan2(length, float(np.dot(start, end))))


@final
class MovedCamera:
    """Poses of a camera on its sphere: functions for bindings.

    Each takes a look's positions (n, 3) and rotations (n, 3), and what is added to them (n, 4).
    """

    def __init__(self, pose: CameraPose, orbit: Orbit) -> None:
        self._pose, self._orbit = pose, orbit
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
        own = self._pose.orientation(rotation)
        place, turned = moved_camera(moved, place, own, self._orbit)
        return np.append(place, turned.as_quat(scalar_first=True))


# --- what moves ----------------------------------------------------------------------------------


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


# --- colours of DMC-GB's colour modes ------------------------------------------------------------

# DMC-GB stores its hundred sets for body, floor and sky. Their moments and the shares that lie at 0
# and 1 are those of normal draws around the suite's own colours, cut at 0 and 1; these are such
# draws, not its very sets. The floor's second colour is its first plus 0.1, as there.
SETS = 100
DEVIATIONS = MappingProxyType({"color_easy": 0.1, "color_hard": 0.2})
"""Mode -> the standard deviation of red, green and blue before they are cut."""
MEANS = MappingProxyType(
    {
        "body/color": (0.7, 0.5, 0.3),
        "floor/color_1": (0.1, 0.2, 0.3),
        "background/color_1": (0.4, 0.6, 0.8),
    }
)
"""Variable -> the suite's own red, green and blue."""
_STEP = 0.1  # from the floor's first colour to its second


@functools.cache
def all_sets(mode: str) -> Mapping[str, NDArray[np.float64]]:
    """Returns the colours of a mode's sets by variable, each (set, 3)."""
    noise, drawn = Noise.single(seed=0), {}
    for name, mean in MEANS.items():
        away = DEVIATIONS[mode] * noise.normal(f"{mode}/{name}", (SETS, 3))[0]
        drawn[name] = np.clip(np.array(mean) + away, 0.0, 1.0)
    return drawn


def color_set(mode: str, number: int, domain: str) -> Look:
    """Returns the values of one set, for the variables that the domain has.

    >>> look = color_set("color_easy", 3, "walker")
    >>> bool(np.allclose(look["floor/color_2"] - look["floor/color_1"], 0.1))
    True
    """
    look: Look = {name: colors[number].copy() for name, colors in all_sets(mode).items()}
    look["floor/color_2"] = np.minimum(look["floor/color_1"] + _STEP, 1.0)
    look["body/color"] = np.append(look["body/color"], 1.0)
    look |= {name: np.array(NO_PICTURE) for name in ("floor/texture", "background/texture")}
    if not DOMAINS[domain].background:
        look = {n: v for n, v in look.items() if not n.startswith("background/")}
    return look


def episode_colors(mode: str, noise: Noise, domain: str) -> Look:
    """Returns the set that an episode draws."""
    return color_set(mode, int(noise.integers(f"distraction/{mode}", SETS)[0]), domain)
