"""Curricula: stages that say which actor acts in which episodes and at which step; their words."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Annotated, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors import ACTORS
from interverse.actors.actor import Actor, Moment, apply, choose
from interverse.actors.uniform import Everything, Goals
from interverse.core.errors import (
    FileFormatError,
    InvalidValueError,
    RefusedStartsWarning,
    UnknownNameError,
    check_name,
    check_whole,
    unknown,
)
from interverse.core.files.json_text import parse_json
from interverse.core.rng import Noise
from interverse.core.type_checks import check_types, validated, whole
from interverse.envs.driver import Driver
from interverse.scm.variable import SpaceName
from interverse.worlds.world import Index

FOREVER = 10**9
Start = Literal["per_episode", "cumulative"]
_SILENT = 16  # starts, from the first on, whose refusal is no accident
_ATTEMPTS = 6  # one draw and five further ones on refusal, as in CausalWorld


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class Stage:
    """When an actor acts: episodes first..last, every `period`-th, before action `step`."""

    actor: Actor
    first: Annotated[int, whole(FOREVER, least=0)] = 0
    last: int = FOREVER
    period: Annotated[int, whole(FOREVER)] = 1
    step: Annotated[int, whole(FOREVER, least=0)] = 0

    def __post_init__(self) -> None:
        if not isinstance(self.actor, Actor):
            raise InvalidValueError(
                f"actor is {self.actor!r}", allowed="an Actor, such as Uniform()"
            )
        if is_dataclass(self.actor) and type(self.actor).__module__.startswith("interverse."):
            named = {item.name: getattr(self.actor, item.name) for item in fields(self.actor)}
            check_types(type(self.actor), named)
        check_whole(self.last, "last", FOREVER, least=self.first)

    def active(self, episodes: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns in which worlds it acts now."""
        inside = (episodes >= self.first) & (episodes <= self.last)
        return inside & ((episodes - self.first) % self.period == 0) & (steps == self.step)


StageSet = tuple[int, ...]  # numbers of the stages that act together


@final
@dataclass(slots=True)
class Response:
    """How some worlds took the joint intervention of some stages at one moment."""

    stages: StageSet
    refused: dict[int, str] = field(default_factory=dict)  # why, by world
    taken: list[int] = field(default_factory=list)
    idle: int = 0  # of those taken, how many asked for what held already without meaning to
    changed: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class Curriculum:
    """Stages in order; later ones win where two set the same variable.

    Without stages episodes stay as they are declared: CausalWorld's curriculum 0.
    `start` says what an episode begins with: "per_episode" draws from the defaults, "cumulative"
    keeps what earlier episodes set, as CausalWorld's wrapper does.
    """

    stages: tuple[Stage, ...] = ()
    start: Start = "per_episode"
    space: SpaceName | None = None
    """The region to draw from where an actor names none. None is the training space A, or B in an
    environment made with `space="B"`."""

    def __post_init__(self) -> None:
        if not all(isinstance(stage, Stage) for stage in self.stages):
            raise InvalidValueError(
                f"stages is {self.stages!r}", allowed="a tuple of Stage(actor=...)"
            )

    def region(self, driver: Driver) -> SpaceName:
        """Returns the region that actors draw from unless they name one."""
        return self.space or ("B" if driver.world.options.space == "B" else "A")

    def check(self, driver: Driver) -> None:
        """Raises if an actor has nothing to choose in this world, or what it refuses every time."""
        region, active = self.region(driver), driver.world.options.space
        for stage in self.stages:
            if stage.step >= driver.world.max_steps:
                raise InvalidValueError(
                    f"a stage acts before action {stage.step} of an episode",
                    allowed=f"0 to {driver.world.max_steps - 1} in this world",
                )
            stage.actor.check(driver.world.variables, region)
            if names := stage.actor.outside(driver.world.variables, active):
                raise InvalidValueError(
                    f"the range of {', '.join(names)} lies outside space {active} of the world, "
                    "which refuses every such draw",
                    fix="Make the world with space='A_B' (--space A_B), or give another range",
                )
            for space in stage.actor.spaces(region):
                if active not in (space, "A_B"):
                    raise InvalidValueError(
                        f"{type(stage.actor).__name__} draws from space {space} in a world of "
                        f"space {active}, which refuses every such draw",
                        fix=f"Make the world with space={space!r} or 'A_B' (--space {space}), "
                        f"or let the actor draw from {active}",
                    )

    def intervene(self, driver: Driver, worlds: Index) -> Mapping[int, str]:
        """Applies the active stages to some worlds; returns the worlds that refused, with why."""
        return {w: why for r in self.respond(driver, worlds) for w, why in r.refused.items()}

    def respond(self, driver: Driver, worlds: Index) -> list[Response]:
        """Applies the active stages to some worlds; returns how these took it, by stages.

        A refused world is drawn again, five times at most, with other noise each time.
        """
        out: dict[StageSet, Response] = {}
        pending = worlds
        for attempt in range(_ATTEMPTS):
            for response in out.values():
                response.refused = {}
            for index, values, stages in self._proposals(driver, pending, attempt):
                response = out.setdefault(stages, Response(stages))
                same = np.ones(len(index), dtype=bool)  # what is asked for is what holds
                for name, rows in values.items():
                    other = np.ma.filled(rows != driver.host_values[name][index], fill_value=False)
                    same &= ~other.reshape(len(index), -1).any(axis=1)
                response.refused = apply(driver, values, index)
                taken = np.array([world not in response.refused for world in index.tolist()])
                response.taken += index[taken].tolist()
                if not all(self.stages[number].actor.may_idle for number in stages):
                    response.idle += int((taken & same).sum())
                response.changed |= bool((taken & ~same).any())
            refused = [world for response in out.values() for world in response.refused]
            pending = np.array(sorted(refused), dtype=np.int64)
            if not len(pending):
                break
        return list(out.values())

    def _proposals(
        self, driver: Driver, worlds: Index, attempt: int
    ) -> list[tuple[Index, dict[str, NDArray[Any]], StageSet]]:
        """Returns the joint interventions, worlds with the same active stages together."""
        episodes, steps = driver.episodes[worlds], driver.steps[worlds]
        active = np.array([stage.active(episodes, steps) for stage in self.stages], dtype=bool)
        active = active.reshape(len(self.stages), len(worlds))
        out = []
        for key in np.unique(active, axis=1).T:
            index = worlds[np.all(active == key[:, None], axis=0)]
            values: dict[str, NDArray[Any]] = {}
            numbers = tuple(np.flatnonzero(key).tolist())
            for number in numbers:
                now = {name: driver.host_values[name][index] for name in values}
                given = {n: np.where(np.ma.getmaskarray(v), now[n], v) for n, v in values.items()}
                noise = Noise(driver.seeds[index], driver.episodes[index], driver.steps[index])
                tag = f"curriculum/{number}/{attempt}"
                moment = Moment(driver, index, noise, self.region(driver), tag, given, attempt)
                values |= choose(self.stages[number].actor, moment)
            if values:
                out.append((index, values, numbers))
        return out

    @property
    def listens(self) -> bool:
        """Whether an actor waits for how episodes end."""
        actors = [type(stage.actor) for stage in self.stages]
        return any(actor.on_episode_end is not Actor.on_episode_end for actor in actors)

    def on_episode_end(self, success: NDArray[np.float64], worlds: Index) -> None:
        """Informs every actor how episodes ended."""
        for stage in self.stages:
            stage.actor.on_episode_end(success, worlds)


def check_refusals(refused: int, reason: str, idle: int = 0) -> None:
    """Raises if so many starts, and all there were, were refused or changed nothing."""
    if refused + idle < _SILENT:
        return
    if not idle:
        raise InvalidValueError(
            f"each of the first {refused} starts under the curriculum was refused: {reason}",
            fix="Let the actor draw fewer variables, or choose another actor or curriculum",
        )
    raise InvalidValueError(
        f"none of the first {refused + idle} starts under the curriculum changed anything: "
        f"{idle} asked for what held already, {refused} were refused",
        fix="Choose another actor, or set may_idle = True in one that begins so on purpose",
    )


@final
@dataclass(slots=True)
class StageRecord:
    """What became of all interventions of some stages, to notice those that act on nothing."""

    tried: int = 0
    refused: int = 0
    idle: int = 0
    changed: bool = False
    warned: bool = False

    def add(self, response: Response) -> None:
        """Raises once the first interventions all changed nothing; warns if most are refused."""
        self.tried += len(response.taken) + len(response.refused)
        self.refused += len(response.refused)
        self.idle += response.idle
        self.changed |= response.changed
        reason = next(iter(response.refused.values()), "")
        if not self.changed and (response.refused or response.idle):
            check_refusals(self.refused, reason, self.idle)
        most = self.tried >= _SILENT and 2 * self.refused > self.tried
        if most and response.refused and not self.warned:
            self.warned = True
            share = f"{self.refused} of {self.tried} interventions of the curriculum were refused"
            fix = "these episodes start as without it; let the actor draw fewer variables"
            warnings.warn(f"{share} ({reason}); {fix}", RefusedStartsWarning, stacklevel=2)


def paper_curriculum(number: int) -> Curriculum:
    """Returns CausalWorld's curriculum 0 (none), 1 (goals) or 2 (everything), all in space A."""
    if number == 0:
        return Curriculum()
    if number in (1, 2):
        actor = Goals() if number == 1 else Everything()
        return Curriculum(stages=(Stage(actor=actor),), start="cumulative", space="A")
    raise UnknownNameError(unknown("curriculum", str(number), ("0", "1", "2")))


_STAGE = ("first", "last", "period", "step")
_IN_CODE = {"adversarial": "a critic", "agent": "choices (AgentDriven.choose)"}


def curriculum_from_words(
    words: Iterable[str], start: Start = "per_episode", space: SpaceName | None = None
) -> Curriculum:
    """Returns the curriculum of some words, one stage each.

    >>> curriculum_from_words(["goals", "visual:space=A@first=10"]).stages[1].first
    10
    """
    stages = []
    for word in words:
        actor, _, when = word.partition("@")
        moments = {name: _value(text) for name, text in _settings(when, _STAGE).items()}
        for name, value in moments.items():
            if not isinstance(value, int) or isinstance(value, bool):
                told = f"{name} of {word!r} is {value!r}"
                raise InvalidValueError(told, allowed="a whole number")
        stages.append(Stage(actor=actor_from_word(actor), **moments))
    return Curriculum(stages=tuple(stages), start=start, space=space)


def training_curriculum(number: int, words: Sequence[str], space: SpaceName) -> Curriculum:
    """Returns what a training draws, from one space: CausalWorld's 0, 1 or 2, or actors' stages."""
    if number and words:
        raise InvalidValueError("curriculum and actor are both given", fix="Leave one of them out")
    if words:
        return curriculum_from_words(words, space=space)
    return replace(paper_curriculum(number), space=space)


def actor_from_word(word: str) -> Actor:
    """Returns the actor of a word such as `uniform:patterns=box/mass+gravity,space=A`."""
    name, _, settings = word.partition(":")
    if name in _IN_CODE:
        raise InvalidValueError(
            f"actor {word!r} needs {_IN_CODE[name]}, which no word can give",
            fix="Build the Curriculum in Python",
        )
    kind = ACTORS.load(name)
    types = {item.name: str(item.type) for item in fields(kind) if item.name[0] != "_"}
    given = {
        key: tuple(text.split("+")) if types[key].startswith("tuple[str") else _value(text)
        for key, text in _settings(settings, types).items()
    }
    try:
        return kind(**given)
    except TypeError as error:
        allowed = f"settings {', '.join(types)}"
        raise InvalidValueError(f"actor {word!r}: {error}", allowed=allowed) from None


def _settings(text: str, known: Collection[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidValueError(f"setting {pair!r}", allowed="NAME=VALUE")
        check_name("setting", name, known)
        out[name] = value
    return out


def _value(text: str) -> Any:
    """Returns a JSON value, or the text itself where it is none."""
    try:
        return parse_json(text)
    except FileFormatError:
        return text
