"""The counterfactual of a session, played beside it: the same noise, the same actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError
from interverse.envs import make
from interverse.rollouts.counterfactual import begin
from interverse.sim.shapes import Shape
from interverse.viewer.history import History
from interverse.viewer.session import Session, quick_picture

Frame = tuple[Shape, ...] | NDArray[np.uint8]  # solids, or a picture where there are none
MOST_FRAMES = 600


@final
class Ghost:
    """The episode that would have been, had `do` been done before action `at`.

    It is `iv.counterfactual` of the session's episode, in a second world that goes on with the
    session: `follow` takes the actions that were taken since.

    Args:
        session: the fact.
        do: variables and their values.
        at: before which action; 0 is the start.
        check: whether values must lie in the world's published spaces.

    >>> session = Session("tutorial/slider-v1")
    >>> session.step()
    >>> ghost = Ghost(session, {"box/mass": 0.9})
    >>> ghost.differing()
    ['box/mass', 'box/position', 'box/velocity']
    """

    def __init__(
        self, session: Session, do: Mapping[str, Any], *, at: int = 0, check: bool = True
    ) -> None:
        if not 0 <= at <= session.steps:
            raise InvalidValueError(
                f"before action {at}", allowed=f"0 to {session.steps}, the actions so far"
            )
        self.do, self.at, self._check = dict(do), at, check
        self._session, self._seen = session, session.history
        self._env = make(session.id, render_mode="rgb_array", **session.options)
        self._decided = self._env.graph.with_twins(self.do)
        try:
            self._restart()
            self.follow()
        except BaseException:
            self.close()
            raise

    def _restart(self) -> None:
        start = self._session.history.start
        self.frames: dict[int, Frame] = {}
        self.trace: list[Mapping[str, NDArray[Any]]] = []
        self.earned, self.ended = 0.0, False
        self._events = 0  # of the session, that were done here
        if start.snapshot is not None:
            self._done = False
            self._seen_now = self._env.restore(start.snapshot)
            return
        acted = any(event.step == 0 for event in self._session.history.events)
        self._done = self.at == 0 and not acted
        early = self.do if self._done else {}
        decided = self._decided if self.at == 0 else set()
        facts = {name: v for name, v in start.do.items() if name not in decided}
        begin(self._env, start.seed, start.episode, facts, early, check=self._check)
        self._seen_now = self._env.observe()

    def follow(self) -> None:
        """Takes the session's actions since; plays from the start again if some were undone."""
        history = self._session.history
        if not self._continues(history):
            self._restart()
        for step in range(max(0, len(self.trace) - 1), len(history.actions) + 1):
            if self.ended:
                break
            self._intervene(history, step)
            if step < len(history.actions):
                self._seen_now, reward, terminated, truncated, _ = self._env.step(
                    history.actions[step]
                )
                self.earned += reward
                self.ended = terminated or truncated
                self._look(step + 1)
        self._seen = history

    def is_of(self, history: History) -> bool:
        """Returns whether a history is of the same episode and reaches the changed moment."""
        return history.start is self._seen.start and len(history.actions) >= self.at

    def _continues(self, history: History) -> bool:
        """Returns whether what was played here is a beginning of the session's history."""
        seen, new = self._seen, history.events[self._events :]
        known = (*seen.actions, *seen.events[: self._events])
        still = (*history.actions[: len(seen.actions)], *history.events[: self._events])
        return (
            history.start is seen.start
            and len(known) == len(still)
            and all(a is b for a, b in zip(known, still, strict=True))
            and not (self._done and any(event.step <= self.at for event in new))
        )

    def _intervene(self, history: History, step: int) -> None:
        """Does what the fact did before an action, where `do` does not win, and then `do`."""
        logged = len(self._env.driver.log(0))
        for event in history.events[self._events :]:
            if event.step != step:
                break
            won = self._decided if event.step >= self.at else set()
            kept = {name: v for name, v in event.values.items() if name not in won}
            if kept:
                self._env.do(kept, check=False)
            self._events += 1
        if step == self.at and not self._done:
            self._done = True
            self._env.do(self.do, check=self._check)
        changed = len(self._env.driver.log(0)) > logged
        if changed:
            self._seen_now = self._env.observe()
        if changed or step not in self.frames or self._is_quick != self._session.quick:
            self._look(step)

    def _look(self, step: int) -> None:
        values = dict(self._env.values)
        self.trace[step:] = [values]
        self._is_quick = self._session.quick
        seen = quick_picture(self._env, self._seen_now) if self._is_quick else None
        if seen is None:
            seen = self._env.world.shapes(0) or np.array(self._env.render(), dtype=np.uint8)
        self.frames[step] = seen
        self.frames.pop(step - MOST_FRAMES, None)

    def differing(self, step: int | None = None) -> list[str]:
        """Returns the variables that differ between fact and counterfactual, by default now."""
        facts = self._session.history.trace
        at = len(facts) - 1 if step is None else step
        mine, theirs = facts[at], self.trace[min(at, len(self.trace) - 1)]
        return [name for name in mine if not np.array_equal(mine[name], theirs[name])]

    def close(self) -> None:
        """Releases the second world."""
        self._env.close()
