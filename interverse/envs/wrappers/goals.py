"""Wrappers of goals and starts: achieved and desired goals, drawn goals, a starting state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import Noise, check_seed
from interverse.envs.single import WorldEnv
from interverse.envs.values import to_numpy
from interverse.scm.variable import SpaceName

_ATTEMPTS = 100  # draws of a goal: the default tower has room for one in ten
_FURTHER = 1_000_033  # between the numbers of these: more than anyone's own `draw`


def goals_of(env: Any, seen: gym.Space[Any]) -> gym.spaces.Dict:
    """Returns the space of observations with both goals; refuses a world without goals."""
    world = env.unwrapped.world
    if getattr(world, "goal_reward", None) is None:
        raise InvalidValueError(
            explain(
                f"{env} has no goals to relabel",
                allowed="worlds with goal_reward, such as trifinger",
            )
        )
    achieved, desired = world.goal_sizes
    return gym.spaces.Dict(
        {
            "observation": seen,
            "achieved_goal": gym.spaces.Box(-np.inf, np.inf, (achieved,), np.float64),
            "desired_goal": gym.spaces.Box(-np.inf, np.inf, (desired,), np.float64),
        }
    )


def goal_reward(world: Any, achieved: Any, desired: Any, *, alone: bool) -> NDArray[np.float64]:
    """Returns what goals earn, (n,); refuses where a step earns more, unless they count `alone`."""
    if not alone and (beyond := world.beyond_goals):
        raise InvalidValueError(
            explain(
                f"a step of this world earns by {beyond}, which goals alone do not tell",
                allowed="compute_reward where it gives what the step gave",
                fix="Make the world with sparse_reward=True or dense_reward_weights of 0 alone, or "
                "the wrapper with goal_rewards=True, so that steps earn what goals alone do",
            )
        )
    rows: NDArray[np.float64] = world.goal_reward(np.asarray(achieved), np.asarray(desired))
    return rows


def with_goals(seen: Any, info: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an observation with both goals."""
    return {
        "observation": seen,
        "achieved_goal": np.array(info["achieved_goal"]),
        "desired_goal": np.array(info["desired_goal"]),
    }


@final
class GoalDict(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Turns the observation into a dict of observation, achieved_goal and desired_goal.

    The world must put both goals into `info` and offer `goal_reward`, as the TriFinger worlds do.
    `goal_rewards`: whether steps earn what goals alone do, and no dense terms. Without it
    `compute_reward` refuses worlds with such terms, for it could not give what the step gave.

    >>> import interverse as iv
    >>> env = GoalDict(iv.make("trifinger/pushing-v1"))
    >>> sorted(env.reset(seed=0)[0])
    ['achieved_goal', 'desired_goal', 'observation']
    """

    def __init__(self, env: gym.Env[Any, Any], goal_rewards: bool = False) -> None:
        RecordConstructorArgs.__init__(self, goal_rewards=goal_rewards)
        gym.Wrapper.__init__(self, env)
        self._alone = goal_rewards
        self.observation_space = goals_of(env, env.observation_space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode."""
        seen, info = self.env.reset(seed=seed, options=options)
        return with_goals(seen, info), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Advances the world by one action."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        if self._alone:
            reward = float(self.compute_reward(info["achieved_goal"], info["desired_goal"]))
        return with_goals(seen, info), reward, terminated, truncated, info

    def compute_reward(
        self, achieved_goal: NDArray[Any], desired_goal: NDArray[Any], info: Any = None
    ) -> NDArray[np.float64] | np.float64:
        """Returns what achieving one when desiring the other earns, for one pair or many.

        Args:
            achieved_goal: (..., k).
            desired_goal: (..., k).
            info: not needed; Stable-Baselines3 passes it.
        """
        achieved, desired = np.atleast_2d(achieved_goal), np.atleast_2d(desired_goal)
        world: Any = self.env.unwrapped.world  # type: ignore[attr-defined]
        rows = goal_reward(world, achieved, desired, alone=self._alone)
        return rows[0] if np.ndim(achieved_goal) == 1 else rows


@final
class GoalDictVector(VectorWrapper):
    """Turns observations into dicts of observation, achieved_goal and desired_goal, (N, ...) each.

    >>> import interverse as iv
    >>> venv = GoalDictVector(iv.make_vec("trifinger/pushing-v1", num_envs=2))
    >>> venv.reset(seed=0)[0]["achieved_goal"].shape
    (2, 6)
    """

    def __init__(self, env: Any, goal_rewards: bool = False) -> None:
        super().__init__(env)
        self._alone = goal_rewards
        self.single_observation_space = goals_of(env, env.single_observation_space)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts episodes."""
        seen, info = self.env.reset(seed=seed, options=options)
        return with_goals(seen, info), info

    def step(self, actions: Any) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        """Advances every world by one action."""
        inner: Any = self.env.unwrapped
        fresh = inner.resets_next
        seen, reward, terminated, truncated, info = self.env.step(actions)
        told = info.get("final_info", info)  # what the actions led to, before any reset
        if self._alone:
            earned = self.compute_reward(told["achieved_goal"], told["desired_goal"])
            reward = np.where(fresh, 0.0, earned)
        if "final_obs" in info:
            last = info["final_obs"].copy()
            for i in np.flatnonzero(info["_final_obs"]).tolist():
                goals = {name: told[name][i] for name in ("achieved_goal", "desired_goal")}
                last[i] = with_goals(last[i], goals)
            info = {**info, "final_obs": last}
        return with_goals(seen, info), reward, terminated, truncated, info

    def compute_reward(
        self, achieved_goal: NDArray[Any], desired_goal: NDArray[Any], info: Any = None
    ) -> NDArray[np.float64]:
        """Returns what achieving one when desiring the other earns, (n,), for (n, k) goals."""
        world: Any = self.env.unwrapped.world  # type: ignore[attr-defined]
        return goal_reward(world, achieved_goal, desired_goal, alone=self._alone)


def sample_new_goal(
    env: Any, *, space: SpaceName | None = None, draw: int = 0
) -> dict[str, NDArray[Any]]:
    """Returns a goal as values for `do`; applies nothing.

    It is the first of up to 100 draws that the world would accept, else the last of them. It
    depends on the seed, the episode, the step, `draw` and what the world holds.

    Args:
        env: an environment of interverse, single or vector, wrapped or not, after a reset.
        space: where to draw from; None takes the environment's active space.
        draw: which of many goals of this moment.

    >>> import interverse as iv
    >>> env = iv.make("trifinger/pushing-v1")
    >>> _ = env.reset(seed=0)
    >>> goal = sample_new_goal(env, space="A")
    >>> sorted(env.do(goal).changed)[:2]
    ['goal_0/cartesian_position', 'goal_0/cylindrical_position']
    """
    driver = env.unwrapped.driver
    if not np.all(driver.running):
        raise InvalidValueError(explain("there is no episode yet", fix="Call reset() first"))
    noise = Noise(driver.seeds, driver.episodes, driver.steps)
    chosen = driver.world.options.space if space is None else space
    goal: dict[str, NDArray[Any]] = {}
    number, pending = check_seed(draw, name="draw"), np.arange(len(noise))
    for attempt in range(_ATTEMPTS):
        drawn = noise.take(pending).again(number + attempt * _FURTHER)
        rows = driver.world.sample_goal(pending, drawn, chosen)
        for name, values in rows.items():
            part = to_numpy(values, driver.world.variables[name].dtype)
            goal.setdefault(name, np.zeros((len(noise), *part.shape[1:]), part.dtype))
            goal[name][pending] = part
        asked = {name: values[pending] for name, values in goal.items()}
        pending = np.array(sorted(driver.rules.judged(asked, pending)), dtype=np.int64)
        if not len(pending):
            break
    single = isinstance(env.unwrapped, WorldEnv)
    return {name: values[0] if single else values for name, values in goal.items()}


class _KeepsStart:
    """The calls that both forms share; the driver applies the values at every reset."""

    unwrapped: Any

    @property
    def starting_state(self) -> Mapping[str, Any]:
        """The values in force."""
        return self.unwrapped.driver.starting_values

    def set_starting_state(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Starts new episodes with these values, and every later one; returns their beginning.

        They add to the start in force, as CausalWorld's do. If they are refused the old start stays
        in force, episodes begin from it, and the refusal is raised.
        """
        driver = self.unwrapped.driver
        before = driver.starting_values
        driver.starting_values = driver.world.graph.updated(before, values)
        try:
            return self.reset()  # type: ignore[attr-defined]
        except InvalidValueError:
            driver.starting_values = before
            self.reset()  # type: ignore[attr-defined]
            raise

    def reset_default_state(self) -> tuple[Any, dict[str, Any]]:
        """Forgets the starting state; returns the beginning of an episode without it."""
        self.unwrapped.driver.starting_values = {}
        return self.reset()  # type: ignore[attr-defined]


@final
class StartingState(_KeepsStart, gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Starts every episode with latched values, as if each reset had been given them.

    They are a `do` at reset, so episodes recorded under them replay. A `do` of the reset itself
    wins over them; a reset to a snapshot ignores them.

    >>> import interverse as iv
    >>> env = StartingState(iv.make("tutorial/slider-v1"))
    >>> seen, info = env.set_starting_state({"box/mass": 0.4})
    >>> seen, info = env.reset(seed=1)
    >>> float(env.unwrapped.values["box/mass"])
    0.4
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)


@final
class StartingStateVector(_KeepsStart, VectorWrapper):
    """The same for a vector environment: one value for all worlds, or one per world.

    Worlds that start anew by themselves start with the values, too.
    """
