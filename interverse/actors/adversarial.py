"""Picks the draw that a critic expects to go worst."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor, Assignment, Moment, check_some, drawable
from interverse.core.errors import InvalidValueError, explain
from interverse.core.type_checks import validated, whole
from interverse.scm.variable import SpaceName, Variable

Critic = Callable[[Moment, Assignment], NDArray[np.float64]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class Adversarial(Actor):
    """Draws k times and keeps, per world, the draw with the lowest expected score."""

    patterns: tuple[str, ...]
    critic: Critic
    """Expected score of each world under a draw, (n,): a value function, a regression, a rule."""
    draws: Annotated[int, whole(10**9)] = 8
    space: SpaceName | None = None
    """The region to draw from; None takes the curriculum's, A by default."""

    def check(self, variables: Mapping[str, Variable], space: SpaceName) -> None:
        """Raises if a pattern names nothing to draw."""
        check_some(self.patterns, "patterns")
        drawable(variables, self.patterns)

    def act(self, moment: Moment) -> Assignment:
        """Returns each world's worst draw."""
        region = self.space or moment.space
        names = drawable(moment.variables, self.patterns)
        moments = [replace(moment, tag=f"{moment.tag}#{k}") for k in range(self.draws)]
        candidates = [m.draw(names, region) for m in moments]
        scores = np.array([self.critic(moment, candidate) for candidate in candidates])
        if scores.shape != (self.draws, len(moment.worlds)) or not np.isfinite(scores).all():
            raise InvalidValueError(
                explain(
                    f"the critic returned scores of shape {scores.shape[1:]}",
                    allowed=f"finite numbers of shape ({len(moment.worlds)},), one for each world",
                )
            )
        worst = np.argmin(scores, axis=0)
        rows = np.arange(len(worst))
        return {
            name: np.ma.stack([c[name] for c in candidates])[worst, rows] for name in candidates[0]
        }
