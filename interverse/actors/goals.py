"""Asks the task for a new goal, as the task's own sampler draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from interverse.actors.actor import Actor, Assignment, Moment
from interverse.scm.variable import SpaceName


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Goals(Actor):
    """CausalWorld's goal actor."""

    space: SpaceName | None = None

    def act(self, moment: Moment) -> Assignment:
        """Returns a new goal per world."""
        world = moment.driver.world
        return world.sample_goal(moment.worlds, moment.noise, self.space or moment.space)
