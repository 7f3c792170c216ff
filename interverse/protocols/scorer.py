"""The scorer of a unit: scores and steps of each row, gathered until its episode ends."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.envs.driver import Driver
from interverse.envs.values import to_numpy
from interverse.metrics import METRICS
from interverse.protocols.measures import Metric, Steps, is_registered
from interverse.protocols.protocol import Protocol
from interverse.results.schema import SCORES

_FRACTION = "fractional_success"


@final
class EpisodeScorer:
    """Scores, refusals, drawn values and, for metrics, the steps themselves."""

    def __init__(
        self, driver: Driver, metrics: tuple[Metric, ...], given: Mapping[str, NDArray[Any]]
    ) -> None:
        n = len(driver.steps)
        self.done = np.zeros(n, dtype=bool)
        self._driver = driver
        self._length = np.zeros(n, dtype=np.int64)
        self._reward: list[NDArray[np.float64]] = []
        self._fraction: list[NDArray[np.float64]] = []
        self._success = np.full(n, np.nan)
        self._reasons: dict[int, str] = {}
        self._drawn: list[dict[str, Any]] = [
            {name: rows[row] for name, rows in given.items()} for row in range(n)
        ]
        self._film = _StepRecord(driver, metrics) if metrics else None
        self._trace = _Trace(driver)

    def intervened(self, reasons: Mapping[int, str], step: int) -> None:
        """Notes refused episodes, and the values that this step set in the others."""
        self._reasons |= reasons
        now = {}
        for row in np.flatnonzero(~self.done).tolist():
            for entry in self._driver.log(row)[-1:]:
                at = int(entry.steps[np.flatnonzero(entry.worlds == row)[0]])
                if at != step or entry.at_reset or row in entry.reasons:
                    continue
                for name in entry.values:
                    if name not in now:
                        now[name] = self._driver.values[name]
                    self._drawn[row][f"{name}@{step}"] = now[name][row]
                    self._trace.add(row, now[name][row])

    def before(self, observation: Any, action: Any) -> None:
        """Takes what the policy sees and does; at the end, what is seen last and no action."""
        if not self._length.any() and action is not None:
            self._trace.begin(observation)
        if action is not None:
            self._trace.step(action, ~self.done)
        if self._film is not None:
            self._film.before(observation, action)

    def after(
        self,
        reward: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        info: Mapping[str, Any],
    ) -> None:
        """Takes one step of every row; rows that have ended count no more."""
        alive = ~self.done
        self._reasons |= self._driver.diverged
        reward, terminated, truncated = (to_numpy(x) for x in (reward, terminated, truncated))
        info = {name: to_numpy(value) for name, value in info.items()}
        if not np.all(np.isfinite(reward[alive])):
            row = int(np.flatnonzero(alive & ~np.isfinite(reward))[0])
            raise InvalidValueError(
                explain(
                    f"the world's reward is {reward[row]} at step {int(self._length[row]) + 1}",
                    allowed="finite numbers: a mean without this episode would be of the others",
                )
            )
        self._length += alive
        self._reward.append(np.where(alive, reward, 0.0))
        self._trace.step(reward, alive)
        if _FRACTION in info:
            self._fraction.append(np.where(alive, info[_FRACTION], np.nan))
        if "success" in info:
            self._success = np.where(alive, info["success"], self._success)
        if self._film is not None:
            self._film.after(reward, info)
        self.done = self.done | terminated | truncated

    def rows(
        self, task: str, protocol: Protocol, seed: int, numbers: NDArray[np.int64]
    ) -> list[dict[str, Any]]:
        """Returns one results row per episode."""
        total = np.sum(self._reward, axis=0)
        scores = self._fractions()
        out = []
        for row, number in enumerate(numbers.tolist()):
            base = {"task": task, "protocol": protocol.name, "seed": seed, "episode": number}
            base["length"] = int(self._length[row])
            if row in self._reasons:
                out.append(base | {"refused": True, "reason": self._reasons[row]})
                continue
            scored: dict[str, Any] = {name: float(v[row]) for name, v in scores.items()}
            scored |= {"return": float(total[row]), "trace": self._trace.word(row)}
            if not np.isnan(self._success[row]):
                scored["score:success"] = float(self._success[row])
            if self._film is not None:
                scored |= self._film.scores(row, int(self._length[row]), base)
            out.append(base | {"refused": False} | scored | self._values(row, protocol))
        return out

    def _values(self, row: int, protocol: Protocol) -> dict[str, Any]:
        """Returns what was set; a protocol that acts more than once has a column for each time."""
        many = len(protocol.at) > 1
        return {
            f"value:{name if many else name.partition('@')[0]}": _plain(value)
            for name, value in self._drawn[row].items()
        }

    def _fractions(self) -> dict[str, NDArray[np.float64]]:
        if not self._fraction:
            return {}
        steps = np.nan_to_num(np.stack(self._fraction, axis=1))
        names = [name for name in SCORES if "success" in METRICS[name].tags]
        return {name: METRICS.load(name)(steps, self._length) for name in names}


def _plain(value: NDArray[Any]) -> float | list[float]:
    numbers = to_numpy(value)
    return float(numbers) if numbers.ndim == 0 else numbers.astype(float).ravel().tolist()


@final
class _Trace:
    """One word an episode: equal words, the same episode again, whatever its seeds are called.

    Made of every variable but the seeds and of the observation where the episode starts, of what is
    set later, and of every action and reward.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._words = [hashlib.blake2b(digest_size=8) for _ in driver.steps]

    def begin(self, observation: Any) -> None:
        """Takes in where the episodes start."""
        world = self._driver.world
        parts = [self._driver.values[n] for n in world.variables if n not in world.reset_variables]
        everyone = np.ones(len(self._words), dtype=bool)
        for part in (*parts, *_leaves(_numpy(observation))):
            self.step(part, everyone)

    def step(self, rows: Any, alive: NDArray[np.bool_]) -> None:
        """Takes in one row for each episode that goes on."""
        given = rows if isinstance(rows, np.ndarray) else np.asarray(to_numpy(rows))
        for row in np.flatnonzero(alive).tolist():
            self.add(row, given[row])

    def add(self, row: int, value: Any) -> None:
        """Takes in something that happened in one episode."""
        self._words[row].update(np.ascontiguousarray(_numpy(value)).tobytes())

    def word(self, row: int) -> str:
        """Returns the word of an episode."""
        return self._words[row].hexdigest()


def _leaves(seen: Any) -> list[Any]:
    return (
        [leaf for v in seen.values() for leaf in _leaves(v)]
        if isinstance(seen, Mapping)
        else [seen]
    )


class _StepRecord:
    """The steps of all rows, kept for metrics of one's own."""

    def __init__(self, driver: Driver, metrics: tuple[Metric, ...]) -> None:
        space = driver.world.observation_space
        flat = isinstance(space, gym.spaces.Box) and len(space.shape) == 1
        self._driver = driver
        self._metrics = metrics
        self._sees = flat or any(metric.observations for metric in metrics)
        names = dict.fromkeys(name for metric in metrics for name in metric.values)
        self._values: dict[str, list[Any]] = {name: [] for name in names}
        self._seen: list[Any] = []
        self._actions: list[Any] = []
        self._rewards: list[Any] = []
        self._info: list[Mapping[str, Any]] = []

    def before(self, observation: Any, action: Any) -> None:
        if self._sees:
            self._seen.append(_numpy(observation))
        for name, rows in self._values.items():
            rows.append(self._driver.values[name])
        if action is not None:
            self._actions.append(np.array(action))

    def after(self, reward: NDArray[np.float64], info: Mapping[str, Any]) -> None:
        self._rewards.append(reward)
        self._info.append({k: v for k, v in info.items() if not k.startswith("_")})

    def scores(self, row: int, length: int, address: Mapping[str, Any]) -> dict[str, float]:
        """Returns the metrics' columns of one episode."""
        kept = {n: [v[row] for v in rows[: length + 1]] for n, rows in self._values.items()}
        steps = Steps(
            task=address["task"],
            protocol=address["protocol"],
            seed=address["seed"],
            episode=address["episode"],
            rewards=np.array([r[row] for r in self._rewards[:length]]),
            actions=np.stack([a[row] for a in self._actions[:length]]),
            info={n: np.stack([i[n][row] for i in self._info[:length]]) for n in self._info[0]},
            observations=_row(self._seen[: length + 1], row) if self._sees else None,
            values={name: np.stack(rows) for name, rows in kept.items()},
        )
        own = [is_registered(metric) for metric in self._metrics]  # these change nothing
        return {
            f"score:{metric.name}": metric(steps if known else copy.deepcopy(steps))
            for metric, known in zip(self._metrics, own, strict=True)
        }


def _row(seen: list[Any], row: int) -> Any:
    if isinstance(seen[0], Mapping):
        return {name: _row([s[name] for s in seen], row) for name in seen[0]}
    return np.stack([s[row] for s in seen])


def _numpy(seen: Any) -> Any:
    if isinstance(seen, Mapping):
        return {name: _numpy(part) for name, part in seen.items()}
    return seen if isinstance(seen, np.ndarray) else to_numpy(seen)
