"""A curriculum around an environment: one wrapper for `Env`, one for `VectorEnv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorWrapper
from numpy.typing import NDArray

from interverse.actors.curriculum import Curriculum, check_refusals
from interverse.core.errors import InvalidValueError, explain
from interverse.envs.driver import Driver, Transition
from interverse.envs.single import WorldEnv
from interverse.envs.values import to_numpy
from interverse.envs.vector import WorldVectorEnv
from interverse.worlds.world import Index

_SUCCESS = ("fractional_success", "success")  # the first of these that `info` holds


@final
class CurriculumEnv(gym.Wrapper[Any, Any, Any, Any]):
    """A single environment whose episodes start and go on under a curriculum."""

    def __init__(self, env: gym.Env[Any, Any], curriculum: Curriculum) -> None:
        super().__init__(env)
        self.hook = attach_curriculum(env.unwrapped, curriculum)


@final
class CurriculumVectorEnv(VectorWrapper):
    """A vector environment under a curriculum, each world with its own episodes and steps."""

    def __init__(self, env: Any, curriculum: Curriculum) -> None:
        super().__init__(env)
        self.hook = attach_curriculum(env.unwrapped, curriculum)


@final
class CurriculumHook:
    """Applies a curriculum where the driver resets and steps, so autoreset cannot pass it by.

    `refused` counts, per world, the episodes or moments whose intervention was refused.
    """

    def __init__(self, curriculum: Curriculum, num_worlds: int) -> None:
        self.curriculum = curriculum
        self.refused = np.zeros(num_worlds, dtype=np.int64)
        self._ended = np.zeros(num_worlds, dtype=bool)
        self._carried: dict[str, NDArray[Any]] = {}
        self._has: dict[str, NDArray[np.bool_]] = {}
        self._silent: int | None = 0  # starts refused so far while none changed anything; else None

    def on_reset(self, driver: Driver, worlds: Index) -> None:
        """Lays earlier episodes' values down again if they accumulate, then intervenes."""
        self._ended[worlds] = False
        cumulative = self.curriculum.start == "cumulative"
        if cumulative:
            self._lay_down(driver, worlds)
        before = len(driver.log(int(worlds[0]))) if len(worlds) else 0
        held = {} if self._silent is None else dict(driver.host_values)
        refusals = self.curriculum.intervene(driver, worlds)
        self._count(refusals)
        self._watch(driver, held, refusals)
        if cumulative and len(worlds):
            self._carry(driver, worlds, before)

    def on_step(self, driver: Driver, moment: Transition) -> dict[str, NDArray[Any]]:
        """Intervenes within episodes; informs the actors of episodes that have just ended."""
        ended = moment.ended
        fresh = np.flatnonzero(ended & ~self._ended)
        self._ended |= ended
        key = next((name for name in _SUCCESS if name in moment.info), None)
        if len(fresh) and self.curriculum.listens:
            if key is None:
                raise InvalidValueError(
                    explain(
                        "an actor waits for success, and this world's info has none",
                        allowed=f"worlds whose info holds {' or '.join(_SUCCESS)}",
                        fix="Use another actor, such as uniform",
                    )
                )
            success = to_numpy(moment.info[key], np.float64)[fresh]
            self.curriculum.on_episode_end(success, fresh)
        self._count(self.curriculum.intervene(driver, np.flatnonzero(~ended)))
        return {"refused_interventions": self.refused.copy()}

    def save(self) -> dict[str, NDArray[Any]]:
        """Returns the memory of past episodes, as arrays."""
        out: dict[str, NDArray[Any]] = {"refused": self.refused.copy(), "ended": self._ended.copy()}
        for name, rows in self._carried.items():
            out[f"carried:{name}"], out[f"has:{name}"] = rows.copy(), self._has[name].copy()
        for number, stage in enumerate(self.curriculum.stages):
            out |= {f"actor:{number}:{k}": v for k, v in stage.actor.memory().items()}
        return out

    def load(self, held: Mapping[str, NDArray[Any]]) -> None:
        """Takes back what `save` returned."""
        self.refused, self._ended = held["refused"].copy(), held["ended"].copy()
        names = [name.removeprefix("carried:") for name in held if name.startswith("carried:")]
        self._carried = {name: held[f"carried:{name}"].copy() for name in names}
        self._has = {name: held[f"has:{name}"].copy() for name in names}
        for number, stage in enumerate(self.curriculum.stages):
            mine = f"actor:{number}:"
            part = {k.removeprefix(mine): v for k, v in held.items() if k.startswith(mine)}
            if part:
                stage.actor.set_memory(part)

    def _count(self, refusals: Mapping[int, str]) -> None:
        self.refused[list(refusals)] += 1

    def _watch(
        self, driver: Driver, held: Mapping[str, NDArray[Any]], refusals: Mapping[int, str]
    ) -> None:
        """Raises once the first starts were all refused; a start that changed something ends it."""
        if self._silent is None:
            return
        now = driver.host_values
        if not all(np.array_equal(now[n], rows, equal_nan=True) for n, rows in held.items()):
            self._silent = None
        elif refusals:
            self._silent += len(refusals)
            check_refusals(self._silent, next(iter(refusals.values())))

    def _lay_down(self, driver: Driver, worlds: Index) -> None:
        for name, rows in self._carried.items():
            chosen = worlds[self._has[name][worlds]]
            if len(chosen):
                self._count(driver.do({name: rows}, worlds=chosen, check=False).reasons)

    def _carry(self, driver: Driver, worlds: Index, before: int) -> None:
        for world in worlds.tolist():
            for entry in driver.log(world)[before:]:
                row = int(np.flatnonzero(entry.worlds == world)[0])
                if world in entry.reasons:
                    continue
                for name, rows in entry.values.items():
                    if name not in self._carried:
                        self._carried[name] = driver.host_values[name]
                        self._has[name] = np.zeros(len(self.refused), dtype=bool)
                    self._carried[name][world] = rows[row]
                    self._has[name][world] = True


def attach_curriculum(env: Any, curriculum: Curriculum) -> CurriculumHook:
    """Puts a curriculum into an interverse environment; returns what applies it."""
    if not isinstance(env, WorldEnv | WorldVectorEnv):
        raise InvalidValueError(
            explain(f"env is a {type(env).__name__}", allowed="an environment of interverse")
        )
    driver = env.driver
    if driver.hook is not None:
        raise InvalidValueError(
            explain("the environment has a curriculum already", fix="Combine their stages in one")
        )
    curriculum.check(driver)
    driver.hook = CurriculumHook(curriculum, driver.world.num_worlds)
    return driver.hook
