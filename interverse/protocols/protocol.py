"""What a test intervenes on: variables, region, when. A protocol is a frozen line of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Moment, apply, matching
from interverse.actors.uniform import Everything
from interverse.envs.driver import Driver
from interverse.errors import InvalidValueError, explain
from interverse.rng import Noise
from interverse.scm.variable import SPACE_NAMES, SpaceName
from interverse.worlds.world import Index

ATTEMPTS = 6  # a draw and five redraws, as in CausalWorld
Regions = Mapping[str, SpaceName]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Draws some variables from a region, at the start of each episode or at other steps.

    `variables` maps patterns to regions, so "A everywhere but B for the mass" is
    `{"block_*/size": "A", "block_*/mass": "B"}`.

    >>> Protocol(name="heavy", variables={"block_*/mass": "B"}).at
    (0,)
    """

    name: str
    variables: Regions = field(default_factory=dict)
    everything: SpaceName | None = None
    """Draw everything from this region instead, sizes or positions by a coin."""
    without: tuple[str, ...] = ("gravity", "joint_positions")
    """What `everything` leaves out: CausalWorld's never drew these."""
    at: tuple[int, ...] = (0,)
    """Before which actions it acts; 0 is the start of the episode."""
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", dict(self.variables))  # a copy, and it pickles
        for pattern, region in self.variables.items():
            if region not in SPACE_NAMES:
                raise InvalidValueError(
                    explain(
                        f"protocol {self.name}: region of {pattern} is {region!r}",
                        allowed=", ".join(SPACE_NAMES),
                    )
                )

    def check(self, driver: Driver) -> None:
        """Raises unless every pattern names variables with that region in this world."""
        variables = driver.world.variables
        for pattern, region in self.variables.items():
            for name in matching(variables, [pattern]):
                declared = variables[name]
                if declared.space_a is None or (region == "B" and declared.space_b is None):
                    raise InvalidValueError(
                        explain(
                            f"protocol {self.name}: {name} has no space {region}",
                            fix="See `interverse describe` for the published spaces",
                        )
                    )

    def draw(self, driver: Driver, worlds: Index, attempt: int) -> dict[str, NDArray[Any]]:
        """Returns the values to set, one row per world; masked rows leave their worlds alone."""
        noise = Noise(driver.seeds[worlds], driver.episodes[worlds], driver.steps[worlds])
        tag = f"protocol/{self.name}/{attempt}"
        moment = Moment(driver, worlds, noise, "A_B", tag)
        if self.everything is not None:
            return dict(Everything(space=self.everything, without=self.without).act(moment))
        return self._draw_named(moment)

    def _draw_named(self, moment: Moment) -> dict[str, NDArray[Any]]:
        names = {
            name: region
            for pattern, region in self.variables.items()
            for name in matching(moment.variables, [pattern])
        }
        return moment.draw_each(names)

    def apply(self, driver: Driver, worlds: Index) -> dict[int, str]:
        """Intervenes in some worlds, drawing refused ones again; returns those still refused."""
        pending, refused = worlds, {}
        for attempt in range(ATTEMPTS):
            refused = apply(driver, self.draw(driver, pending, attempt), pending)
            pending = np.array(sorted(refused), dtype=np.int64)
            if not refused:
                break
        return refused


@final
@dataclass(frozen=True, slots=True)
class Region:
    """A product of spaces, one per variable: what a policy was trained or is tested on.

    >>> train = Region({"block_*/mass": "A", "floor/friction": "A"})
    >>> (train | Region({"block_*/mass": "B"})).spaces["block_*/mass"]
    'B'
    """

    spaces: Regions

    def __or__(self, other: Region) -> Region:
        return Region({**self.spaces, **other.spaces})

    def protocol(self, name: str, at: Sequence[int] = (0,)) -> Protocol:
        """Returns the protocol that draws from this region."""
        return Protocol(name=name, variables=self.spaces, at=tuple(at))
