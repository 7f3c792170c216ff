"""One person and one world: what was done, step by step, so that all of it can be taken back.

No browser here: the page calls these methods, and so may a script or a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import apply
from interverse.core.errors import (
    InterventionError,
    InterverseError,
    InvalidValueError,
    UnknownNameError,
    explain,
    unknown,
)
from interverse.core.rng import check_seed
from interverse.envs import Snapshot, make
from interverse.protocols.protocol import ATTEMPTS, Protocol
from interverse.protocols.select import select_protocols
from interverse.rollouts import AppliedDo, as_policy
from interverse.rollouts.policy import PolicyLike
from interverse.sim.shapes import Shape

_ONE = np.arange(1)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """An intervention that took effect.

    Attributes:
        step: before which action. values: name -> number or nested lists.
        changed: every variable that changed, those that follow included.
        source: "do", or the protocol that drew it.
        before: the moment it was done in.
    """

    step: int
    values: Mapping[str, Any]
    changed: tuple[str, ...]
    source: str
    before: ViewerMoment


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """An intervention that was refused before action `step`, and why."""

    step: int
    values: Mapping[str, Any]
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """What happened since the reset."""

    events: tuple[Event, ...] = ()
    actions: tuple[Any, ...] = ()
    earned: float = 0.0
    ended: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ViewerMoment:
    """A place to come back to: the world, and what had happened until then."""

    snapshot: Snapshot
    history: History


@final
class Session:
    """A world that is changed by hand.

    Args:
        id: a registered id.
        seed: of the first reset.
        policy: what `step` acts with; see `interverse.rollouts.as_policy`.
        **options: the world's.

    >>> session = Session("tutorial/slider-v1")
    >>> sorted(session.do({"gravity": -5.0}).changed)
    ['gravity']
    >>> session.step()
    >>> session.undo()
    'took back gravity and 1 step'
    >>> float(session.env.values["gravity"])
    -9.81
    """

    def __init__(
        self, id: str, *, seed: int = 0, policy: PolicyLike = "random", **options: Any
    ) -> None:
        check_seed(seed)
        self.id, self.options = id, options
        self.env = make(id, render_mode="rgb_array", **options)
        self.refused: list[Refused] = []  # newest last, of the whole session
        self.saved: ViewerMoment | None = None
        self._draws = 0
        try:
            self.use(policy)
            self.reset(seed)
        except BaseException:
            self.env.close()
            raise

    # ------------------------------------------------------------------ episodes

    def reset(self, seed: int) -> None:
        """Starts an episode and forgets the last one's history."""
        self._observation, info = self.env.reset(seed=check_seed(seed))
        self.history = History(info=info)
        self._draws = 0
        self._begin_policy()

    @property
    def seed(self) -> int:
        """The seed of this episode."""
        return int(self.env.driver.seeds[0])

    @property
    def steps(self) -> int:
        """How many actions were taken."""
        return len(self.history.actions)

    def use(self, policy: PolicyLike) -> None:
        """Acts with another policy from now on: a name, a path, or what `as_policy` takes."""
        self._policy = as_policy(policy, self.env.world)
        self.policy = str(policy)
        self._begin_policy()

    def _begin_policy(self) -> None:
        self._policy.reset(np.ones(1, dtype=bool), self.env.driver.seeds.copy())

    def step(self) -> None:
        """Takes one action of the policy."""
        if self.history.ended:
            raise InvalidValueError(
                explain("the episode has ended", fix="Reset, undo or restore a snapshot")
            )
        action = self._act()
        seen, reward, terminated, truncated, info = self.env.step(action)
        self._observation = seen
        self.history = replace(
            self.history,
            actions=(*self.history.actions, np.array(action)),
            earned=self.history.earned + reward,
            ended=terminated or truncated,
            info=info,
        )

    def _act(self) -> NDArray[Any]:
        try:
            return np.asarray(self._policy(_lead(self._observation)))[0]
        except (RuntimeError, TypeError, ValueError) as error:  # a policy of another world, mostly
            first = str(error).strip().splitlines()[:1]
            raise InvalidValueError(
                explain(
                    f"the policy {self.policy} fails on observations of {self.id}: {first}",
                    fix="Use one that was trained in this world with these options",
                )
            ) from error

    # ------------------------------------------------------------- interventions

    def do(self, values: Mapping[str, Any]) -> Event:
        """Intervenes now, or raises and leaves everything as it was.

        A second `do` of the same variables before the next action replaces the first, as if that
        had not been: a slider that is dragged leaves one event, the last.
        """
        present = self.moment()
        base = self._base(values, present)
        if base is not present:
            self._go(base)
        try:
            outcome = self.env.do(values)
        except InterverseError as error:
            if base is not present:
                self._go(present)
            self.refused.append(Refused(self.steps, _plain(values), str(error)))
            raise
        return self._happened(base, values, outcome.changed, "do", outcome.observation)

    def _base(self, values: Mapping[str, Any], present: ViewerMoment) -> ViewerMoment:
        """Returns the moment that a `do` starts from."""
        last = self.history.events[-1] if self.history.events else None
        dragged = (
            last is not None
            and last.source == "do"
            and last.step == self.steps
            and last.values.keys() == values.keys()
        )
        return last.before if last is not None and dragged else present

    def _happened(
        self,
        before: ViewerMoment,
        values: Mapping[str, Any],
        changed: frozenset[str],
        source: str,
        observation: Any,
    ) -> Event:
        names = tuple(sorted(changed))
        step = len(before.history.actions)
        event = Event(step=step, values=_plain(values), changed=names, source=source, before=before)
        kept = (event,) if changed else ()
        self.history = replace(before.history, events=(*before.history.events, *kept))
        self._observation = observation
        return event

    @property
    def protocols(self) -> dict[str, Protocol]:
        """The protocols of this world by name."""
        return {p.name: p for p in select_protocols(self.id, ("all", "legacy"))}

    def draw(self, name: str) -> Event:
        """Intervenes as a protocol would in this episode; each further call draws anew."""
        if name not in self.protocols:
            raise UnknownNameError(unknown("protocol", name, self.protocols))
        protocol = self.protocols[name]
        if protocol.options:
            raise InvalidValueError(
                explain(
                    f"{name} is a world with other options: {dict(protocol.options)}",
                    fix="Start `interverse view` with these as --option",
                )
            )
        driver, before = self.env.driver, self.moment()
        protocol.check(driver)
        old, reason = dict(self.env.values), "nothing was drawn"
        start = protocol.start(driver.episodes + self._draws)
        for attempt in range(self._draws * ATTEMPTS, (self._draws + 1) * ATTEMPTS):
            drawn = start | protocol.draw(driver, _ONE, attempt)
            reasons = apply(driver, drawn, _ONE, check=not protocol.ranges)
            reason = reasons.get(0, "")
            if not reason:
                break
        self._draws += 1
        if reason:
            self.refused.append(Refused(self.steps, {}, f"{name}: {reason}"))
            raise InterventionError(reason)
        values = _asked(drawn)
        changed = frozenset(n for n, v in self.env.values.items() if not np.array_equal(v, old[n]))
        return self._happened(before, values, changed, name, self.env.observe())

    # -------------------------------------------------------------- back and forth

    def moment(self) -> ViewerMoment:
        """Returns this moment, to come back to."""
        return ViewerMoment(self.env.snapshot(), self.history)

    def save(self) -> None:
        """Keeps this moment for `restore`."""
        self.saved = self.moment()

    def restore(self) -> None:
        """Goes back to the kept moment, also after a reset."""
        if self.saved is None:
            raise InvalidValueError(explain("no moment was kept", fix="Take a snapshot first"))
        self._go(self.saved)

    def undo(self) -> str:
        """Goes back to before the last intervention; returns what was taken back."""
        if not self.history.events:
            raise InvalidValueError(explain("there is nothing to undo: no intervention was made"))
        last, steps = self.history.events[-1], self.steps
        self._go(last.before)
        lost = steps - last.step
        also = f" and {lost} step{'s' if lost > 1 else ''}" if lost else ""
        return f"took back {', '.join(last.values)}{also}"

    def _go(self, moment: ViewerMoment) -> None:
        self._observation = self.env.restore(moment.snapshot)
        self.history = moment.history

    # -------------------------------------------------------------------- looking

    def picture(self) -> NDArray[np.uint8]:
        """Returns a picture of the world now, (rows, columns, 3)."""
        return np.array(self.env.render(), dtype=np.uint8)

    def shapes(self) -> tuple[Shape, ...]:
        """Returns the world's solids now; empty where pictures are all there is."""
        return self.env.world.shapes(0)

    def record(self) -> tuple[AppliedDo, ...]:
        """Returns the interventions of this episode, as an `Episode` holds them."""
        return tuple(AppliedDo(event.step, event.values) for event in self.history.events)

    def close(self) -> None:
        """Releases the world."""
        self.env.close()


def _lead(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {name: _lead(value) for name, value in observation.items()}
    return np.asarray(observation)[None]


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in values.items()}


def _asked(drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a draw of one world, masked ones left out."""
    return dict(_rows(drawn))


def _rows(drawn: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, rows in drawn.items():
        if not np.any(np.ma.getmaskarray(rows)):
            yield name, np.asarray(rows)[0]
