"""Draws variables uniformly from a space: all of them, or those that match patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from interverse.actors.actor import Actor, Assignment, Moment, matching
from interverse.scm.variable import SpaceName, Variable


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(Actor):
    """Draws every variable that matches a pattern.

    >>> Uniform(patterns=("block_*/mass",)).space is None
    True
    """

    patterns: tuple[str, ...] = ("*",)
    """Which variables, as `block_*/mass`."""
    kinds: tuple[str, ...] = ()
    """Only variables of these kinds; empty takes all."""
    space: SpaceName | None = None
    """The region to draw from; None takes the environment's."""

    def act(self, moment: Moment) -> Assignment:
        """Returns one draw per world and variable."""
        names = [
            name
            for name in matching(moment.variables, self.patterns)
            if not self.kinds or moment.variables[name].kind in self.kinds
        ]
        return moment.draw(names, self.space)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Everything(Actor):
    """Draws every variable at once, sizes or positions by a fair coin; never the robot's joints.

    CausalWorld's random actor, and its fully random protocols.
    """

    space: SpaceName | None = None

    def act(self, moment: Moment) -> Assignment:
        """Returns one draw per world; a world whose coin shows sizes keeps its positions."""
        free = [name for name, v in moment.variables.items() if _takes_part(name, v)]
        drawn = moment.draw(free, self.space)
        heads = moment.noise.uniform(f"{moment.tag}:coin") < 0.5
        for name in list(drawn):
            last = name.rpartition("/")[2]
            if last in ("size", "cylindrical_position", "orientation"):
                keep = heads if last == "size" else ~heads
                shape = (-1,) + (1,) * (drawn[name].ndim - 1)
                drawn[name] = np.where(keep.reshape(shape), drawn[name], moment.values(name))
        return drawn


def _takes_part(name: str, variable: Variable) -> bool:
    return not (variable.read_only or name == "joint_positions")
