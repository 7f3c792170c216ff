"""A curriculum around an environment: one wrapper for `Env`, one for `VectorEnv`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.curriculum import Curriculum, StageRecord, StageSet
from interverse.core.errors import InvalidValueError
from interverse.envs.driver import Driver, LogEntry, Transition
from interverse.envs.single import WorldEnv
from interverse.envs.values import to_numpy
from interverse.envs.vector import WorldVectorEnv
from interverse.envs.wrappers.forms import Rules, SingleForm, VectorForm
from interverse.scm.graph import CausalGraph
from interverse.worlds.world import Index

_SUCCESS = ("fractional_success", "success")  # the first of these that `info` holds


class _Acted(Rules):
    def __init__(self, env: Any, curriculum: Curriculum) -> None:
        super().__init__(env, curriculum=curriculum)
        self.hook = attach_curriculum(env.unwrapped, curriculum)

    @property
    def tried(self) -> NDArray[np.int64]:
        """Interventions so far, by world: starts of episodes and moments within them."""
        return self.hook.tried

    @property
    def refused(self) -> NDArray[np.int64]:
        """How many of them were refused, also after further draws."""
        return self.hook.refused


@final
class CurriculumEnv(_Acted, SingleForm):
    """A single environment whose episodes start and go on under a curriculum."""


@final
class CurriculumVectorEnv(_Acted, VectorForm):
    """A vector environment under a curriculum, each world with its own episodes and steps."""


@final
class CurriculumHook:
    """Applies a curriculum where the driver resets and steps, so autoreset cannot pass it by.

    It counts, by world, interventions `tried`, and how many were `refused` after further draws too.
    """

    def __init__(self, curriculum: Curriculum, num_worlds: int) -> None:
        self.curriculum = curriculum
        self.tried = np.zeros(num_worlds, dtype=np.int64)
        self.refused = np.zeros(num_worlds, dtype=np.int64)
        self._ended = np.zeros(num_worlds, dtype=bool)
        # By world, what earlier episodes set, the latest last; in "cumulative" it holds on.
        self._carried: list[dict[str, NDArray[Any]]] = [{} for _ in range(num_worlds)]
        self._records: dict[StageSet, StageRecord] = {}
        self._resumed = False  # then the run before has got past its first starts

    def on_reset(self, driver: Driver, worlds: Index) -> None:
        """Restores earlier episodes' values if they accumulate, then intervenes."""
        self._ended[worlds] = False
        cumulative = self.curriculum.start == "cumulative"
        if cumulative:
            # Sets again what earlier episodes set, worlds with the same names in one go.
            groups: dict[tuple[str, ...], list[int]] = {}
            for world in worlds.tolist():
                groups.setdefault(tuple(self._carried[world]), []).append(world)
            for names, members in groups.items():
                scene = [name for name in names if name in driver.world.scene_variables]
                self._set_again(driver, scene, members)
                absent = driver.world.absent({}, np.array(members))
                for name in names:
                    gone = absent.get(name.partition("/")[0], np.zeros(len(members), bool)).tolist()
                    here = [world for world, out in zip(members, gone, strict=True) if not out]
                    if name not in scene:
                        self._set_again(driver, [name], here)
        before = len(driver.entries)
        self._intervene(driver, worlds)
        if cumulative:
            self._carry(driver.entries[before:], driver.world.graph)

    def on_step(self, driver: Driver, moment: Transition) -> dict[str, NDArray[Any]]:
        """Intervenes within episodes; informs the actors of episodes that have just ended."""
        ended = moment.ended
        fresh = np.flatnonzero(ended & ~self._ended)
        self._ended |= ended
        key = next((name for name in _SUCCESS if name in moment.info), None)
        if len(fresh) and self.curriculum.listens:
            if key is None:
                raise InvalidValueError(
                    "an actor waits for success, and this world's info has none",
                    allowed=f"worlds whose info holds {' or '.join(_SUCCESS)}",
                    fix="Use another actor, such as uniform",
                )
            success = to_numpy(moment.info[key], np.float64)[fresh]
            self.curriculum.on_episode_end(success, fresh)
        self._intervene(driver, np.flatnonzero(~ended))
        return {"refused_interventions": self.refused.copy()}

    def save(self) -> dict[str, NDArray[Any]]:
        """Returns the memory of past episodes, as arrays."""
        held = {"tried": self.tried, "refused": self.refused, "ended": self._ended}
        out: dict[str, NDArray[Any]] = {name: rows.copy() for name, rows in held.items()}
        names = dict.fromkeys(name for carried in self._carried for name in carried)
        for name in names:
            some = next(carried[name] for carried in self._carried if name in carried)
            rows = np.zeros((len(self._carried), *some.shape), some.dtype)
            order = np.full(len(self._carried), -1)  # -1: this world does not carry it
            for world, carried in enumerate(self._carried):
                if name in carried:
                    rows[world], order[world] = carried[name], list(carried).index(name)
            out[f"carried:{name}"], out[f"order:{name}"] = rows, order
        for number, stage in enumerate(self.curriculum.stages):
            out |= {f"actor:{number}:{k}": v for k, v in stage.actor.memory().items()}
        return out

    def load(self, held: Mapping[str, NDArray[Any]]) -> None:
        """Takes back what `save` returned."""
        self.tried, self.refused = held["tried"].copy(), held["refused"].copy()
        self._ended = held["ended"].copy()
        self._resumed = True
        names = [name.removeprefix("carried:") for name in held if name.startswith("carried:")]
        self._carried = []
        for world in range(len(self.refused)):
            places = {name: int(held[f"order:{name}"][world]) for name in names}
            known = sorted((place, name) for name, place in places.items() if place >= 0)
            self._carried.append({name: held[f"carried:{name}"][world] for _, name in known})
        for number, stage in enumerate(self.curriculum.stages):
            mine = f"actor:{number}:"
            part = {k.removeprefix(mine): v for k, v in held.items() if k.startswith(mine)}
            if part:
                stage.actor.set_memory(part)

    def _intervene(self, driver: Driver, worlds: Index) -> None:
        for response in self.curriculum.respond(driver, worlds):
            self._count(response.refused)
            self.tried[response.taken] += 1
            fresh = StageRecord(changed=self._resumed)
            self._records.setdefault(response.stages, fresh).add(response)

    def _count(self, refusals: Mapping[int, str]) -> None:
        self.tried[list(refusals)] += 1
        self.refused[list(refusals)] += 1

    def _set_again(self, driver: Driver, names: Sequence[str], worlds: list[int]) -> None:
        """Sets variables that worlds carry, all at once."""
        if not names or not worlds:
            return
        values = {name: driver.host_values[name] for name in names}
        for name, rows in values.items():
            rows[worlds] = [self._carried[world][name] for world in worlds]
        self._count(driver.do(values, worlds=worlds, check=False).reasons)

    def _carry(self, entries: Sequence[LogEntry], graph: CausalGraph) -> None:
        """Notes what worlds took; of two descriptions of one thing the later one stands."""
        for entry in entries:
            for row, world in enumerate(entry.worlds.tolist()):
                if world in entry.reasons:
                    continue
                values = {name: np.array(rows[row]) for name, rows in entry.values.items()}
                carried = self._carried[world]
                earlier = {name: value for name, value in carried.items() if name not in values}
                self._carried[world] = graph.updated(earlier, values)


def attach_curriculum(env: Any, curriculum: Curriculum) -> CurriculumHook:
    """Puts a curriculum into an interverse environment; returns what applies it."""
    if not isinstance(env, WorldEnv | WorldVectorEnv):
        raise InvalidValueError(
            f"env is a {type(env).__name__}", allowed="an environment of interverse"
        )
    driver = env.driver
    if driver.hook is not None:
        raise InvalidValueError(
            "the environment has a curriculum already", fix="Combine their stages in one"
        )
    curriculum.check(driver)
    driver.hook = CurriculumHook(curriculum, driver.world.num_worlds)
    return driver.hook
