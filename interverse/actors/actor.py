"""Actors choose the next intervention from the present values and addressed noise."""

from __future__ import annotations

import fnmatch
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, UnknownNameError, check_name, unknown
from interverse.core.rng import Noise
from interverse.envs.driver import Driver
from interverse.envs.values import Overlay, to_numpy
from interverse.scm.space import Space, UnitQuaternion
from interverse.scm.variable import SpaceName, Variable
from interverse.worlds.world import Index

# variable -> (n, *shape), one row per world; masked rows (numpy.ma) leave their worlds alone
Assignment = Mapping[str, NDArray[Any]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """What an actor sees: some worlds of an environment, and the noise to draw with.

    Attributes:
        driver: the environment's driver.
        worlds: which worlds, (n,).
        noise: their addresses, n rows.
        space: the region to draw from where an actor names none; A in training.
        tag: makes this actor's draws its own.
        given: what stages before this one set in the same intervention, n rows each.
        attempt: how often these worlds have refused the actor's draws at this moment.
    """

    driver: Driver
    worlds: Index
    noise: Noise
    space: SpaceName
    tag: str = "actor"
    given: Assignment = field(default_factory=dict)
    attempt: int = 0

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The declared variables; spaces may depend on values."""
        return self.driver.world.variables

    def values(self, name: str) -> NDArray[Any]:
        """Returns a variable's value in these worlds, (n, *shape): as given, else as it is."""
        check_name("variable", name, self.variables)
        return self.overlaid({})[name]

    def overlaid(self, drawn: Assignment) -> Overlay:
        """Returns the present values with those given and then those drawn laid over them."""
        given = ChainMap(dict(drawn), dict(self.given))
        return Overlay(self.driver.host_values, given, self.worlds, self.driver.world.graph)

    def region(self, name: str, space: SpaceName | None, drawn: Assignment) -> Space | None:
        """Returns a variable's region of a space, where bounds see what is given and drawn."""
        declared = self.variables[name]
        if declared.bounded:
            declared = declared.resolve(self.overlaid(drawn))
        return declared.region(space or self.space)

    def draw(self, names: Iterable[str], space: SpaceName | None = None) -> dict[str, Any]:
        """Returns uniform draws of some variables from one region; see `draw_each`."""
        return self.draw_each(dict.fromkeys(names, space or self.space))

    def draw_each(self, regions: Mapping[str, SpaceName | Space]) -> dict[str, Any]:
        """Returns uniform draws of variables, each from its region or space.

        A bound that depends on another variable (a height on a size) sees the value drawn for it.
        Variables without a published space are left out, and of two descriptions of
        one thing (the size of a block and of its goal) the first is drawn. Rows of objects that a
        world would not have then are masked.
        """
        for name in regions:
            check_name("variable", name, self.variables)
        graph = self.driver.world.graph
        drawn: dict[str, Any] = {}
        # Spaces that depend on values come last, so that they see what they depend on.
        for name in sorted(self.variables, key=lambda name: self.variables[name].bounded):
            if name not in regions or graph.twins(name) & drawn.keys():
                continue
            asked = regions[name]
            region = asked if isinstance(asked, Space) else self.region(name, asked, drawn)
            if region is not None:
                uniform = self.noise.uniform(f"{self.tag}:{name}", (region.draws,))
                drawn[name] = region.from_uniform(to_numpy(uniform))
        absent = self.driver.world.absent({**self.given, **drawn}, self.worlds)
        for name in drawn:
            if (gone := absent.get(name.partition("/")[0])) is not None:
                rows = gone.reshape((-1,) + (1,) * (drawn[name].ndim - 1))
                mask = np.broadcast_to(rows, drawn[name].shape)
                drawn[name] = np.ma.array(drawn[name], mask=mask)
        return drawn


class Actor(ABC):
    """Chooses an intervention for each world, or none."""

    may_idle: ClassVar[bool] = False
    """Whether it may ask, start after start, for what holds already: as a range that grows does."""

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:  # noqa: B027
        """Raises if it has nothing to choose among declared variables; before any episode."""

    def spaces(self, space: SpaceName) -> Collection[SpaceName]:
        """Returns the regions its values lie in; a world of another space refuses them."""
        return (getattr(self, "space", None) or space,)

    def outside(self, variables: Mapping[str, Variable], space: SpaceName) -> list[str]:
        """Returns variables of which it only draws values outside a space."""
        return []

    @abstractmethod
    def act(self, moment: Moment) -> Assignment:
        """Returns the values to set, one row per world; empty to leave the worlds alone."""

    def on_episode_end(self, success: NDArray[np.float64], worlds: Index) -> None:  # noqa: B027
        """Receives how episodes of some worlds ended; most actors ignore it."""

    def memory(self) -> dict[str, NDArray[Any]]:
        """Returns what it has learned from episodes, as arrays; a checkpoint keeps it."""
        return {}

    def set_memory(self, held: Mapping[str, NDArray[Any]]) -> None:  # noqa: B027
        """Takes back what `memory` returned."""


def choose(actor: Actor, moment: Moment) -> dict[str, NDArray[Any]]:
    """Returns what an actor sets, or raises naming the actor and its mistake."""
    given, name = actor.act(moment), type(actor).__name__
    rows = len(moment.worlds)
    if not isinstance(given, Mapping):
        raise InvalidValueError(
            f"{name}.act returned a {type(given).__name__}",
            allowed="a mapping of variables to rows of values; {} leaves the worlds alone",
        )
    for key, value in given.items():
        check_name(f"variable from {name}.act", key, moment.variables)
        if key in moment.driver.world.start_variables:
            raise InvalidValueError(
                f"{name} sets {key}, which acts where an episode starts: before any actor does",
                fix=f"Make the world with {key}, or give it to reset",
            )
        wanted = (rows, *moment.variables[key].shape)
        try:
            found = np.asarray(value)
        except ValueError:  # rows of several lengths
            found = np.empty(0, dtype=object)
        if found.shape != wanted or found.dtype.kind not in "biuf":
            raise InvalidValueError(
                f"{name}.act returned {key} as {found.dtype} of shape {found.shape}",
                allowed=f"numbers of shape {wanted}: one row for each of {rows} worlds",
            )
    return dict(given)


def apply(
    driver: Driver, values: Assignment, worlds: Index, *, check: bool = True
) -> dict[int, str]:
    """Intervenes in some worlds; returns those that refused, with why.

    Worlds whose rows are masked in the same variables are done together. Without `check` values may
    lie outside the active space, never outside their domain.
    """
    names = list(values)
    if not names or not len(worlds):
        return {}
    masks = [np.ma.getmaskarray(values[name]).reshape(len(worlds), -1) for name in names]
    asked = ~np.stack([mask.any(axis=1) for mask in masks], axis=1)
    refused: dict[int, str] = {}
    for key in np.unique(asked, axis=0):
        rows = np.flatnonzero(np.all(asked == key, axis=1))
        chosen = {}
        for name, on in zip(names, key, strict=True):
            if on:
                chosen[name] = driver.host_values[name]
                chosen[name][worlds[rows]] = np.asarray(values[name])[rows]
        if chosen:
            refused |= driver.do(chosen, worlds=worlds[rows], check=check).reasons
    return refused


def between(space: Space, start: NDArray[Any], end: NDArray[Any], share: Any) -> NDArray[Any]:
    """Returns points of a space on the way from the one next to `start`; a rotation turns.

    None of them leaves the space, even where both ends lie outside; share 0 is the start, 1 the
    end.
    """
    first, last = space.nearest(start), np.asarray(end)
    if isinstance(space, UnitQuaternion):  # two signs stand for one rotation: the shorter turn
        last = last * np.where(np.sum(first * last, axis=-1, keepdims=True) < 0.0, -1.0, 1.0)
    return space.nearest((1.0 - share) * first + share * last)


def drawable(
    variables: Mapping[str, Variable],
    patterns: Iterable[str],
    region: SpaceName = "A",
    kinds: Collection[str] = (),
) -> list[str]:
    """Returns the variables (of some kinds) that match and have a space; no match raises.

    For the region A_B, an A is enough.
    """
    out: list[str] = []
    for pattern in patterns:
        found = matching(variables, [pattern])
        kept = [n for n in found if not kinds or variables[n].kind in kinds]
        part = "space_b" if region == "B" else "space_a"
        spaced = [n for n in kept if getattr(variables[n], part) is not None]
        if not spaced:
            what = f"{pattern} ({', '.join(found[:3])})" if found != [pattern] else pattern
            raise InvalidValueError(
                f"{what} has no space {region}" if kept else f"{what} has no kind {kinds}",
                allowed="variables with that space: see `interverse describe`",
                fix="Give a range of your own: Uniform(ranges={name: (low, high)})",
            )
        out += [name for name in spaced if name not in out]
    return out


def check_some(given: Collection[str], name: str) -> None:
    """Raises if an actor is given no variable at all: it would change nothing, in silence."""
    if not given:
        raise InvalidValueError(f"{name} is empty", allowed="one variable or more")


def matching(
    variables: Mapping[str, Variable], patterns: Iterable[str], *, read_only: bool = False
) -> list[str]:
    """Returns the settable variables (or all) whose names match a pattern such as `block_*/mass`.

    A pattern that matches nothing raises: a typing error must not become an empty intervention.
    """
    settable = [name for name, v in variables.items() if read_only or not v.read_only]
    out: list[str] = []
    for pattern in patterns:
        found = fnmatch.filter(settable, pattern)
        if not found:
            raise UnknownNameError(unknown("variable pattern", pattern, settable))
        out += [name for name in found if name not in out]
    return out
