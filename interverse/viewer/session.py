"""One person and one world: what was done, step by step, so that all of it can be taken back.

No browser here: the page calls these methods, and so may a script or a test.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import apply
from interverse.core.errors import (
    InterventionError,
    InterverseError,
    InvalidValueError,
    check_name,
    explain,
)
from interverse.core.rng import check_seed
from interverse.envs import Snapshot, WorldEnv, make
from interverse.envs.build import options_of
from interverse.envs.driver import Transition
from interverse.envs.single import first
from interverse.envs.values import to_numpy
from interverse.protocols.protocol import ATTEMPTS, Protocol, select_protocols
from interverse.rollouts import as_policy
from interverse.rollouts.policy import PolicyLike, check_rows
from interverse.rollouts.policy_world import check_world
from interverse.scm import Outcome
from interverse.sim.shapes import Shape
from interverse.viewer.history import EpisodeStart, Event, History, Refused, ViewerMoment, plain

_ONE = np.arange(1)


@final
class Session:
    """A world that is changed by hand.

    Args:
        id: a registered id, or a script's own environment, which the session then shares with it.
        seed: of the first reset; an environment that was reset already goes on where it is.
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
        self,
        id: str | WorldEnv,
        *,
        seed: int = 0,
        policy: PolicyLike = "random",
        **options: Any,
    ) -> None:
        check_seed(seed)
        self._shared = isinstance(id, WorldEnv)
        self.env = id if isinstance(id, WorldEnv) else make(id, render_mode="rgb_array", **options)
        self.id = self.env.driver.id
        self.options = options_of(self.id, self.env.world) if self._shared else options
        self.refused: list[Refused] = []  # newest last, of the whole session
        self.saved: ViewerMoment | None = None
        self.busy = False  # whether what happens to the world is this session's own doing
        self.quick = False  # whether pictures that were drawn for the policy will do
        self._mirror: WorldEnv | None = None
        self.env.driver.listeners.append(self)
        try:
            self._take(policy)
            if self._shared and self.env.driver.running.all():
                self.begin(self.env.snapshot())
            else:
                self.reset(seed)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ episodes

    def reset(self, seed: int) -> None:
        """Starts an episode and forgets the last one's history."""
        with self._own():
            self.env.reset(seed=check_seed(seed))
        self.begin(None)

    def begin(self, snapshot: Snapshot | None) -> None:
        """Starts a history now: after a reset, or at a moment that is none."""
        present, values = self.env.driver.transition(), dict(self.env.values)
        self._observation = first(present.observation)
        start = EpisodeStart.of(self.env, snapshot)
        self.history = History(start=start, trace=(values,), info=_first_info(present))
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
        self._take(policy)
        self._begin_policy()

    def _take(self, policy: PolicyLike) -> None:
        check_world(policy, self.env.world)
        self._policy = as_policy(policy, self.env.world)
        self.policy = str(policy)

    def _begin_policy(self) -> None:
        self._policy.reset(np.ones(1, dtype=bool), self.env.driver.seeds.copy())

    def step(self, action: NDArray[Any] | None = None) -> None:
        """Takes an action, by default the policy's."""
        if self.history.ended:
            raise InvalidValueError(
                "the episode has ended", fix="Reset, undo or restore a snapshot"
            )
        if action is None:
            try:
                actions = to_numpy(self._policy(_lead(self._observation)))
                check_rows(actions, 1)
                action = np.asarray(actions[0])
            except (RuntimeError, TypeError, ValueError) as error:  # of another world, mostly
                reason = str(error).strip().splitlines()[:1]
                raise InvalidValueError(
                    f"the policy {self.policy} fails on observations of {self.id}: {reason}",
                    fix="Use one that was trained in this world with these options",
                ) from error
        with self._own():
            self.env.step(action)

    def on_step(self, actions: Any, moment: Transition) -> None:
        """Records an action and what it gave, whoever took it."""
        history = self.history
        self._observation = first(moment.observation)
        self.history = replace(
            history,
            actions=(*history.actions, np.array(actions[0])),
            trace=(*history.trace, dict(self.env.values)),
            earned=history.earned + float(moment.reward[0]),
            ended=bool(moment.ended[0]),
            info=_first_info(moment),
        )

    # ------------------------------------------------------------- interventions

    def do(self, values: Mapping[str, Any], *, check: bool = True) -> Event:
        """Intervenes now, or raises and leaves everything as it was.

        A second `do` of the same variables before the next action replaces the first, as if that
        had not been: a slider that is dragged leaves one event, the last.
        """
        present = self.moment()
        last = self.history.events[-1] if self.history.events else None
        base = present  # the moment that it starts from
        if last is not None and last.source == "do" and last.before is not None:
            dragged = last.step == self.steps and last.values.keys() == values.keys()
            base = last.before if dragged else present
        if base is not present:  # nobody looks at it, so it is not drawn
            self.env.driver.restore(base.snapshot, _ONE)
            self.history = base.history
        try:
            with self._own():
                outcome = self.env.do(values, check=check)
        except InterverseError as error:
            if base is not present:
                self._go(present)
            self.refused.append(Refused(self.steps, plain(values), str(error)))
            raise
        return self._happened(base, values, outcome.changed, "do")

    def _happened(
        self,
        before: ViewerMoment | None,
        values: Mapping[str, Any],
        changed: frozenset[str],
        source: str,
    ) -> Event:
        """Records an intervention in the history it was made in."""
        history = self.history if before is None else before.history
        names, step = tuple(sorted(changed)), len(history.actions)
        event = Event(step=step, values=plain(values), changed=names, source=source, before=before)
        kept = (event,) if changed else ()
        trace = (*history.trace[:-1], dict(self.env.values))
        self.history = replace(history, events=(*history.events, *kept), trace=trace)
        self._observation = self.env.observe()
        return event

    def on_intervention(self, outcome: Outcome) -> None:
        """Records what the script, or a curriculum in its environment, has done."""
        if not self.busy:
            entry = self.env.driver.log(0)[-1]
            values = {name: rows[0] for name, rows in entry.values.items()}
            if 0 in outcome.reasons:
                self.refused.append(Refused(self.steps, plain(values), outcome.reasons[0]))
            else:
                self._happened(None, values, outcome.changed, "script")

    @property
    def protocols(self) -> dict[str, Protocol]:
        """The protocols of this world by name."""
        return {p.name: p for p in select_protocols(self.id, ("all", "legacy"))}

    def draw(self, name: str) -> Event:
        """Intervenes as a protocol would in this episode; each further call draws anew."""
        check_name("protocol", name, self.protocols)
        protocol = self.protocols[name]
        here = self.env.world.options
        there, asked = replace(here, **protocol.options), protocol.options
        if other := {n: v for n, v in asked.items() if getattr(here, n) != getattr(there, n)}:
            raise InvalidValueError(
                f"{name} is a world with other options: {other}",
                fix="Start `interverse view` with these as --option",
            )
        driver, before = self.env.driver, self.moment()
        protocol.check(driver)
        old, reason = dict(self.env.values), "nothing was drawn"
        start = protocol.start(driver.episodes + self._draws)
        with self._own():
            for attempt in range(self._draws * ATTEMPTS, (self._draws + 1) * ATTEMPTS):
                drawn = start | protocol.draw(driver, _ONE, attempt)
                reason = apply(driver, drawn, _ONE, check=not protocol.ranges).get(0, "")
                if not reason:
                    break
        self._draws += 1
        if reason:
            self.refused.append(Refused(self.steps, {}, f"{name}: {reason}"))
            raise InterventionError(reason)
        changed = frozenset(n for n, v in self.env.values.items() if not np.array_equal(v, old[n]))
        kept = {n: rows for n, rows in drawn.items() if not np.any(np.ma.getmaskarray(rows))}
        values = {n: np.asarray(rows)[0] for n, rows in kept.items()}
        return self._happened(before, values, changed, name)

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
            raise InvalidValueError("no moment was kept", fix="Take a snapshot first")
        self._go(self.saved)

    def undo(self) -> str:
        """Goes back to before the last intervention; returns what was taken back."""
        if not self.history.events:
            raise InvalidValueError(explain("there is nothing to undo: no intervention was made"))
        last, steps = self.history.events[-1], self.steps
        if last.before is None:
            raise InvalidValueError(explain("the last intervention was made by the script itself"))
        self._go(last.before)
        lost = steps - last.step
        also = f" and {lost} step{'s' if lost > 1 else ''}" if lost else ""
        return f"took back {', '.join(last.values)}{also}"

    def _go(self, moment: ViewerMoment) -> None:
        with self._own():
            self._observation = self.env.restore(moment.snapshot)
        self.history = moment.history

    @contextlib.contextmanager
    def _own(self) -> Iterator[None]:
        self.busy = True
        try:
            yield
        finally:
            self.busy = False

    # -------------------------------------------------------------------- looking

    def picture(self) -> NDArray[np.uint8]:
        """Returns a picture of the world now, (rows, columns, 3)."""
        env = self.env
        seen = quick_picture(env, self._observation) if self.quick else None
        if seen is not None:
            return seen
        if self._shared:  # a GL context belongs to a thread, and the script's may have one
            if self._mirror is None:
                self._mirror = make(self.id, render_mode="rgb_array", **self.options)
            env = self._mirror
            env.restore(self.env.snapshot())
        return np.array(env.render(), dtype=np.uint8)

    def shapes(self) -> tuple[Shape, ...]:
        """Returns the world's solids now; empty where pictures are all there is."""
        return self.env.world.shapes(0)

    def close(self) -> None:
        """Releases the world, unless it is a script's own."""
        self.env.driver.listeners.remove(self)
        for env in (None if self._shared else self.env, self._mirror):
            if env is not None:
                env.close()


def quick_picture(env: WorldEnv, observation: Any) -> NDArray[np.uint8] | None:
    """Returns an observation's picture if it shows what `render` does, at half its size or more.

    A world that plays is drawn once for the policy; drawing it again would halve its pace.
    """
    image = observation.get("image") if isinstance(observation, Mapping) else None
    rows, columns = env.world.render_size
    if image is None or image.shape[0] * columns != image.shape[1] * rows:
        return None
    return np.asarray(image, dtype=np.uint8) if 2 * image.shape[0] >= rows else None


def _first_info(moment: Transition) -> dict[str, Any]:
    return {name: value[0] for name, value in moment.info.items()}


def _lead(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {name: _lead(value) for name, value in observation.items()}
    return np.asarray(observation)[None]
