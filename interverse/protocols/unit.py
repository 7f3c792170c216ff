"""One unit of an evaluation: fifty episodes of one protocol and seed, always in the same rows.

A score depends on (task, protocol, seed, episode) alone. Units never vary in shape: a network's
output may depend on its batch size in the last bit, so a short unit is padded, not cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.envs import make_vec
from interverse.envs.driver import Driver
from interverse.metrics import success as success_metrics
from interverse.protocols.protocol import Protocol
from interverse.rollouts.policy import PolicyLike, as_policy

ROWS = 50
_FRACTION = "fractional_success"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Which episodes: `number` counts blocks of fifty; `episodes` of them are wanted."""

    task: str
    options: Mapping[str, Any]
    protocol: Protocol
    seed: int
    number: int
    episodes: int

    @property
    def name(self) -> str:
        """A file name for its results."""
        return f"{self.protocol.name}-seed{self.seed}-unit{self.number:04d}"


def run_unit(unit: Unit, policy: PolicyLike) -> list[dict[str, Any]]:
    """Returns one results row per wanted episode."""
    venv = make_vec(unit.task, num_envs=ROWS, autoreset_mode="disabled", threads=1, **unit.options)
    try:
        driver = venv.unwrapped.driver
        unit.protocol.check(driver)
        numbers = np.arange(ROWS) + unit.number * ROWS
        observation, _ = venv.reset(seed=[unit.seed] * ROWS, options={"episode": numbers.tolist()})
        actor = as_policy(policy, venv.unwrapped.world)
        actor.reset(np.ones(ROWS, dtype=bool), unit.seed + (numbers << 32))
        tally = _Tally(driver)
        everyone = np.arange(ROWS)
        for step in range(venv.unwrapped.world.max_steps):
            if step in unit.protocol.at:
                alive = everyone[~tally.done]
                tally.refuse(unit.protocol.apply(driver, alive), driver)
                observation = venv.unwrapped.world.observe()
            observation, *result = venv.step(actor(observation))
            tally.add(*result)
            if tally.done.all():
                break
        return tally.rows(unit, numbers)
    finally:
        venv.close()


class _Tally:
    """Gathers what happens in each row until its episode ends."""

    def __init__(self, driver: Driver) -> None:
        n = len(driver.steps)
        self.done = np.zeros(n, dtype=bool)
        self._driver = driver
        self._length = np.zeros(n, dtype=np.int64)
        self._reward: list[NDArray[np.float64]] = []
        self._fraction: list[NDArray[np.float64]] = []
        self._success = np.full(n, np.nan)
        self._reasons: dict[int, str] = {}
        self._values: dict[str, NDArray[Any]] = {}

    def refuse(self, reasons: Mapping[int, str], driver: Driver) -> None:
        """Notes refused episodes, and the values that were set in the others."""
        self._reasons |= reasons
        entries = [driver.log(row)[-1:] for row in range(len(self.done))]
        names = {name for entry in entries for e in entry for name in e.values}
        for name in names:
            self._values.setdefault(name, driver.values[name])

    def add(
        self,
        reward: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        info: Mapping[str, Any],
    ) -> None:
        """Takes one step of every row; rows that have ended count no more."""
        alive = ~self.done
        self._length += alive
        self._reward.append(np.where(alive, reward, 0.0))
        if _FRACTION in info:
            self._fraction.append(np.where(alive, info[_FRACTION], np.nan))
        if "success" in info:
            self._success = np.where(alive, info["success"], self._success)
        self.done = self.done | terminated | truncated

    def rows(self, unit: Unit, numbers: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Returns the results rows of the wanted episodes."""
        total = np.sum(self._reward, axis=0)
        scores = self._fractions()
        out = []
        for row in range(unit.episodes):
            base = {
                "task": unit.task,
                "protocol": unit.protocol.name,
                "seed": unit.seed,
                "episode": int(numbers[row]),
                "length": int(self._length[row]),
            }
            if row in self._reasons:
                out.append(base | {"refused": True, "reason": self._reasons[row]})
                continue
            scored = {name: float(values[row]) for name, values in scores.items()}
            scored["return"] = float(total[row])
            if not np.isnan(self._success[row]):
                scored["score:success"] = float(self._success[row])
            drawn = {f"value:{n}": _plain(v[row]) for n, v in self._values.items()}
            out.append(base | {"refused": False} | scored | drawn)
        return out

    def _fractions(self) -> dict[str, NDArray[np.float64]]:
        if not self._fraction:
            return {}
        steps = np.nan_to_num(np.stack(self._fraction, axis=1))
        return {
            "last_fractional_success": success_metrics.last(steps, self._length),
            "mean_fractional_success": success_metrics.mean(steps, self._length),
            "last20_fractional_success": success_metrics.last_20(steps, self._length),
        }


def _plain(value: NDArray[Any]) -> float | list[float]:
    return float(value) if value.ndim == 0 else value.astype(float).ravel().tolist()
