"""Widens a variable's range when the agent succeeds: automatic domain randomisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor, Assignment, Moment, between, check_some, drawable
from interverse.core.errors import check_number
from interverse.core.type_checks import Share, number, validated, whole
from interverse.scm.variable import SpaceName, Variable
from interverse.worlds.world import Index


@final
@dataclass(slots=True, kw_only=True)
@validated
class Adaptive(Actor):
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

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if a pattern names nothing to draw."""
        check_some(self.patterns, "patterns")
        drawable(variables, self.patterns)

    def act(self, moment: Moment) -> Assignment:
        """Returns draws pulled towards the default by what is missing to the full share."""
        out: dict[str, NDArray[Any]] = {}
        for name, values in moment.draw(
            drawable(moment.variables, self.patterns), self.space
        ).items():
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
