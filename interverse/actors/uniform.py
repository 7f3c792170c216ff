"""Actors that draw from spaces: by patterns, everything, and CausalWorld's actors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor, Assignment, Moment, drawable, matching
from interverse.core.errors import InvalidValueError
from interverse.envs.values import to_numpy
from interverse.scm.space import Box, Integers, Space
from interverse.scm.variable import SpaceName, Variable
from interverse.worlds.trifinger import ARENA, inverse_kinematics


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(Actor):
    """Draws every variable that matches a pattern, or those with a range of your own.

    >>> Uniform(patterns=("block_*/mass",)).space is None
    True
    """

    patterns: tuple[str, ...] | None = None
    """Which variables, as `block_*/mass`; by default all with a space, or those of `ranges`."""
    kinds: tuple[str, ...] = ()
    """Only variables of these kinds; empty takes all."""
    space: SpaceName | None = None
    """The region to draw from; None takes the curriculum's, A by default."""
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Patterns and the lowest and highest value to draw, for variables without a space too."""

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if there is nothing to draw, or a range leaves a variable's domain."""
        _check_some(self._regions(variables, self.space or space))

    def outside(self, variables: Mapping[str, Variable], space: SpaceName) -> list[str]:
        """Returns the variables whose own range shares no value with a space."""
        out = []
        for name, own in self._regions(variables, space).items():
            region = None if variables[name].bounded else variables[name].region(space)
            if isinstance(own, Space) and isinstance(region, Box | Integers):
                middle = region.from_uniform(np.full(region.draws, 0.5))
                out += [] if region.inside(own.nearest(middle)) else [name]
        return out

    def act(self, moment: Moment) -> Assignment:
        """Returns one draw per world and variable."""
        return moment.draw_each(self._regions(moment.variables, self.space or moment.space))

    def _regions(
        self, variables: Mapping[str, Variable], region: SpaceName
    ) -> dict[str, SpaceName | Space]:
        patterns = (() if self.ranges else ("*",)) if self.patterns is None else self.patterns
        out: dict[str, SpaceName | Space] = {}
        out |= dict.fromkeys(drawable(variables, patterns, kinds=self.kinds), region)
        for pattern, ends in self.ranges.items():
            for name in matching(variables, [pattern]):
                if not self.kinds or variables[name].kind in self.kinds:
                    out[name] = _range(variables[name], ends)
        return out


def _check_some(names: Collection[str]) -> None:
    if not names:
        raise InvalidValueError(
            "the actor has no variable to draw", fix="Give it patterns that name some"
        )


def _range(variable: Variable, given: tuple[Any, Any]) -> Space:
    """Returns the user's range as a space, or raises if it leaves the variable's domain."""
    domain = variable.domain
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=float), domain.shape) for end in given)
        inside = bool(domain.inside(np.stack([low, high])).all())
    except (TypeError, ValueError):
        inside = False
    if not inside:
        raise InvalidValueError(
            f"the range of {variable.name} is {given}",
            allowed=f"two ends within {domain.low.tolist()} to {domain.high.tolist()}",
        )
    return (Integers if domain.integral else Box)(low, high, domain.shape)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Regional(Actor):
    """Draws variables from a region each: `{"block_*/size": "A", "block_*/mass": "B"}`."""

    regions: Mapping[str, SpaceName]
    """Patterns and the region of each; where two match, the later one holds."""

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if there is no pattern, or one names nothing with its region."""
        if not self.regions:
            raise InvalidValueError(
                "regions is empty", fix="Give patterns, as {'block_*/mass': 'A'}"
            )
        for pattern, region in self.regions.items():
            drawable(variables, [pattern], region)

    def spaces(self, space: SpaceName) -> Collection[SpaceName]:
        """Returns the regions it was given."""
        return self.regions.values()

    def act(self, moment: Moment) -> Assignment:
        """Returns one draw per world and variable."""
        names: dict[str, SpaceName] = {}
        for pattern, region in self.regions.items():
            names |= dict.fromkeys(matching(moment.variables, [pattern]), region)
        return moment.draw_each(names)


_PLACES = ("cylindrical_position",)  # a turn is drawn whatever the coin shows


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Everything(Actor):
    """Draws every variable at once, sizes or positions by a fair coin.

    CausalWorld's random actor, and its fully random protocols. Where a scene is built from
    variables (`tower/counts`, `stack/levels`), these are drawn, and not what they build: there too
    the new scene forgets it.
    """

    space: SpaceName | None = None
    """The region to draw from; None takes the curriculum's, A by default."""
    without: tuple[str, ...] = ()
    """Patterns of variables left alone, beside those that say they are not `drawn`."""
    but: Mapping[str, SpaceName] = field(default_factory=dict)
    """Patterns drawn from another region: everything from A but `{"block_*/mass": "B"}`."""

    def spaces(self, space: SpaceName) -> Collection[SpaceName]:
        """Returns its region and those of the exceptions."""
        return (self.space or space, *self.but.values())

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if nothing is left to draw, or a name or pattern stands for nothing."""
        left_out = self._left_out(variables)
        for pattern, region in self.but.items():
            drawable(variables, [pattern], region)
        _check_some([*self.but, *(n for n in drawable(variables, ["*"]) if n not in left_out)])

    def _left_out(self, variables: Mapping[str, Variable]) -> set[str]:
        named = matching(variables, self.without, read_only=True)
        return {*named, *(name for name, variable in variables.items() if not variable.drawn)}

    def act(self, moment: Moment) -> Assignment:
        """Returns one draw per world; a world whose coin shows sizes keeps its positions."""
        regions = self._regions(moment)
        sizes = {name for name in regions if name.rpartition("/")[2] == "size"}
        places = {name for name in regions if name.rpartition("/")[2] in _PLACES}
        heads = moment.noise.uniform(f"{moment.tag}:coin") < 0.5
        # A place depends on the size it is drawn for, so each side of the coin is drawn apart.
        drawn = moment.draw_each({n: r for n, r in regions.items() if n not in places})
        placed = moment.draw_each({n: r for n, r in regions.items() if n not in sizes})
        out = {name: placed[name] if name in placed else drawn[name] for name in drawn | placed}
        for name in out.keys() & (sizes | places):
            keep = heads if name in sizes else ~heads
            rows = keep.reshape((-1,) + (1,) * (out[name].ndim - 1))
            out[name] = np.ma.array(out[name], mask=np.broadcast_to(~rows, out[name].shape))
        return out

    def _regions(self, moment: Moment) -> dict[str, SpaceName]:
        left_out = self._left_out(moment.variables)
        free = [n for n, v in moment.variables.items() if not v.read_only and n not in left_out]
        world = moment.driver.world
        causes = [name for name in world.scene_variables if name in free]
        built = set().union(*(world.graph.effects_now(name) for name in causes))
        regions = {n: self.space or moment.space for n in free if n not in built}
        for pattern, region in self.but.items():
            regions |= dict.fromkeys(matching(moment.variables, [pattern]), region)
        return regions


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Goals(Actor):
    """CausalWorld's goal actor."""

    space: SpaceName | None = None

    def act(self, moment: Moment) -> Assignment:
        """Returns a new goal per world that fits the sizes an earlier stage gave."""
        world = moment.driver.world
        noise = moment.noise.again(moment.attempt)
        goal = world.sample_goal(moment.worlds, noise, self.space or moment.space)
        if not moment.given:
            return goal
        out: dict[str, NDArray[Any]] = {}
        for name, values in goal.items():
            space = moment.region(name, self.space, out)
            out[name] = to_numpy(values) if space is None else space.nearest(to_numpy(values))
        return out


_ANGLES, _HEIGHT = "joint_positions", "robot/height"
_TIPS = 9  # x, y, z of three fingertips

Point = tuple[float, float, float]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Joints(Actor):
    """CausalWorld's joints actor: the inverse kinematics of three uniform points in a box.

    Most draws that put a finger into a block or into another finger are refused and drawn again.
    """

    low: Point = ARENA[0]
    """The box's lowest corner, m above the floor."""
    high: Point = ARENA[1]
    """Its highest corner, m."""

    def spaces(self, space: SpaceName) -> Collection[SpaceName]:
        """Returns A_B: nine angles of points anywhere are hardly ever all in A or all in B."""
        whole: SpaceName = "A_B"
        return (whole,)

    def act(self, moment: Moment) -> Assignment:
        """Returns joint angles per world."""
        if _ANGLES not in moment.variables or moment.variables[_ANGLES].shape != (_TIPS,):
            raise InvalidValueError(
                f"{moment.driver.id} has no {_ANGLES} of three fingers",
                allowed="TriFinger worlds",
                fix="Use another actor, such as uniform",
            )
        low, high = (np.tile(np.asarray(end, dtype=np.float64), 3) for end in (self.low, self.high))
        uniform = to_numpy(moment.noise.uniform(f"{moment.tag}:tips", (_TIPS,)))
        tips = low + uniform * (high - low)
        angles = inverse_kinematics(tips, moment.values(_ANGLES), moment.values(_HEIGHT))
        return {_ANGLES: angles}


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfThings(Actor):
    """Draws some variables of the things whose names start with `group`."""

    what: ClassVar[str]  # it draws, for messages
    whole: ClassVar[str] = "anything"
    mend: ClassVar[Mapping[str, str]] = {"allowed": "appearance variables with a space"}
    group: str = ""
    """Only things whose names start so: `block`, `finger_0`, `floor`; empty takes all."""
    space: SpaceName | None = None
    """The region to draw from; None takes the curriculum's, A by default."""

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if the group has nothing to draw."""
        self._some(variables)

    def act(self, moment: Moment) -> Assignment:
        """Returns one draw per world and variable."""
        return moment.draw(self._some(moment.variables), self.space)

    def _some(self, variables: Mapping[str, Variable]) -> Collection[str]:
        names = matching(variables, [f"{self.group}*"])
        spaced = [name for name in names if variables[name].space_a is not None]
        found = [(name, variables[name].kind, name.rpartition("/")[2]) for name in spaced]
        if not (chosen := self._chosen(found)):
            told = f"the world has no {self.what} to draw of {self.group or self.whole}"
            raise InvalidValueError(told, **self.mend)
        return chosen

    @abstractmethod
    def _chosen(self, found: Iterable[tuple[str, str, str]]) -> Collection[str]:
        """Returns what to draw, of names with their kinds and last words."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalProperties(_OfThings):
    """CausalWorld's physical properties actor: each thing's mass, else its friction."""

    what = "mass or friction"
    mend: ClassVar[Mapping[str, str]] = {"fix": "Give a group such as block or floor"}

    def _chosen(self, found: Iterable[tuple[str, str, str]]) -> Collection[str]:
        chosen: dict[str, str] = {}
        for quality in ("mass", "friction"):  # of each thing the first that has a space
            for name, _, last in found:
                if last == quality:
                    chosen.setdefault(name.rpartition("/")[0], name)
        return chosen.values()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RigidPose(_OfThings):
    """CausalWorld's rigid pose actor: draws the pose of every object that is not a goal."""

    what, whole = "pose", "any object"
    positions: bool = True
    """Whether to draw positions."""
    orientations: bool = True
    """Whether to draw orientations."""

    def __post_init__(self) -> None:
        if not (self.positions or self.orientations):
            raise InvalidValueError(
                "positions and orientations are both off", fix="Leave one of them on"
            )

    @property
    def _parts(self) -> tuple[str, ...]:
        places = ("cylindrical_position", "position") * self.positions
        return (*places, *("orientation",) * self.orientations)

    @property
    def mend(self) -> Mapping[str, str]:  # type: ignore[override]
        """What may be drawn, for the message."""
        return {"allowed": f"state variables named {', '.join(self._parts)} with a space"}

    def _chosen(self, found: Iterable[tuple[str, str, str]]) -> list[str]:
        return [name for name, kind, last in found if kind == "state" and last in self._parts]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Visual(_OfThings):
    """CausalWorld's visual actor: draws every colour, and every other look with a space."""

    what = "looks"

    def _chosen(self, found: Iterable[tuple[str, str, str]]) -> list[str]:
        return [name for name, kind, _ in found if kind == "appearance"]
