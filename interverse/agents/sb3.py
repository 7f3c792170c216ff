"""Stable-Baselines3 on interverse: a native `VecEnv`, and the export of what was trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from interverse.actors.curriculum import Curriculum
from interverse.actors.wrappers import attach_curriculum
from interverse.core.errors import InvalidValueError, missing_extra
from interverse.core.rng import region_seed
from interverse.envs import make_vec
from interverse.envs.values import to_numpy
from interverse.envs.wrappers import GoalDictVector
from interverse.rollouts.exported import Card, ExportedPolicy

try:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise missing_extra("stable-baselines3", "rl") from error


@final
class WorldVecEnv(VecEnv):
    """N worlds as SB3 wants them: one process, one batch, reset at once when an episode ends.

    With `goals`, observations are dicts with the achieved and the desired goal, and rewards are
    those of the goals alone: what hindsight replay can work out again for another goal.
    """

    def __init__(
        self,
        task: str,
        num_envs: int,
        curriculum: Curriculum | None = None,
        *,
        goals: bool = False,
        **options: Any,
    ) -> None:
        inner = make_vec(task, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options)
        self.venv: Any = GoalDictVector(inner, goal_rewards=True) if goals else inner
        self.goals = goals
        self.hook = None if curriculum is None else attach_curriculum(inner, curriculum)
        self._seed: int | None = None
        self._actions: Any = None
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, dtype=np.int64)
        spaces = self.venv.single_observation_space, self.venv.single_action_space
        super().__init__(num_envs, *spaces)

    def reset(self) -> Any:
        """Starts every world, with the seeds of `seed` where it was called."""
        observation, _ = self.venv.reset(seed=self._seed)
        self._seed = None
        self._returns[:], self._lengths[:] = 0.0, 0
        return _host(observation)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Sets the seeds of the next reset: a row of those that training has to itself.

        So `PPO(..., seed=0)` learns from no episode that `evaluate(seed=0)` plays.
        """
        self._seed = None if seed is None else region_seed("training", seed)
        return [None if self._seed is None else self._seed + i for i in range(self.num_envs)]

    def step_async(self, actions: Any) -> None:
        """Keeps the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Advances every world; `terminal_observation` is what an ended one last saw.

        An ended world's `info["episode"]` holds its return and length, which SB3 logs.
        """
        observation, reward, terminated, truncated, info = self.venv.step(self._actions)
        terminated, truncated = to_numpy(terminated), to_numpy(truncated)
        done = terminated | truncated
        reward = to_numpy(reward)
        self._returns += reward
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(done).tolist():
            infos[i]["terminal_observation"] = _host(info["final_obs"][i])
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
            infos[i]["episode"] = {"r": float(self._returns[i]), "l": int(self._lengths[i])}
            self._returns[i], self._lengths[i] = 0.0, 0
        return _host(observation), reward.astype(np.float32), done, infos

    def close(self) -> None:
        """Releases the worlds."""
        self.venv.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Returns an attribute, once per asked world."""
        return [getattr(self.venv, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuses: worlds share one object."""
        raise InvalidValueError("worlds of a batch share their attributes", fix="Use do")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """Calls a method of the vector environment once; the answer stands for every world."""
        answer = getattr(self.venv, method_name)(*args, **kwargs)
        return [answer] * len(list(self._get_indices(indices)))

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Any = None
    ) -> list[bool]:
        """Returns False: there are no wrappers inside a batch."""
        return [False] * len(list(self._get_indices(indices)))


def _host(tree: Any) -> Any:
    """Returns an observation as NumPy arrays, which SB3 wants; those that are stay as they are."""
    if isinstance(tree, dict):
        return {name: _host(value) for name, value in tree.items()}
    return tree if isinstance(tree, np.ndarray) else to_numpy(tree)


def export(model: BaseAlgorithm, trained: dict[str, Any]) -> ExportedPolicy:
    """Returns the deterministic actor of a PPO, SAC or TD3 model with an MLP policy.

    A policy on goal dicts sees their parts side by side, in the order that its card names.
    """
    layers, squash = _actor_layers(model)
    linear = [layer for layer in layers if isinstance(layer, torch.nn.Linear)]
    tanh = any(isinstance(layer, torch.nn.Tanh) for layer in layers[:-1])
    width = linear[0].in_features
    weights = {"obs.mean": torch.zeros(width), "obs.std": torch.ones(width)}
    for i, layer in enumerate(linear):
        weights[f"{i}.weight"] = layer.weight.detach().clone().cpu()
        weights[f"{i}.bias"] = layer.bias.detach().clone().cpu()
    space: Any = model.action_space
    seen = model.observation_space
    card = Card(
        layers=len(linear),
        activation="tanh" if tanh else "relu",
        squash=squash,
        low=space.low.tolist(),
        high=space.high.tolist(),
        trained=trained,
        inputs=list(seen.spaces) if isinstance(seen, gym.spaces.Dict) else [],
    )
    return ExportedPolicy(card, weights)


def _actor_layers(model: BaseAlgorithm) -> tuple[list[Any], bool]:
    policy: Any = model.policy
    if hasattr(policy, "action_net"):  # on-policy
        return [*policy.mlp_extractor.policy_net, policy.action_net], False
    actor = policy.actor
    if hasattr(actor, "latent_pi"):  # SAC
        return [*actor.latent_pi, actor.mu], True
    layers = [layer for layer in actor.mu if not isinstance(layer, torch.nn.Tanh)]  # TD3
    return layers, True
