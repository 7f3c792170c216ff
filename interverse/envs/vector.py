"""`gymnasium.vector.VectorEnv`: the native form, thousands of worlds in one call."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from interverse.core.errors import (
    InvalidValueError,
    ResetNeededError,
    UnknownNameError,
    unknown,
)
from interverse.core.rng import check_seed
from interverse.envs.build import (
    VECTOR_RESET_OPTIONS,
    check_render_mode,
    check_reset_options,
    select_worlds,
)
from interverse.envs.driver import Transition
from interverse.envs.single import CopyableEnv, first
from interverse.envs.snapshot import Snapshot
from interverse.scm import Intervention, Outcome

_ENDED = "its episode has ended, and the next step starts another: intervene after that step"
_MODES = {mode.name.lower(): mode for mode in AutoresetMode}


@final
class WorldVectorEnv(CopyableEnv, VectorEnv[Any, Any, Any]):
    """N worlds stepped together; world i of `reset(seed=s)` equals a single env with seed s + i."""

    def __init__(
        self,
        world_id: str,
        num_envs: int = 1,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **options: Any,
    ) -> None:
        check_render_mode(render_mode, ["rgb_array"])
        self.autoreset_mode = _autoreset(autoreset_mode)
        made = {"world_id": world_id, "num_envs": num_envs, "render_mode": render_mode}
        mode = {"autoreset_mode": self.autoreset_mode}
        world = self._begin(num_envs, options, **made, **mode)
        self.num_envs = num_envs
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 25, **mode}
        self.single_observation_space = world.observation_space
        self.single_action_space = world.action_space
        self.observation_space = _batched(world.observation_space, num_envs)
        self.action_space = batch_space(world.action_space, num_envs)
        self._everyone = np.arange(num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Starts episodes in all worlds, or in those of `options["reset_mask"]`.

        A list gives each world its seed; None in it does for its world what no seed at all does: a
        first episode draws a seed, a later one is the next of the seed that the world has. Worlds
        of a snapshot go on with their own seeds and episodes, whatever seed is given.
        """
        names = self.world.reset_variables
        chosen = check_reset_options(options, VECTOR_RESET_OPTIONS, names)
        index = select_worlds(chosen.get("reset_mask"), self.num_envs)
        if not len(index) and not self.driver.running.all():
            told = "reset_mask selects no world before any reset"
            raise ResetNeededError(told, fix="Call reset() first")
        seeds: list[int | None] | None = None
        if isinstance(seed, int | np.integer):
            seeds = [check_seed(seed) + i for i in index.tolist()]
        elif seed is not None:
            several = isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str)
            if not several or len(seed) != self.num_envs:
                one_each = f"a number, or one per world, {self.num_envs}"
                raise InvalidValueError(f"seed is {seed!r}", allowed=one_each)
            seeds = [seed[i] for i in index.tolist()]
        if "snapshot" in chosen:
            self.driver.restore(chosen["snapshot"], index)
        else:
            self.driver.reset(
                index, seeds=seeds, episode=chosen.get("episode"), do=chosen.get("do")
            )
        moment = self.driver.transition()
        return moment.observation, self._told(moment, self._everyone)

    @property
    def resets_next(self) -> NDArray[np.bool_]:
        """The worlds that the next step resets instead of stepping: those that have ended."""
        waits = self.autoreset_mode is AutoresetMode.NEXT_STEP
        return self.driver.ended & waits

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advances every world; ended ones start anew as the autoreset mode says."""
        resets = self.resets_next
        if np.any(resets):
            return self._step_and_reset(actions, resets)
        moment = self.driver.step(actions, self._everyone)
        info = self._told(moment, self._everyone)
        observation = moment.observation
        if self.autoreset_mode is AutoresetMode.SAME_STEP and np.any(moment.ended):
            observation, info = self._reset_at_once(moment)
        return observation, moment.reward, moment.terminated, moment.truncated, info

    def _step_and_reset(
        self, actions: Any, ended: NDArray[np.bool_]
    ) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the worlds that go on and resets the others; each gets its own results."""
        moment = self.driver.step(actions, self._everyone[~ended])
        self.driver.reset(self._everyone[ended])
        fresh = self.driver.transition()
        reward, terminated, truncated = (
            _with_rows(part, 0, ended)
            for part in (moment.reward, moment.terminated, moment.truncated)
        )
        info = self._mixed_info(moment, fresh, ended)
        return fresh.observation, reward, terminated, truncated, info

    def _reset_at_once(self, moment: Transition) -> tuple[Any, dict[str, Any]]:
        ended = moment.ended
        self.driver.reset(self._everyone[ended])
        fresh = self.driver.transition()
        info = self._mixed_info(moment, fresh, ended)
        info["final_obs"], info["_final_obs"] = np.full(self.num_envs, None), ended
        for world in self._everyone[ended].tolist():  # Gymnasium's form: one by one, else None
            info["final_obs"][world] = first(moment.observation, world)
        info["final_info"] = self._told(moment, self._everyone[ended], self.num_envs)
        info["_final_info"] = ended.copy()
        return fresh.observation, info

    def _mixed_info(
        self, moment: Transition, fresh: Transition, ended: NDArray[np.bool_]
    ) -> dict[str, Any]:
        """Returns the step's entries for worlds that go on, the reset's for those that ended.

        Entries that only a step has, such as a curriculum's, are masked where a world was reset.
        """
        mixed = {
            name: _with_rows(value, fresh.info[name][ended], ended) if name in fresh.info else value
            for name, value in moment.info.items()
        }
        info = self._told(moment._replace(info=mixed, info_lasts=False), self._everyone)
        for name in moment.info.keys() - fresh.info.keys():
            info["_" + name] = ~ended
        return info

    def _told(self, moment: Transition, worlds: Any, num_envs: int | None = None) -> dict[str, Any]:
        """Returns Gymnasium's form: each array beside a mask of the worlds it speaks of."""
        mask = np.zeros(len(worlds) if num_envs is None else num_envs, dtype=bool)
        mask[worlds] = True
        mask.setflags(write=False)  # all entries have it
        out: dict[str, Any] = {}
        for name, value in moment.info.items():
            out[name], out["_" + name] = value.copy() if moment.info_lasts else value, mask
        for owner in self.world.nested_info:  # `state/gravity` is in `state`
            keys = [n.partition("/")[2] for n in moment.info if n.startswith(f"{owner}/")]
            part = {key: out.pop(f"{owner}/{key}") for key in keys}
            part |= {f"_{key}": out.pop(f"_{owner}/{key}") for key in keys}
            out[owner], out[f"_{owner}"] = part, mask
        return out

    @property
    def values(self) -> Mapping[str, NDArray[Any]]:
        """Every variable's present values, (N, *shape)."""
        return self.driver.values

    def do(
        self, values: Mapping[str, Any] | Intervention, *, worlds: object = None, check: bool = True
    ) -> Outcome:
        """Intervenes now; refused worlds stay as they were and are named in the outcome.

        Worlds whose episode has ended, and which the next step resets, refuse: it would be lost.
        Where every world refuses, a warning says so.
        """
        index = select_worlds(worlds, self.num_envs)
        waits = self.resets_next[index]
        free = index[~waits] if waits.any() else worlds
        outcome = self.driver.do(values, worlds=free, check=check)
        if waits.any():
            late = dict.fromkeys(index[waits].tolist(), _ENDED)
            outcome = replace(outcome, reasons={**outcome.reasons, **late})
        if len(index) and not outcome.applied.any():
            told = next(iter(outcome.reasons.values()))
            warnings.warn(f"no world took the intervention: {told}", stacklevel=2)
        return outcome

    def restore(self, snapshot: Snapshot, *, worlds: object = None) -> Any:
        """Goes back to a moment, in all or some worlds; returns the observations."""
        index = select_worlds(worlds, self.num_envs)
        self.driver.restore(snapshot, index)
        return self.driver.world.observe()

    def render(self) -> tuple[Any, ...] | None:
        """Returns a picture of each world if render_mode is "rgb_array"."""
        if self.render_mode is None:
            return None
        return tuple(self.driver.world.render(i) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Releases simulators and GL contexts."""
        self.driver.world.close()


def _batched(space: gym.Space[Any], count: int) -> gym.Space[Any]:
    """Returns Gymnasium's batched space; bounds of boxes are views, not N copies.

    For 4,096 worlds with two pictures the copies would take 300 MB.
    """
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({key: _batched(part, count) for key, part in space.items()})
    if not isinstance(space, gym.spaces.Box):
        return batch_space(space, count)
    out = copy.copy(space)
    out._shape = (count, *space.shape)
    out.__dict__["_np_random"] = None
    for name in ("low", "high", "bounded_below", "bounded_above"):
        out.__dict__[name] = np.broadcast_to(getattr(space, name), out._shape)
    return out


def _with_rows(array: Any, rows: Any, chosen: NDArray[np.bool_]) -> Any:
    """Returns a copy of an array or a tensor with other values in some rows."""
    out = array.clone() if hasattr(array, "clone") else array.copy()
    out[chosen] = rows
    return out


def _autoreset(mode: AutoresetMode | str) -> AutoresetMode:
    name = str(getattr(mode, "value", mode)).lower()
    for key, value in _MODES.items():
        if name in (key, value.value.lower()):
            return value
    raise UnknownNameError(unknown("autoreset_mode", mode, _MODES))
