"""Goal actor: sets a new goal in each world, drawn by the task's own sampler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from numpy.typing import NDArray

from interverse.actors.actor import Actor, Assignment, Moment
from interverse.envs.values import to_numpy
from interverse.scm.variable import SpaceName


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
