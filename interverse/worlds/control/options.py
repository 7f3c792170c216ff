"""Options of the control worlds."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Annotated, Any

from interverse.art.pictures import COLOR_MODES, VIDEO_MODES, VIDEO_PLACES, difficulty
from interverse.core.errors import InvalidValueError, check_name, check_whole
from interverse.core.type_checks import one_of, validated, whole
from interverse.scm.variable import SPACE_NAMES
from interverse.sim.drawing import QUALITIES
from interverse.worlds.control.distraction import DISTRACTIONS, KINDS
from interverse.worlds.control.domains import DOMAINS, MULTI_POLES
from interverse.worlds.control.dynamics import dynamics_variables
from interverse.worlds.control.looks import SWITCHES
from interverse.worlds.control.suite import check_task
from interverse.worlds.control.variables import LARGEST_DYNAMICS_SEED, LARGEST_VISUAL_SEED
from interverse.worlds.world import WorldOptions

CONTROL_STEPS = 1000  # of every episode
OBSERVATIONS = ("pixels", "state", "depth", "segmentation")
RENDERERS = ("mujoco", "warp", "cuda")
_LARGEST_IMAGE = 2048
_Steps = Annotated[int, whole(CONTROL_STEPS)]
_PICTURE_OPTIONS = ("image_size", "frame_stack", "channels_first", "quality")  # of observations


def _seed(low: int, high: int) -> Callable[..., None]:
    """Returns the bound of an option that is a seed, or the two ends to draw it from."""

    def check(value: Any, name: str) -> None:
        ends = value if isinstance(value, tuple | list) else (value, value)
        whole = all(isinstance(end, Integral) and not isinstance(end, bool) for end in ends)
        if len(ends) != 2 or not whole or not low <= ends[0] <= ends[1] <= high:
            raise InvalidValueError(
                f"{name} is {reprlib.repr(value)}",
                allowed=f"a whole number from {low:,} to {high:,}, or a lower and an upper end",
                fix=f"Ends are written {name}=[1,999]",
            )

    return check


@dataclass(frozen=True, kw_only=True)
@validated
class ControlOptions(WorldOptions):
    """Options of the control worlds."""

    domain: str = "cartpole"
    """Which domain of the suite; the id sets it."""
    task: str = "balance"
    """Which task of the domain; the id sets it."""
    visual_seed: Annotated[
        int | tuple[int, int], _seed(-LARGEST_VISUAL_SEED, LARGEST_VISUAL_SEED)
    ] = 0
    """The look of every episode, or two ends (both included) to draw it from in each episode."""
    dynamics_seed: Annotated[int | tuple[int, int] | None, _seed(0, LARGEST_DYNAMICS_SEED)] = None
    """The initial state of every episode, or two ends to draw it from; None draws from all."""
    vary: tuple[str, ...] = SWITCHES
    """Which factors a visual seed decides; the others keep their default. "all" is all of them."""
    vary_dynamics: tuple[str, ...] = ()
    """Which dynamics variables the dynamics seed draws from their space A in each episode."""
    image_size: int | tuple[int, int] = 84
    """Pixels of an edge, or rows and columns."""
    frame_stack: _Steps = 3
    """Pictures in an observation, the oldest first; the first one of an episode is repeated."""
    frame_skip: _Steps = 1
    """Control steps for which an action is repeated; rewards add up."""
    channels_first: bool = True
    """Whether pixels are (channels, rows, columns) or (rows, columns, channels)."""
    observation: str | tuple[str, ...] = "pixels"
    """pixels, state, depth or segmentation; several give a dict."""
    quality: Annotated[str, one_of(QUALITIES)] = "default"
    """default, fast (rougher edges and shadows) or full (as the stock suite draws)."""
    renderer: Annotated[str, one_of(RENDERERS)] = "mujoco"
    """mujoco (GL on the CPU), or Warp's ray caster for all worlds at once: cuda, or warp (slow, on
    the CPU). It draws no mirror, no transparency and no haze."""
    textures: str | os.PathLike[str] | None = None
    """A folder of pictures to use for floors and backgrounds instead of the generated ones."""
    pictures: Annotated[str, one_of(SPACE_NAMES)] = "A_B"
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
        check_task(self.domain, self.task)
        # What can be written in several ways gets one form: snapshots compare options.
        if str(self.vary) == "all":
            object.__setattr__(self, "vary", SWITCHES)
        lists = {
            "vary": (SWITCHES, SWITCHES),
            "vary_dynamics": ((), self.dynamics_names),
            "distract": (KINDS, KINDS),
        }
        for name, (order, allowed) in lists.items():
            given = _names(name, getattr(self, name))
            _check_names(name, given, allowed)
            object.__setattr__(self, name, _in_order(given, order))
        for name in ("textures", "videos"):
            if isinstance(getattr(self, name), os.PathLike):
                object.__setattr__(self, name, os.fspath(getattr(self, name)))
        _check_names("observation", self.kinds, OBSERVATIONS)
        if not self.kinds:
            raise InvalidValueError("observation is empty", allowed=", ".join(OBSERVATIONS))
        if self.legacy_draws and self.pictures != "A_B":
            problem = f"pictures is {self.pictures!r} with legacy_draws"
            raise InvalidValueError(problem, allowed="A_B")
        if self.distraction is not None:
            difficulty(self.distraction)
        if self.mode is not None and self.distract != DISTRACTIONS:
            problem = f"distract is {self.distract!r} with {self.mode}"
            raise InvalidValueError(problem, fix="Leave distract out")
        for edge in self.size:
            check_whole(edge, "image_size", _LARGEST_IMAGE)
        if self.device != "cpu":
            problem = f"device is {self.device!r}"
            raise InvalidValueError(problem, allowed='"cpu": dm_control steps there')
        known = {"pixels", "state"}
        if self.renderer != "mujoco" and ("pixels" not in self.kinds or set(self.kinds) - known):
            raise InvalidValueError(
                f"observation is {self.observation!r} with renderer={self.renderer!r}",
                allowed="pixels, or pixels and state",
                fix='Leave renderer out: renderer="mujoco" draws the others',
            )
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
