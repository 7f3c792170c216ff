"""A curriculum around an environment: one wrapper for `Env`, one for `VectorEnv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorWrapper
from numpy.typing import NDArray

from interverse.actors.curriculum import Curriculum, Response, check_refusals, mostly_refused
from interverse.core.errors import InvalidValueError, explain
from interverse.envs.driver import Driver, Transition
from interverse.envs.single import WorldEnv
from interverse.envs.values import to_numpy
from interverse.envs.vector import WorldVectorEnv
from interverse.worlds.world import Index

_SUCCESS = ("fractional_success", "success")  # the first of these that `info` holds


class _Counts:
    """How often the curriculum has intervened, and in vain, by world."""

    hook: CurriculumHook

    @property
    def tried(self) -> NDArray[np.int64]:
        """Interventions so far: starts of episodes and moments within them."""
        return self.hook.tried

    @property
    def refused(self) -> NDArray[np.int64]:
        """How many of them were refused, also after further draws."""
        return self.hook.refused


@final
class CurriculumEnv(_Counts, gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A single environment whose episodes start and go on under a curriculum."""

    def __init__(self, env: gym.Env[Any, Any], curriculum: Curriculum) -> None:
        RecordConstructorArgs.__init__(self, curriculum=curriculum)
        gym.Wrapper.__init__(self, env)
        self.hook = attach_curriculum(env.unwrapped, curriculum)


@final
class CurriculumVectorEnv(_Counts, VectorWrapper):
    """A vector environment under a curriculum, each world with its own episodes and steps."""

    def __init__(self, env: Any, curriculum: Curriculum) -> None:
        super().__init__(env)
        self.hook = attach_curriculum(env.unwrapped, curriculum)


@final
class CurriculumHook:
    """Applies a curriculum where the driver resets and steps, so autoreset cannot pass it by.

    Attributes:
        tried: interventions so far, by world: starts of episodes and moments within them.
        refused: how many of them were refused, also after further draws.
    """

    def __init__(self, curriculum: Curriculum, num_worlds: int) -> None:
        self.curriculum = curriculum
        self.tried = np.zeros(num_worlds, dtype=np.int64)
        self.refused = np.zeros(num_worlds, dtype=np.int64)
        self._ended = np.zeros(num_worlds, dtype=bool)
        self._carried: dict[str, NDArray[Any]] = {}
        self._has: dict[str, NDArray[np.bool_]] = {}
        self._idle: int | None = 0  # asked for what held, while nothing has changed; then None
        self._warned = False

    def on_reset(self, driver: Driver, worlds: Index) -> None:
        """Restores earlier episodes' values if they accumulate, then intervenes."""
        self._ended[worlds] = False
        cumulative = self.curriculum.start == "cumulative"
        if cumulative:
            self._restore_carried(driver, worlds)
        before = len(driver.log(int(worlds[0]))) if len(worlds) else 0
        self._intervene(driver, worlds)
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
        self._intervene(driver, np.flatnonzero(~ended))
        return {"refused_interventions": self.refused.copy()}

    def save(self) -> dict[str, NDArray[Any]]:
        """Returns the memory of past episodes, as arrays."""
        held = {"tried": self.tried, "refused": self.refused, "ended": self._ended}
        out: dict[str, NDArray[Any]] = {name: rows.copy() for name, rows in held.items()}
        for name, rows in self._carried.items():
            out[f"carried:{name}"], out[f"has:{name}"] = rows.copy(), self._has[name].copy()
        for number, stage in enumerate(self.curriculum.stages):
            out |= {f"actor:{number}:{k}": v for k, v in stage.actor.memory().items()}
        return out

    def load(self, held: Mapping[str, NDArray[Any]]) -> None:
        """Takes back what `save` returned."""
        self.refused, self._ended = held["refused"].copy(), held["ended"].copy()
        self.tried = held.get("tried", self.refused).copy()  # not in checkpoints of before
        self._idle = None  # the run before has got past its first starts
        names = [name.removeprefix("carried:") for name in held if name.startswith("carried:")]
        self._carried = {name: held[f"carried:{name}"].copy() for name in names}
        self._has = {name: held[f"has:{name}"].copy() for name in names}
        for number, stage in enumerate(self.curriculum.stages):
            mine = f"actor:{number}:"
            part = {k.removeprefix(mine): v for k, v in held.items() if k.startswith(mine)}
            if part:
                stage.actor.set_memory(part)

    def _intervene(self, driver: Driver, worlds: Index) -> None:
        response = self.curriculum.respond(driver, worlds)
        self._count(response.refused)
        self.tried[response.taken] += 1
        self._check_silent(response)
        if response.refused and not self._warned:
            reason = next(iter(response.refused.values()))
            self._warned = mostly_refused(int(self.refused.sum()), int(self.tried.sum()), reason)

    def _count(self, refusals: Mapping[int, str]) -> None:
        self.tried[list(refusals)] += 1
        self.refused[list(refusals)] += 1

    def _check_silent(self, response: Response) -> None:
        """Raises once the first interventions changed nothing; one that did ends the check."""
        if self._idle is None or response.changed:
            self._idle = None
            return
        self._idle += response.idle
        if response.refused or response.idle:
            reason = next(iter(response.refused.values()), "")
            check_refusals(int(self.refused.sum()), reason, self._idle)

    def _restore_carried(self, driver: Driver, worlds: Index) -> None:
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
