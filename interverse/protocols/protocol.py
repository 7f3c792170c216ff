"""A protocol: which variables a test draws, from which region, when. A frozen line of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor, Moment, apply, choose, matching
from interverse.actors.uniform import Everything, Regional
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError, unknown
from interverse.core.files.json_text import plain
from interverse.core.rng import Noise
from interverse.core.type_checks import check_types
from interverse.envs.driver import Driver
from interverse.envs.values import to_numpy
from interverse.protocols import PROTOCOLS
from interverse.scm.variable import SPACE_NAMES, SpaceName
from interverse.worlds import WORLDS
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
    """Draw everything else from this region too, but what `grid` lists; sizes or positions by a
    coin."""
    without: tuple[str, ...] = ()
    """Patterns of what `everything` leaves out beside variables that are not `drawn`."""
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
        written = isinstance(self.name, str) and _NAME.fullmatch(self.name)
        if not written or any(part in ("", ".", "..") for part in self.name.split("/")):
            raise InvalidValueError(
                f"a protocol is named {self.name!r}",
                allowed="1 to 100 characters, no path: a variable's name, but no leading slash",
            )
        check_types(Protocol, {item.name: getattr(self, item.name) for item in fields(self)})
        for name, value in {"without": self.without, **self.grid}.items():
            if isinstance(value, str):  # its letters would be taken for the items
                self._refuse(f": {name} is {value!r}", allowed="a list")
        for name in ("variables", "options", "ranges"):  # copies, and they pickle
            object.__setattr__(self, name, dict(getattr(self, name)))
        for name in ("at", "without"):
            object.__setattr__(self, name, tuple(plain(list(getattr(self, name)))))
        grid = {
            name: values if isinstance(values, range) else tuple(plain(list(values)))
            for name, values in self.grid.items()
        }
        object.__setattr__(self, "grid", grid)
        regions = {**self.variables, **({} if self.everything is None else {"*": self.everything})}
        for pattern, region in regions.items():
            if region not in SPACE_NAMES:
                told = f": region of {pattern} is {region!r}"
                self._refuse(told, allowed=", ".join(SPACE_NAMES))
        empty = [name for name, values in self.grid.items() if not len(values)]
        if empty or any(step < 0 for step in self.at):
            told = f": at is {self.at}, grid without values: {empty}"
            self._refuse(told, allowed="steps from 0, and at least one value")

    def _refuse(self, told: str, **words: str) -> NoReturn:
        raise InvalidValueError(f"protocol {self.name}{told}", **words)

    def check(self, driver: Driver) -> None:
        """Raises unless every pattern names variables with that region in this world."""
        variables, graph = driver.world.variables, driver.world.graph
        listed = matching(variables, self.grid)
        for name, values in self.grid.items():
            for value in values if name in variables and not isinstance(values, range) else ():
                try:
                    same = np.shape(value) == variables[name].shape
                except ValueError:  # a list of unequal lists
                    same = False
                if not same:
                    told = f": the grid lists {value!r} for {name}"
                    self._refuse(told, allowed=f"values of shape {variables[name].shape}")
        for name in matching(variables, self.variables) if 0 in self.at else ():
            if same_things := sorted({name, *graph.twins(name)} & {*listed}):
                self._refuse(
                    f": the grid lists {same_things[0]} and {name} is drawn over it before the"
                    " first action",
                    fix="Name it in grid or in variables, or draw it later (at)",
                )
        if self.everything is not None:
            self.actor(driver).check(variables, self.everything)
        length = driver.world.max_steps
        cut = driver.world.options.max_steps is not None  # short episodes are somebody's wish
        if self.draws and (not self.at or (not cut and min(self.at) >= length)):
            self._refuse(
                f" never acts: at is {self.at}",
                allowed=f"an action from 0 to {length - 1} in this world",
            )
        drawn = variables if self.everything is not None else matching(variables, self.variables)
        for pattern, parts in self.ranges.items():
            ranged = set(matching(variables, [pattern])) & set(drawn)
            for name in sorted(ranged):
                shape = variables[name].shape
                count = shape[0] if len(shape) == 1 else 0
                allowed = f"low and high of components 0 to {count - 1}"
                for part, ends in parts.items():
                    known = isinstance(part, Integral) and 0 <= part < count
                    if not known or len(ends) != 2 or not ends[0] <= ends[1]:
                        told = f": the range of {name} is {{{part!r}: {ends!r}}}"
                        self._refuse(told, allowed=allowed if count else "no ranges of it")
            if not ranged:
                told = f": nothing draws {pattern}, which has a range"
                self._refuse(told, fix="Name it in variables too")
        for pattern, region in self.variables.items():
            for name in matching(variables, [pattern]):
                declared = variables[name]
                if declared.space_a is None or (region == "B" and declared.space_b is None):
                    fix = "See `interverse describe` for the published spaces"
                    self._refuse(f": {name} has no space {region}", fix=fix)

    @property
    def draws(self) -> bool:
        """Whether it draws anything, beside what its grid lists."""
        return self.everything is not None or bool(self.variables)

    def late_note(self, length: int) -> str:
        """Returns the line that says when it does not act in episodes so short; empty if always."""
        late = ", ".join(str(step) for step in self.at if step >= length and self.draws)
        told = f"Protocol {self.name} does not act before action {late}:"
        return f"{told} episodes have {length} actions." if late else ""

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

    def actor(self, driver: Driver | None = None) -> Actor:
        """Returns what draws: the variables named, or everything but what the grid lists."""
        if self.everything is None:
            return Regional(regions=self.variables)
        listed = set() if driver is None else driver.world.graph.with_twins(self.grid)
        without = (*self.without, *sorted(listed))
        return Everything(space=self.everything, without=without, but=self.variables)

    def draw(self, driver: Driver, worlds: Index, attempt: int) -> dict[str, NDArray[Any]]:
        """Returns the values to set, one row per world; masked rows leave their worlds alone."""
        noise = Noise(driver.seeds[worlds], driver.episodes[worlds], driver.steps[worlds])
        tag = f"protocol/{self.name}/{attempt}"
        moment = Moment(driver, worlds, noise, "A_B", tag)
        drawn = choose(self.actor(driver), moment)
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


# written where they are set
_SPECIAL = ("everything", "grid", "paired", "options", "ranges", "by_name", "legacy")


def describe(protocol: Protocol) -> dict[str, Any]:
    """Returns a protocol as JSON; `protocol_from` reads it."""
    usual = {"variables": dict(protocol.variables), "at": list(protocol.at)}
    out: dict[str, Any] = {**usual, "note": protocol.note}
    out |= {n: plain(getattr(protocol, n)) for n in _SPECIAL if getattr(protocol, n)}
    if protocol.everything is not None:
        out["without"] = list(protocol.without)
    if len(protocol.grid) > 1:  # JSON sorts names, and the order says which one runs fastest
        out["grid_order"] = list(protocol.grid)
    return out


def protocol_from(name: str, described: Mapping[str, Any]) -> Protocol:
    """Returns the protocol that `describe` described.

    >>> gusts = Protocol(name="gusts", variables={"push": "B"}, at=(0, 25))
    >>> protocol_from("gusts", describe(gusts)) == gusts
    True
    """
    given = dict(described)
    order = given.pop("grid_order", list(given.get("grid", {})))
    if len(order) > 1 and "grid_order" not in described:
        raise FileFormatError(
            f"the results do not hold the order of the grid of {name}", fix="Evaluate again"
        )
    if order:
        given["grid"] = {variable: given["grid"][variable] for variable in order}
    for key in ("at", "without"):
        if key in given:
            given[key] = tuple(given[key])
    ranges = given.get("ranges", {}).items()
    given["ranges"] = {n: {int(k): tuple(ends) for k, ends in p.items()} for n, p in ranges}
    return Protocol(name=name, **given)


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
        return self.protocol("region").actor()


_RANGE = re.compile(r"^([A-Za-z_]*)(\d{1,18})-\1(\d{1,18})$")
Selection = str | Protocol | Sequence[str | Protocol]


def select_protocols(task: str, given: Selection = "all") -> tuple[Protocol, ...]:
    """Returns the protocols meant for a task.

    Args:
        task: a world's id.
        given: "all", "legacy" (those that follow an original's quirks; "all" leaves them out, and
            those that are asked for by name alone), a name, a range such as "P0-P11" (those that
            exist for the task), names separated by commas, protocols of your own, or a list.

    >>> [p.name for p in select_protocols("trifinger/stacking2-v1", "P2-P5")]
    ['P2', 'P4', 'P5']
    """
    WORLDS[task]  # an unknown world is told as such, not as a protocol it lacks
    table = {p.name: p for p in PROTOCOLS.load(task)} if task in PROTOCOLS else {}
    if not table:
        table = {"P0": Protocol(name="P0", note="nothing changes")}
    items = [given] if isinstance(given, str | Protocol) else list(given)
    out: dict[str, Protocol] = {}
    for item in items:
        found = [item] if isinstance(item, Protocol) else _by_name(item, table)
        for protocol in found:
            if out.setdefault(protocol.name, protocol) is not protocol:
                raise InvalidValueError(f"two protocols are named {protocol.name!r}")
    if not out:
        told = f"no protocol of {task} is meant by {given!r}"
        raise InvalidValueError(told, allowed=", ".join(table))
    return tuple(out.values())


def check_unset(chosen: tuple[Protocol, ...], options: Mapping[str, Any]) -> None:
    """Raises for an option that a protocol sets itself: it would be accepted and do nothing."""
    for protocol in chosen:
        for name in sorted({*protocol.grid, *protocol.options} & options.keys()):
            raise InvalidValueError(
                f"{name}={options[name]!r} is asked for, and protocol {protocol.name} sets"
                f" {name} itself",
                fix=f"Leave {name} out, choose other protocols, or pass one of your own:"
                " dataclasses.replace changes grid or options of one that exists",
            )


def _by_name(text: str, table: dict[str, Protocol]) -> list[Protocol]:
    if text in ("all", "legacy"):
        listed = [p for p in table.values() if not p.by_name]
        return [p for p in listed if p.legacy == (text == "legacy")]
    out = []
    for part in (p.strip() for p in text.split(",")):
        if span := _RANGE.match(part):  # the table is short, a range may not be
            found = [(n.removeprefix(span[1]), n) for n in table if n.startswith(span[1])]
            known = sorted((int(number), name) for number, name in found if number.isdecimal())
            out += [table[name] for number, name in known if int(span[2]) <= number <= int(span[3])]
        elif part in table:
            out.append(table[part])
        else:
            raise UnknownNameError(unknown("protocol", part, table))
    return out
