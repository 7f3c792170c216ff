"""Draws variables uniformly from a space: all of them, or those that match patterns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Regional(Actor):
    """Draws variables from a region each: `{"block_*/size": "A", "block_*/mass": "B"}`."""

    regions: Mapping[str, SpaceName]
    """Patterns and the region of each; where two match, the later one holds."""

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

    CausalWorld's random actor, and its fully random protocols.
    """

    space: SpaceName | None = None
    without: tuple[str, ...] = ("joint_positions",)
    """Variables left alone; the original never draws the robot's joints."""

    but: Mapping[str, SpaceName] = field(default_factory=dict)
    """Patterns drawn from another region: everything from A but `{"block_*/mass": "B"}`."""

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
        free = [n for n, v in moment.variables.items() if not v.read_only and n not in self.without]
        regions = dict.fromkeys(free, self.space or moment.space)
        for pattern, region in self.but.items():
            regions |= dict.fromkeys(matching(moment.variables, [pattern]), region)
        return regions
