"""Actors that follow what happens: successes, a critic, the number of the episode, an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import (
    Actor,
    Assignment,
    Moment,
    between,
    check_some,
    drawable,
    matching,
)
from interverse.core.errors import InvalidValueError, check_number
from interverse.core.type_checks import Share, number, validated, whole
from interverse.scm.space import Space
from interverse.scm.variable import SpaceName, Variable, lookup
from interverse.worlds.world import Index


class _Patterned(Actor):
    """Acts on the variables that match some patterns."""

    patterns: tuple[str, ...]

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if a pattern names nothing to draw."""
        check_some(self.patterns, "patterns")
        drawable(variables, self.patterns)


@final
@dataclass(slots=True, kw_only=True)
@validated
class Adaptive(_Patterned):
    """Draws from a share of the space that grows and shrinks with success.

    The share lies around the point of the space that is next to the default.
    """

    may_idle: ClassVar[bool] = True  # the share may begin at 0
    patterns: tuple[str, ...]
    space: SpaceName | None = None
    """The region to draw from; None takes the curriculum's, A by default."""
    raise_at: Share = 0.8
    """Mean success above which the range grows."""
    lower_at: float = 0.3
    """Mean success below which it shrinks."""
    step: Annotated[float, number(most=1.0, above=True)] = 0.05
    """By how much of the space it grows or shrinks."""
    window: Annotated[int, whole(10**9)] = 50
    """Episodes whose mean success decides; raise it when the range flutters."""
    share: Share = 0.0
    """The present share of the space, 0 to 1."""
    _recent: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_number(self.lower_at, "lower_at", most=self.raise_at)

    def act(self, moment: Moment) -> Assignment:
        """Returns draws pulled towards the default by what is missing to the full share."""
        out: dict[str, NDArray[Any]] = {}
        names = drawable(moment.variables, self.patterns)
        for name, values in moment.draw(names, self.space).items():
            if (space := moment.region(name, self.space, out)) is not None:
                pulled = between(space, moment.variables[name].default, values, self.share)
                masked = np.ma.isMaskedArray(values)  # some worlds have no such object
                out[name] = np.ma.array(pulled, mask=values.mask) if masked else pulled
        return out

    def on_episode_end(self, success: NDArray[np.float64], worlds: Index) -> None:
        """Counts successes and moves the share when a window is full."""
        self._recent += success.tolist()
        while len(self._recent) >= self.window:
            mean = float(np.mean(self._recent[: self.window]))
            del self._recent[: self.window]
            change = self.step * ((mean > self.raise_at) - (mean < self.lower_at))
            self.share = float(np.clip(self.share + change, 0.0, 1.0))

    def memory(self) -> dict[str, NDArray[Any]]:
        """Returns the present share and the successes not yet counted."""
        return {"share": np.array(self.share), "recent": np.array(self._recent, dtype=np.float64)}

    def set_memory(self, held: Mapping[str, NDArray[Any]]) -> None:
        """Takes back what `memory` returned."""
        self.share, self._recent = float(held["share"]), held["recent"].tolist()


Critic = Callable[[Moment, Assignment], NDArray[np.float64]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class Adversarial(_Patterned):
    """Draws k times and keeps, per world, the draw with the lowest expected score."""

    patterns: tuple[str, ...]
    critic: Critic
    """Expected score of each world under a draw, (n,): a value function, a regression, a rule."""
    draws: Annotated[int, whole(10**9)] = 8
    space: SpaceName | None = None
    """The region to draw from; None takes the curriculum's, A by default."""

    def act(self, moment: Moment) -> Assignment:
        """Returns each world's worst draw."""
        region = self.space or moment.space
        names = drawable(moment.variables, self.patterns)
        moments = [replace(moment, tag=f"{moment.tag}#{k}") for k in range(self.draws)]
        candidates = [m.draw(names, region) for m in moments]
        scores = np.array([self.critic(moment, candidate) for candidate in candidates])
        if scores.shape != (self.draws, len(moment.worlds)) or not np.isfinite(scores).all():
            raise InvalidValueError(
                f"the critic returned scores of shape {scores.shape[1:]}",
                allowed=f"finite numbers of shape ({len(moment.worlds)},), one for each world",
            )
        worst = np.argmin(scores, axis=0)
        rows = np.arange(len(worst))
        return {
            name: np.ma.stack([c[name] for c in candidates])[worst, rows] for name in candidates[0]
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class Interpolation(Actor):
    """Sets variables on the way from their defaults to a target, by episode number.

    A point of the line that lies outside the space is brought to the next one inside.
    """

    may_idle: ClassVar[bool] = True  # the way begins at the defaults
    target: Mapping[str, Any]
    """Where variables end, by name or pattern; where two match, the later one holds."""
    episodes: Annotated[int, whole(10**9)] = 100
    """After how many episodes the target is reached."""
    space: SpaceName | None = None
    """The region that target and way lie in; None takes the curriculum's, A by default."""

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if a target names no variable or lies outside its domain or the space."""
        check_some(self.target, "target")
        target = self._target(variables)
        for name, value in target.items():
            _check_target(name, value, variables[name].domain, "its domain", fix="")
        values = {n: np.asarray(target.get(n, v.default)) for n, v in variables.items()}
        for name, value in target.items():
            region = lookup(variables, name).resolve(values).region(self.space or space)
            where, fix = f"space {self.space or space}", "Give Interpolation(space='A_B')"
            if region is not None:
                _check_target(name, value, region, where, fix=f"{fix} in a world of that space")

    def act(self, moment: Moment) -> Assignment:
        """Returns the point on the way that each world's episode stands at."""
        share = np.minimum(np.asarray(moment.noise.episodes) / self.episodes, 1.0)
        target = self._target(moment.variables)
        out: dict[str, NDArray[Any]] = {}
        # Spaces that depend on values come last, so that they see what they depend on.
        for name in sorted(target, key=lambda name: moment.variables[name].bounded):
            variable = moment.variables[name]
            rows = share.reshape((-1,) + (1,) * len(variable.shape))
            space = moment.region(name, self.space, out) or variable.domain
            out[name] = between(space, variable.default, np.asarray(target[name]), rows)
        return out

    def _target(self, variables: Mapping[str, Variable]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for pattern, value in self.target.items():
            out |= dict.fromkeys(matching(variables, [pattern]), value)
        return out


def _check_target(name: str, value: object, space: Space, where: str, *, fix: str) -> None:
    if not space.contains(value):  # type: ignore[arg-type] # whatever the user gave
        raise InvalidValueError(
            f"the target of {name} is {value!r}, outside {where}",
            allowed=f"{space.low.tolist()} to {space.high.tolist()}",
            fix=fix,
        )


@final
@dataclass(slots=True, kw_only=True)
class AgentDriven(_Patterned):
    """Maps numbers in [-1, 1], set with `choose`, onto the variables' spaces."""

    may_idle: ClassVar[bool] = True  # the agent may choose what holds
    patterns: tuple[str, ...]
    space: SpaceName | None = None
    """The region to choose from; None takes the curriculum's, A by default."""
    _choice: NDArray[np.float64] | None = field(default=None)

    def size(self, moment: Moment) -> int:
        """Returns how many numbers the agent must choose per world."""
        return sum(self._draws(moment))

    def choose(self, numbers: NDArray[np.float64]) -> None:
        """Takes the agent's choice in [-1, 1]: (worlds, size), a row for every world."""
        self._choice = np.clip(np.asarray(numbers, dtype=np.float64), -1.0, 1.0)

    def act(self, moment: Moment) -> Assignment:
        """Returns the values the choice stands for; empty before the first choice.

        With a row for every world of the environment, some of its worlds take theirs.
        """
        if self._choice is None:
            return {}
        size, count = self.size(moment), len(moment.worlds)
        everyone = moment.driver.world.num_worlds
        if self._choice.shape not in ((count, size), (everyone, size)):
            raise InvalidValueError(
                f"the choice has shape {self._choice.shape}",
                allowed=f"({everyone}, {size}): one row per world",
            )
        rows = self._choice[moment.worlds] if len(self._choice) == everyone else self._choice
        names = drawable(moment.variables, self.patterns)
        parts = np.split(rows, np.cumsum(self._draws(moment))[:-1], axis=1)
        chosen = dict(zip(names, parts, strict=True))
        out: dict[str, NDArray[Any]] = {}
        # Spaces that depend on values come last, so that they see what they depend on.
        for name in sorted(chosen, key=lambda name: moment.variables[name].bounded):
            part = np.minimum(0.5 * (chosen[name] + 1.0), np.nextafter(1.0, 0.0))
            out[name] = self._region(moment, name, out).from_uniform(part)
        return out

    def _draws(self, moment: Moment) -> list[int]:
        names = drawable(moment.variables, self.patterns)
        return [self._region(moment, name, {}).draws for name in names]

    def _region(self, moment: Moment, name: str, drawn: Assignment) -> Space:
        region = moment.region(name, self.space, drawn)
        assert region is not None  # `drawable` leaves out what has none
        return region
