"""Options of the control worlds."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from interverse.art.pictures import COLOR_MODES, VIDEO_MODES, VIDEO_PLACES, difficulty
from interverse.core.errors import InvalidValueError, check_name, check_whole
from interverse.scm.variable import SPACE_NAMES
from interverse.sim.drawing import QUALITIES
from interverse.worlds.control.distraction import DISTRACTIONS, KINDS
from interverse.worlds.control.domains import DOMAINS, MULTI_POLES
from interverse.worlds.control.dynamics import dynamics_variables
from interverse.worlds.control.looks import SWITCHES
from interverse.worlds.control.tasks import check_task
from interverse.worlds.control.variables import LARGEST_DYNAMICS_SEED, LARGEST_VISUAL_SEED
from interverse.worlds.world import WorldOptions

CONTROL_STEPS = 1000  # of every episode
OBSERVATIONS = ("pixels", "state", "depth", "segmentation")
RENDERERS = ("mujoco", "warp", "cuda")
_LARGEST_IMAGE = 2048
_PICTURE_OPTIONS = ("image_size", "frame_stack", "channels_first", "quality")  # of observations


@dataclass(frozen=True, kw_only=True)
class ControlOptions(WorldOptions):
    """Options of the control worlds."""

    domain: str = "cartpole"
    """Which domain of the suite; the id sets it."""
    task: str = "balance"
    """Which task of the domain; the id sets it."""
    visual_seed: int | tuple[int, int] = 0
    """The look of every episode, or two ends (both included) to draw it from in each episode."""
    dynamics_seed: int | tuple[int, int] | None = None
    """The initial state of every episode, or two ends to draw it from; None draws from all."""
    vary: tuple[str, ...] = SWITCHES
    """Which factors a visual seed decides; the others keep their default. "all" is all of them."""
    vary_dynamics: tuple[str, ...] = ()
    """Which dynamics variables the dynamics seed draws from their space A in each episode."""
    image_size: int | tuple[int, int] = 84
    """Pixels of an edge, or rows and columns."""
    frame_stack: int = 3
    """Pictures in an observation, the oldest first; the first one of an episode is repeated."""
    frame_skip: int = 1
    """Control steps for which an action is repeated; rewards add up."""
    channels_first: bool = True
    """Whether pixels are (channels, rows, columns) or (rows, columns, channels)."""
    observation: str | tuple[str, ...] = "pixels"
    """pixels, state, depth or segmentation; several give a dict."""
    quality: str = "default"
    """default, fast (rougher edges and shadows) or full (as the stock suite draws)."""
    renderer: str = "mujoco"
    """mujoco (GL on the CPU), or Warp's ray caster for all worlds at once: cuda, or warp (slow, on
    the CPU). It draws no mirror, no transparency and no haze."""
    textures: str | os.PathLike[str] | None = None
    """A folder of pictures to use for floors and backgrounds instead of the generated ones."""
    pictures: str = "A_B"
    """Which pictures a visual seed draws: of space A (training), of B (held out), or all."""
    legacy_draws: bool = False
    """Whether a visual seed means the original's correlated numbers, to compare with it."""
    distraction: str | float | None = None
    """Distracting Control's easy, medium, hard or a scale up to 1: moves camera and colours and
    plays a video. DMC-GB's color_easy, color_hard, video_easy, video_hard."""
    distract: tuple[str, ...] = DISTRACTIONS
    """Which of camera, color, video (behind the robot) and floor (a video below it) it has."""
    dynamic: bool = True
    """Whether camera and colours of a distraction walk at random during an episode, and its video
    plays; else they are drawn once, with one frame."""
    videos: str | os.PathLike[str] | None = None
    """A folder of frames, or of folders of frames, to play instead of the generated videos."""

    def __post_init__(self) -> None:
        WorldOptions.__post_init__(self)
        check_task(self.domain, self.task)
        self._unify()
        self._check_choices()
        self._check_numbers()
        self._check_device()
        self._check_renderer()
        self._check_pictures()

    def _unify(self) -> None:
        """Gives options that can be written in several ways one form: snapshots compare them."""
        if str(self.vary) == "all":
            object.__setattr__(self, "vary", SWITCHES)
        for name, order in (("vary", SWITCHES), ("vary_dynamics", ()), ("distract", KINDS)):
            object.__setattr__(self, name, _in_order(_names(name, getattr(self, name)), order))
        for name in ("textures", "videos"):
            if isinstance(getattr(self, name), os.PathLike):
                object.__setattr__(self, name, os.fspath(getattr(self, name)))

    def _check_choices(self) -> None:
        _check_names("vary", self.vary, SWITCHES)
        _check_names("observation", self.kinds, OBSERVATIONS)
        _check_names("vary_dynamics", self.vary_dynamics, self.dynamics_names)
        _check_names("quality", (self.quality,), tuple(QUALITIES))
        _check_names("distract", self.distract, KINDS)
        _check_names("pictures", (self.pictures,), SPACE_NAMES)
        if self.legacy_draws and self.pictures != "A_B":
            raise InvalidValueError(
                f"pictures is {self.pictures!r} with legacy_draws", allowed="A_B"
            )
        if self.distraction is not None:
            difficulty(self.distraction)
        if self.mode is not None and self.distract != DISTRACTIONS:
            raise InvalidValueError(
                f"distract is {self.distract!r} with {self.mode}", fix="Leave distract out"
            )
        if not self.kinds:
            raise InvalidValueError("observation is empty", allowed=", ".join(OBSERVATIONS))

    def _check_numbers(self) -> None:
        _check_seed("visual_seed", self.visual_seed, -LARGEST_VISUAL_SEED, LARGEST_VISUAL_SEED)
        if self.dynamics_seed is not None:
            _check_seed("dynamics_seed", self.dynamics_seed, 0, LARGEST_DYNAMICS_SEED)
        for name in ("frame_stack", "frame_skip"):
            check_whole(getattr(self, name), name, CONTROL_STEPS)
        for edge in self.size:
            check_whole(edge, "image_size", _LARGEST_IMAGE)

    def _check_device(self) -> None:
        if self.device != "cpu":
            raise InvalidValueError(
                f"device is {self.device!r}", allowed='"cpu": dm_control steps there'
            )

    def _check_renderer(self) -> None:
        check_name("renderer", self.renderer, RENDERERS)
        known = {"pixels", "state"}
        if self.renderer != "mujoco" and ("pixels" not in self.kinds or set(self.kinds) - known):
            raise InvalidValueError(
                f"observation is {self.observation!r} with renderer={self.renderer!r}",
                allowed="pixels, or pixels and state",
                fix='Leave renderer out: renderer="mujoco" draws the others',
            )

    def _check_pictures(self) -> None:
        """Raises for an option that would shape pictures where an observation has none."""
        for name in _PICTURE_OPTIONS if not self.is_drawn else ():
            value, default = getattr(self, name), getattr(ControlOptions, name)
            if value != default:
                raise InvalidValueError(
                    f"{name} is {value!r} with observation={self.observation!r}",
                    allowed=f"{default!r}: there is no picture",
                    fix=f"Leave {name} out, or observe pixels",
                )

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of a picture."""
        if isinstance(self.image_size, tuple | list):
            if len(self.image_size) != 2:
                raise InvalidValueError(
                    f"image_size is {self.image_size!r}", allowed="one or two numbers"
                )
            return tuple(self.image_size)  # type: ignore[return-value]
        return self.image_size, self.image_size

    @property
    def kinds(self) -> tuple[str, ...]:
        """What an observation holds."""
        return _names("observation", self.observation)

    @property
    def is_drawn(self) -> bool:
        """Whether an observation holds pictures."""
        return self.kinds != ("state",)

    @property
    def poles(self) -> int:
        """How many poles cartpole has; one elsewhere."""
        return MULTI_POLES.get(self.task, 1)

    @property
    def mode(self) -> str | None:
        """The mode of DMC-GB that the distraction is, if it is one."""
        named = isinstance(self.distraction, str) and self.distraction in (
            *COLOR_MODES,
            *VIDEO_MODES,
        )
        return str(self.distraction) if named else None

    @property
    def distractions(self) -> tuple[str, ...]:
        """What moves; no video in a domain without the shared sky."""
        if self.distraction is None:
            return ()
        has, mode = DOMAINS[self.domain], self.mode
        kinds = self.distract if mode is None else VIDEO_PLACES.get(mode, ())
        return tuple(n for n in kinds if n != "video" or has.background)

    @property
    def steps(self) -> int:
        """Decisions in an episode."""
        whole = math.ceil(CONTROL_STEPS / self.frame_skip)
        return whole if self.max_steps is None else self.max_steps

    @property
    def dynamics_names(self) -> tuple[str, ...]:
        """The dynamics variables of the domain."""
        return tuple(variable.name for variable in dynamics_variables(self.domain))


def _names(option: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):
        raise InvalidValueError(f"{option} is {given!r}", allowed="a name, or several")
    return tuple(given)


def _in_order(names: tuple[str, ...], order: tuple[str, ...]) -> tuple[str, ...]:
    """Returns names in a table's order, those that it lacks by the alphabet at the end."""
    places = {name: f"{place:03}" for place, name in enumerate(order)}
    return tuple(sorted(names, key=lambda name: places.get(str(name), str(name))))


def _check_names(option: str, given: tuple[Any, ...], allowed: tuple[str, ...]) -> None:
    for name in given:
        check_name(option, name, allowed)


def _check_seed(name: str, value: Any, low: int, high: int) -> None:
    ends = value if isinstance(value, tuple | list) else (value, value)
    whole = all(isinstance(end, Integral) and not isinstance(end, bool) for end in ends)
    if len(ends) != 2 or not whole or not low <= ends[0] <= ends[1] <= high:
        raise InvalidValueError(
            f"{name} is {reprlib.repr(value)}",
            allowed=f"a whole number from {low:,} to {high:,}, or a lower and an upper end",
            fix=f"Ends are written {name}=[1,999]",
        )
