"""Wrappers of goals and starts: achieved and desired goals, drawn goals, a starting state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError
from interverse.core.rng import Noise, check_seed
from interverse.envs.single import WorldEnv
from interverse.envs.values import to_numpy
from interverse.envs.wrappers.forms import Rules, SingleForm, VectorForm
from interverse.scm.variable import SpaceName

_ATTEMPTS = 100  # draws of a goal: the default tower has room for one in ten
_FURTHER = 1_000_033  # between the numbers of these: more than anyone's own `draw`


class _Goals(Rules):
    last_of = ("achieved_goal", "desired_goal")

    def __init__(self, env: Any, goal_rewards: bool = False) -> None:
        super().__init__(env, goal_rewards=goal_rewards)
        self._alone, world = goal_rewards, self.unwrapped.world
        if getattr(world, "goal_reward", None) is None:
            raise InvalidValueError(
                f"{env} has no goals to relabel",
                allowed="worlds with goal_reward, such as trifinger",
            )
        goals = {
            name: gym.spaces.Box(-np.inf, np.inf, (size,), np.float64)
            for name, size in zip(self.last_of, world.goal_sizes, strict=True)
        }
        self.set_spaces(gym.spaces.Dict({"observation": self.seen_space, **goals}), None)

    def shown(self, seen: Any, told: Mapping[str, Any]) -> dict[str, Any]:
        """Returns an observation with both goals."""
        return {"observation": seen, **{name: np.array(told[name]) for name in self.last_of}}

    def earned(self, reward: Any, told: Mapping[str, Any], idle: Any) -> Any:
        """Returns what goals alone earn, if that is asked for."""
        if not self._alone:
            return reward
        earned = self.compute_reward(told["achieved_goal"], told["desired_goal"])
        return np.where(idle, 0.0, earned) if self.many else float(earned)

    def compute_reward(
        self, achieved_goal: NDArray[Any], desired_goal: NDArray[Any], info: Any = None
    ) -> Any:
        """Returns what achieving one when desiring the other earns, for one pair or many.

        It refuses where a step earns more, unless `goal_rewards` has it earn by goals alone.

        Args:
            achieved_goal: (..., k).
            desired_goal: (..., k).
            info: not needed; Stable-Baselines3 passes it.
        """
        world = self.unwrapped.world
        if not self._alone and (beyond := world.beyond_goals):
            raise InvalidValueError(
                f"a step of this world earns by {beyond}, which goals alone do not tell",
                allowed="compute_reward where it gives what the step gave",
                fix="Make the world with sparse_reward=True or dense_reward_weights of 0 "
                "alone, or the wrapper with goal_rewards=True, so that steps earn what goals "
                "alone do",
            )
        rows = world.goal_reward(np.atleast_2d(achieved_goal), np.atleast_2d(desired_goal))
        return rows[0] if np.ndim(achieved_goal) == 1 else rows


@final
class GoalDict(_Goals, SingleForm):
    """Turns the observation into a dict of observation, achieved_goal and desired_goal.

    The world must put both goals into `info` and offer `goal_reward`, as the TriFinger worlds do.
    `goal_rewards`: whether steps earn what goals alone do, and no dense terms. Without it
    `compute_reward` refuses worlds with such terms, for it could not give what the step gave.

    >>> import interverse as iv
    >>> env = GoalDict(iv.make("trifinger/pushing-v1"))
    >>> sorted(env.reset(seed=0)[0])
    ['achieved_goal', 'desired_goal', 'observation']
    """


@final
class GoalDictVector(_Goals, VectorForm):
    """Turns observations into dicts of observation, achieved_goal and desired_goal, (N, ...) each.

    >>> import interverse as iv
    >>> venv = GoalDictVector(iv.make_vec("trifinger/pushing-v1", num_envs=2))
    >>> venv.reset(seed=0)[0]["achieved_goal"].shape
    (2, 6)
    """


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
        raise InvalidValueError("there is no episode yet", fix="Call reset() first")
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


class _KeepsStart(Rules):
    """The driver applies the values at every reset."""

    reset: Any

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
            return self.reset()
        except InvalidValueError:
            driver.starting_values = before
            self.reset()
            raise

    def reset_default_state(self) -> tuple[Any, dict[str, Any]]:
        """Forgets the starting state; returns the beginning of an episode without it."""
        self.unwrapped.driver.starting_values = {}
        return self.reset()


@final
class StartingState(_KeepsStart, SingleForm):
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


@final
class StartingStateVector(_KeepsStart, VectorForm):
    """The same for a vector environment: one value for all worlds, or one per world.

    Worlds that start anew by themselves start with the values, too.
    """
