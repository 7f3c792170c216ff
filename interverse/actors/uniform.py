"""Draws variables uniformly from a space: all of them, or those that match patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from interverse.actors.actor import Actor, Assignment, Moment, matching
from interverse.scm.variable import SpaceName


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


_PLACES = ("cylindrical_position", "orientation")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Everything(Actor):
    """Draws every variable at once, sizes or positions by a fair coin.

    CausalWorld's random actor, and its fully random protocols.
    """

    space: SpaceName | None = None
    without: tuple[str, ...] = ("joint_positions",)
    """Variables left alone; the original never draws the robot's joints."""

    def act(self, moment: Moment) -> Assignment:
        """Returns one draw per world; a world whose coin shows sizes keeps its positions."""
        free = {
            name
            for name, v in moment.variables.items()
            if not v.read_only and name not in self.without
        }
        sizes = {name for name in free if name.rpartition("/")[2] == "size"}
        places = {name for name in free if name.rpartition("/")[2] in _PLACES}
        heads = moment.noise.uniform(f"{moment.tag}:coin") < 0.5
        # A place depends on the size it is drawn for, so each side of the coin is drawn apart.
        drawn = moment.draw(free - places, self.space)
        placed = moment.draw(free - sizes, self.space)
        out = {name: placed[name] if name in placed else drawn[name] for name in drawn | placed}
        for name in out.keys() & (sizes | places):
            keep = heads if name in sizes else ~heads
            rows = keep.reshape((-1,) + (1,) * (out[name].ndim - 1))
            out[name] = np.ma.array(out[name], mask=np.broadcast_to(~rows, out[name].shape))
        return out
