"""The one loop: an environment meets a policy, an `Episode` comes out; recorded as it happens."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any, final
from weakref import ref

import gymnasium as gym
import numpy as np

from interverse.core.arrays import mapped
from interverse.core.errors import InvalidValueError, check_whole
from interverse.core.type_checks import blames_types
from interverse.envs import Snapshot, WorldEnv, make
from interverse.envs.build import options_of
from interverse.envs.driver import Transition
from interverse.envs.single import first
from interverse.envs.values import to_numpy
from interverse.rollouts.episode import AppliedDo, Episode, EpisodeWriter, Refusal
from interverse.rollouts.policy import PolicyLike, as_policy, check_rows, one_thread
from interverse.rollouts.policy_world import check_world, policy_world
from interverse.scm import Outcome


@blames_types
def rollout(
    env: gym.Env[Any, Any] | str,
    policy: PolicyLike,
    *,
    seed: int | None = None,
    episode: int = 0,
    do: Mapping[str, Any] | None = None,
    max_steps: int | None = None,
) -> Episode:
    """Returns one episode of a policy in an environment.

    Args:
        env: an interverse environment (wrapped or not) or an id; a trained policy then brings the
            options of its world.
        policy: what acts; see `interverse.rollouts.policy.as_policy`. It sees observations with a
            leading axis of one.
        seed: the seed to reset with; 0 by default.
        episode: its number under that seed; `evaluate` plays the same episode at that address.
        do: an intervention to start under.
        max_steps: stop after so many actions even if the episode goes on.

    >>> episode = rollout("chemistry/chain-v1", "random", seed=3, max_steps=5)
    >>> len(episode), episode.actions.shape
    (5, (5,))
    """
    if max_steps is not None:
        check_whole(max_steps, "max_steps", 10**9, least=0)
    if seed is None and isinstance(policy, str) and policy == "random" and not episode:
        # Warns where random actions would be those of the last call again.
        given = {"do": do, "max_steps": max_steps}
        known = _LAST[0]() if _LAST and isinstance(_LAST[0], ref) else _LAST[0] if _LAST else None
        if known is not None and known is env and _LAST[1] == given:
            warnings.warn(
                "this is the last episode again, random actions and all: pass seed= or episode=",
                stacklevel=3,
            )
        _LAST[:] = [env if isinstance(env, str) else ref(env), given]
    seed = 0 if seed is None else seed
    owned = isinstance(env, str)
    if isinstance(env, str):
        env = make(env, **policy_world(policy).in_task(env).with_options({}))
    inner = world_env(env)
    driver = inner.driver
    started = driver.running[0] and not driver.steps[0]  # intervened on since the reset?
    made = [e for e in driver.log(0) if started and not e.at_reset and 0 not in e.reasons]
    if lost := ", ".join(dict.fromkeys(name for entry in made for name in entry.values)):
        warnings.warn(
            f"rollout resets the environment, and the intervention on {lost} is undone:"
            " pass do={...} to start under it",
            stacklevel=3,
        )
    try:
        check_world(policy, inner.world)
        actor = as_policy(policy, inner.world)
        # A policy's own noise has one number for both; `evaluate` puts them together alike.
        actor.reset(np.ones(1, dtype=bool), np.array([seed]) + (episode << 32))
        options: dict[str, Any] = {} if do is None else {"do": do}
        options |= {"episode": episode} if episode else {}
        observation, _ = env.reset(seed=seed, options=options or None)
        with one_thread(), Recorder(inner, inner.observe()) as recorder:
            ended = False
            while not ended and recorder.steps != max_steps:
                actions = to_numpy(actor(mapped(lambda part: to_numpy(part)[None], observation)))
                check_rows(actions, 1)
                observation, _, terminated, truncated, _ = env.step(actions[0])
                ended = terminated or truncated
            return recorder.episode()
    finally:
        if owned:
            env.close()


_LAST: list[Any] = []  # what the last rollout was of that named no seed


def world_env(env: gym.Env[Any, Any]) -> WorldEnv:
    """Returns the environment of interverse inside any wrappers, or raises."""
    inner = env.unwrapped
    if not isinstance(inner, WorldEnv):
        raise InvalidValueError(
            f"env is a {type(inner).__name__}",
            allowed="an environment of interverse, or an id",
            fix='Make it with iv.make("tutorial/slider-v1"), for instance',
        )
    return inner


@final
class Recorder:
    """Collects what happens in a single world, below any wrapper, from its reset on.

    observations[t] and values[t] are those that action t met: an intervention between two steps
    shows in them.
    """

    def __init__(self, env: WorldEnv, observation: Any, start: Snapshot | None = None) -> None:
        self._env = env
        self._start = b"" if start is None else start.to_bytes()
        self._observations = [observation]
        self._values = [dict(env.values)]
        self._actions: list[Any] = []
        self._rows: list[tuple[float, bool, bool]] = []
        self._infos: list[Mapping[str, Any]] = []
        self._seed = int(env.driver.seeds[0])
        self._episode = int(env.driver.episodes[0])

    def __enter__(self) -> Recorder:
        self._env.driver.listeners.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._env.driver.listeners.remove(self)

    @property
    def steps(self) -> int:
        """How many actions were recorded."""
        return len(self._actions)

    @property
    def ended(self) -> bool:
        """Whether the episode has terminated or was truncated."""
        return bool(self._rows and (self._rows[-1][1] or self._rows[-1][2]))

    def on_step(self, actions: Any, moment: Transition) -> None:
        """Records an action and what it gave."""
        self._actions.append(to_numpy(actions[0]))
        self._observations.append(first(moment.observation))
        ends = bool(moment.terminated[0]), bool(moment.truncated[0])
        self._rows.append((float(moment.reward[0]), *ends))
        self._values.append(dict(self._env.values))
        self._infos.append({name: value[0] for name, value in moment.info.items()})

    def on_intervention(self, outcome: Outcome) -> None:
        """Replaces the latest observation and values by those after an intervention."""
        self._observations[-1] = first(outcome.observation)
        self._values[-1] = dict(self._env.values)

    def episode(self) -> Episode:
        """Returns what was recorded."""
        driver = self._env.driver
        driver.check_engine()
        reward, terminated, truncated = zip(*self._rows, strict=True) if self._rows else ([],) * 3
        applied, refused = [], []
        for entry in driver.log(0):
            row = int(np.flatnonzero(entry.worlds == 0)[0])
            step = int(entry.steps[row])
            if 0 in entry.reasons:
                refused.append(Refusal(step, tuple(entry.values), entry.reasons[0]))
            else:
                values = {name: rows[row].tolist() for name, rows in entry.values.items()}
                applied.append(AppliedDo(step, values, entry.at_reset))
        space = self._env.action_space
        none = np.zeros((0, *(space.shape or ())), dtype=space.dtype)
        return Episode(
            id=driver.id,
            options=options_of(driver.id, driver.world),
            seed=self._seed,
            episode=self._episode,
            observations=_stacked(self._observations),
            actions=np.stack(self._actions) if self._actions else none,
            rewards=np.array(reward, dtype=np.float64),
            terminated=np.array(terminated, dtype=bool),
            truncated=np.array(truncated, dtype=bool),
            values=_stacked(self._values),
            info=_stacked(self._infos) if self._infos else {},
            interventions=tuple(applied),
            refusals=tuple(refused),
            start=self._start,
            columns=driver.world.info_columns if self._infos else {},
        )


def _stacked(items: list[Any]) -> Any:
    return mapped(lambda *parts: np.stack([to_numpy(part) for part in parts]), *items)


@final
class RecordEpisodes(gym.Wrapper[Any, Any, Any, Any]):
    """Records every episode of an environment, below any wrapper inside it, as it is played.

    An episode goes to the writer when it ends, or with the reset or the close that cuts it short.
    `gym.make(env.spec)` cannot make another one: a folder has one writer.

    Args:
        env: an environment of interverse, wrapped or not.
        writer: where episodes go; a path is a folder without episodes, so that a program that is
            run twice does not keep everything twice. An `EpisodeWriter` goes on with a folder.
    """

    def __init__(
        self, env: gym.Env[Any, Any], writer: EpisodeWriter | str | os.PathLike[str]
    ) -> None:
        super().__init__(env)
        given = isinstance(writer, EpisodeWriter)
        self.writer: EpisodeWriter = writer if given else EpisodeWriter(writer)  # type: ignore[assignment,arg-type]
        if not given and len(self.writer):
            raise InvalidValueError(
                f"{self.writer.folder} holds {len(self.writer)} episodes already",
                fix="Choose another folder, or pass EpisodeWriter(folder) to add to them",
            )
        self._inner = world_env(env)
        self._recorder: Recorder | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode and its record."""
        self._finish()
        seen, info = self.env.reset(seed=seed, options=options)
        start = None if options is None else options.get("snapshot")
        self._recorder = Recorder(self._inner, self._inner.observe(), start).__enter__()
        return seen, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Advances the environment by one action."""
        out = self.env.step(action)
        if self._recorder is not None and self._recorder.ended:
            self._finish()
        return out

    def close(self) -> None:
        """Writes what is pending and closes the environment."""
        self._finish()
        self.writer.close()
        self.env.close()

    def _finish(self) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.__exit__()
            if recorder.steps:
                self.writer.add(recorder.episode())
