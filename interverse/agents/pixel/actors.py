"""Environments that act together: one in this process, or several in processes of their own.

They step in lockstep, so a run is the same however fast each one is. An environment whose episode
has ended starts anew at its next step, whose action is then not used.
"""

from __future__ import annotations

import contextlib
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InterverseError, explain
from interverse.envs import Snapshot

MakeEnv = Callable[[], gym.Env[Any, Any]]
_PATIENCE = 10.0  # seconds a process may take to close


class PixelSteps(NamedTuple):
    """What a step gave, per lane."""

    observations: NDArray[np.uint8]
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    ages: NDArray[np.int64]  # 0 where the step started an episode
    returns: NDArray[np.float64]  # of the episode that ended with this step, else NaN


class ActorError(InterverseError, RuntimeError):
    """An environment in another process failed; the text is its traceback."""


@final
@dataclass(slots=True)
class _Lane:
    """One environment with the counters of its episode."""

    env: Any
    age: int = 0
    total: float = 0.0
    ended: bool = False

    def start(self, seed: int | None) -> Any:
        observation, _ = self.env.reset(seed=seed)
        self.age, self.total, self.ended = 0, 0.0, False
        return observation

    def step(self, action: Any) -> tuple[Any, float, bool, int, float]:
        if self.ended:
            return self.start(None), 0.0, False, 0, np.nan
        observation, reward, terminated, truncated, _ = self.env.step(action)
        self.age += 1
        self.total += float(reward)
        self.ended = bool(terminated or truncated)
        finished = self.total if self.ended else np.nan
        return observation, float(reward), bool(terminated), self.age, finished

    def save(self, _: None) -> dict[str, Any]:
        """Returns the moment: a snapshot where the environment can give one."""
        world = self.env.unwrapped
        can = callable(getattr(world, "snapshot", None))
        moment = world.snapshot().to_bytes() if can else b""
        return {"age": self.age, "total": self.total, "ended": self.ended, "moment": moment}

    def load(self, saved: dict[str, Any]) -> Any:
        """Goes back to a moment; an environment without snapshots starts an episode."""
        if not saved["moment"]:
            return self.start(saved["seed"])
        snapshot = Snapshot.from_bytes(saved["moment"])
        observation, _ = self.env.reset(options={"snapshot": snapshot})
        self.age, self.total, self.ended = saved["age"], saved["total"], saved["ended"]
        return observation


@final
class Actors:
    """Lanes with one interface, here or in processes."""

    def __init__(self, make_env: MakeEnv, count: int) -> None:
        self.count = count
        self._lane: _Lane | None = None
        self._begun: list[NDArray[np.float32]] = []
        self._links: list[tuple[Any, Connection]] = []
        if count == 1:
            self._lane = _Lane(make_env())
            return
        context = get_context("spawn")  # a forked child would share GL contexts and threads
        for _ in range(count):
            mine, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, make_env), daemon=True)
            process.start()
            theirs.close()
            self._links.append((process, mine))

    def reset(self, seed: int) -> NDArray[np.uint8]:
        """Starts an episode in every lane; lane i has seed + i."""
        return np.stack(self._all("start", [seed + i for i in range(self.count)]))

    def step(self, actions: NDArray[np.float32]) -> PixelSteps:
        """Advances every lane, or starts it anew if its episode had ended."""
        self.begin(actions)
        return self.finish()

    def begin(self, actions: NDArray[np.float32]) -> None:
        """Hands the actions out; lanes in processes step while the caller does other work."""
        self._begun = list(actions)
        if self._lane is None:
            self._send("step", self._begun)

    def finish(self) -> PixelSteps:
        """Returns what the steps that were begun gave."""
        lane = self._lane
        answers = self._answers() if lane is None else [lane.step(self._begun[0])]
        observations, rewards, terminated, ages, returns = zip(*answers, strict=True)
        return PixelSteps(
            np.stack(observations),
            np.array(rewards, dtype=np.float32),
            np.array(terminated),
            np.array(ages),
            np.array(returns),
        )

    def save(self) -> list[dict[str, Any]]:
        """Returns every lane's moment."""
        return self._all("save", [None] * self.count)

    def load(self, saved: Sequence[dict[str, Any]]) -> NDArray[np.uint8]:
        """Goes back to saved moments; returns the observations."""
        return np.stack(self._all("load", list(saved)))

    def close(self) -> None:
        """Ends the environments and their processes."""
        if self._lane is not None:
            self._lane.env.close()
        for process, link in self._links:
            with contextlib.suppress(OSError):  # it may be gone already
                link.send(("close", None))
            process.join(_PATIENCE)
            if process.is_alive():
                process.terminate()
            link.close()

    def _all(self, method: str, given: list[Any]) -> list[Any]:
        if self._lane is not None:
            return [getattr(self._lane, method)(given[0])]
        self._send(method, given)
        return self._answers()

    def _send(self, method: str, given: list[Any]) -> None:
        for (_, link), one in zip(self._links, given, strict=True):
            link.send((method, one))

    def _answers(self) -> list[Any]:
        answers: list[tuple[bool, Any]] = []
        for _, link in self._links:  # all, so that none stays unread
            try:
                answers.append(link.recv())
            except (EOFError, ConnectionResetError):
                told = "its process ended without a word; was it killed, or out of memory?"
                answers.append((False, told))
        for works, told in answers:
            if not works:
                raise ActorError(explain(f"an actor failed:\n{told}"))
        return [told for _, told in answers]


def _serve(link: Connection, make_env: MakeEnv) -> None:
    """Answers calls until told to close: the whole of an actor's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the learner's to hear
    lane: _Lane | None = None
    while True:
        try:
            method, given = link.recv()
        except EOFError:
            break  # the learner is gone
        if method == "close":
            break
        try:
            lane = _Lane(make_env()) if lane is None else lane
            answer = True, getattr(lane, method)(given)
        except Exception:
            answer = False, traceback.format_exc()
        link.send(answer)
    if lane is not None:
        lane.env.close()
