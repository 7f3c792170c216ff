"""A protocol: which variables a test draws, from which region, when. A frozen line of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor, Moment, apply, choose, matching
from interverse.actors.uniform import Everything, Regional
from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import Noise
from interverse.envs.driver import Driver
from interverse.envs.values import to_numpy
from interverse.scm.variable import SPACE_NAMES, SpaceName
from interverse.worlds.world import Index

_NAME = re.compile(r"[^\\\x00-\x1f]{1,100}")  # it is part of file names
ATTEMPTS = 6  # a draw and five redraws, as in CausalWorld
Regions = Mapping[str, SpaceName]
Ranges = Mapping[str, Mapping[int, tuple[float, float]]]  # pattern -> component -> low, high


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Draws some variables from a region, at the start of each episode or at other steps.

    `variables` maps patterns to regions, so "A everywhere but B for the mass" is
    `Protocol(name="heavy", everything="A", variables={"block_*/mass": "B"})`.

    >>> Protocol(name="heavy", variables={"block_*/mass": "B"}).at
    (0,)
    """

    name: str
    variables: Regions = field(default_factory=dict)
    everything: SpaceName | None = None
    """Draw everything else from this region too, sizes or positions by a coin."""
    without: tuple[str, ...] = ("gravity", "joint_positions")
    """What `everything` leaves out: CausalWorld's never drew these."""
    at: tuple[int, ...] = (0,)
    """Before which actions it acts; 0 is the start of the episode."""
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values an episode starts with, by its number: their product, the first variable fastest."""
    paired: bool = False
    """Whether the grid's lists run side by side, each begun again at its end: not a product."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the world that hold under this protocol, as for make."""
    ranges: Ranges = field(default_factory=dict)
    """Components drawn from a range of their own, outside the space: an original's quirk."""
    by_name: bool = False
    """Whether "all" leaves it out, so that it is run where it is asked for."""
    legacy: bool = False
    """Whether it follows a quirk of an original; "all" leaves such protocols out."""
    note: str = ""

    def __post_init__(self) -> None:
        plain = isinstance(self.name, str) and _NAME.fullmatch(self.name)
        if not plain or any(part in ("", ".", "..") for part in self.name.split("/")):
            raise InvalidValueError(
                explain(
                    f"a protocol is named {self.name!r}",
                    allowed="1 to 100 characters, no path: a variable's name, but no leading slash",
                )
            )
        for name in ("variables", "grid", "options", "ranges"):  # copies, and they pickle
            object.__setattr__(self, name, dict(getattr(self, name)))
        regions = {**self.variables, **({} if self.everything is None else {"*": self.everything})}
        for pattern, region in regions.items():
            if region not in SPACE_NAMES:
                raise InvalidValueError(
                    explain(
                        f"protocol {self.name}: region of {pattern} is {region!r}",
                        allowed=", ".join(SPACE_NAMES),
                    )
                )
        empty = [name for name, values in self.grid.items() if not len(values)]
        if empty or any(step < 0 for step in self.at):
            raise InvalidValueError(
                explain(
                    f"protocol {self.name}: at is {self.at}, grid without values: {empty}",
                    allowed="steps from 0, and at least one value",
                )
            )

    def check(self, driver: Driver) -> None:
        """Raises unless every pattern names variables with that region in this world."""
        variables = driver.world.variables
        matching(variables, self.grid)
        if self.everything is not None:
            self.actor.check(variables, self.everything)
        draws, length = self.everything is not None or self.variables, driver.world.max_steps
        cut = driver.world.options.max_steps is not None  # short episodes are somebody's wish
        if draws and (not self.at or (not cut and min(self.at) >= length)):
            raise InvalidValueError(
                explain(
                    f"protocol {self.name} never acts: at is {self.at}",
                    allowed=f"an action from 0 to {length - 1} in this world",
                )
            )
        for pattern in self.ranges:
            drawn = (
                variables if self.everything is not None else matching(variables, self.variables)
            )
            if not set(matching(variables, [pattern])) & set(drawn):
                raise InvalidValueError(
                    explain(
                        f"protocol {self.name}: nothing draws {pattern}, which has a range",
                        fix="Name it in variables too",
                    )
                )
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

    def start(self, episodes: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Returns the values of the grid that episodes of these numbers start with.

        >>> protocol = Protocol(name="looks", grid={"look": (7, 8), "body": (0, 1, 2)})
        >>> [rows.tolist() for rows in protocol.start(np.arange(4)).values()]
        [[7, 8, 7, 8], [0, 0, 1, 1]]
        >>> protocol = Protocol(name="looks", grid=protocol.grid, paired=True)
        >>> [rows.tolist() for rows in protocol.start(np.arange(4)).values()]
        [[7, 8, 7, 8], [0, 1, 2, 0]]
        """
        out, rest = {}, np.asarray(episodes)
        for name, values in self.grid.items():
            out[name] = np.array([values[i] for i in (rest % len(values)).tolist()])
            rest = rest if self.paired else rest // len(values)
        return out

    @property
    def actor(self) -> Actor:
        """What draws: everything, or the variables named."""
        if self.everything is None:
            return Regional(regions=self.variables)
        return Everything(space=self.everything, without=self.without, but=self.variables)

    def draw(self, driver: Driver, worlds: Index, attempt: int) -> dict[str, NDArray[Any]]:
        """Returns the values to set, one row per world; masked rows leave their worlds alone."""
        noise = Noise(driver.seeds[worlds], driver.episodes[worlds], driver.steps[worlds])
        tag = f"protocol/{self.name}/{attempt}"
        moment = Moment(driver, worlds, noise, "A_B", tag)
        drawn = choose(self.actor, moment)
        for pattern, parts in self.ranges.items():
            for name in set(matching(moment.variables, [pattern])) & drawn.keys():
                for part, (low, high) in parts.items():
                    uniform = to_numpy(noise.uniform(f"{tag}:{name}:{part}"))
                    drawn[name][:, part] = low + uniform * (high - low)
        return drawn

    def apply(self, driver: Driver, worlds: Index) -> dict[int, str]:
        """Intervenes in some worlds, drawing refused ones again; returns those still refused."""
        pending, refused = worlds, {}
        for attempt in range(ATTEMPTS):
            drawn = self.draw(driver, pending, attempt)
            refused = apply(driver, drawn, pending, check=not self.ranges)
            pending = np.array(sorted(refused), dtype=np.int64)
            if not refused:
                break
        return refused


@final
@dataclass(frozen=True, slots=True)
class Region:
    """A product of spaces, one per variable: what a policy was trained or is tested on.

    `rest` is the space of every variable not named; None leaves them at their defaults. "A
    everywhere but B for the mass" is `Region({"block_*/mass": "B"}, rest="A")`, and `|` changes a
    region: the right one wins.

    >>> train = Region({"block_*/mass": "A", "floor/friction": "A"})
    >>> (train | Region({"block_*/mass": "B"})).spaces["block_*/mass"]
    'B'
    >>> (Region(rest="A") | Region({"block_*/mass": "B"})).rest
    'A'
    """

    spaces: Regions = field(default_factory=dict)
    rest: SpaceName | None = None

    def __or__(self, other: Region) -> Region:
        rest = self.rest if other.rest is None else other.rest
        return Region({**self.spaces, **other.spaces}, rest)

    def protocol(self, name: str, at: Sequence[int] = (0,)) -> Protocol:
        """Returns the protocol that draws from this region: a test."""
        return Protocol(name=name, variables=self.spaces, everything=self.rest, at=tuple(at))

    def actor(self) -> Actor:
        """Returns the actor that draws from this region: a stage of a curriculum."""
        return self.protocol("region").actor
