"""Stable-Baselines3 on interverse: a native `VecEnv`, export of what was trained, checkpoints.

A checkpoint holds weights, optimisers, counters, every random state, the replay buffer and the
worlds themselves, as tensors and JSON: nothing is pickled, and a run goes on as if it had never
stopped.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, cast, final

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from interverse.actors.curriculum import Curriculum
from interverse.actors.wrappers import attach_curriculum
from interverse.core.errors import FileFormatError, InvalidValueError, missing_extra
from interverse.core.files.checkpoints import Checkpoint
from interverse.core.rng import region_seed
from interverse.envs import Snapshot, make_vec
from interverse.envs.values import to_numpy
from interverse.envs.wrappers import GoalDictVector
from interverse.rollouts.exported import Card, ExportedPolicy

try:
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecEnv

    from interverse.agents.training import join, split
except ImportError as error:
    raise missing_extra("stable-baselines3", "rl") from error

_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num")
_LOOSE = ("log_ent_coef",)  # what SB3 trains outside its state dicts: SAC's entropy coefficient
_BUFFER = (
    *("observations", "next_observations", "actions", "rewards", "dones", "timeouts"),
    *("ep_start", "ep_length"),  # of each transition in a hindsight buffer
)


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


def checkpoint(model: BaseAlgorithm, env: WorldVecEnv, until: int | None) -> Checkpoint:
    """Returns all that the rest of a run depends on.

    Args:
        model: what learns.
        env: its worlds.
        until: the step of the next regular checkpoint, where this one stands in between.
    """
    held: Any = model
    arrays: dict[str, Any] = {
        "worlds": np.frombuffer(env.venv.unwrapped.snapshot().to_bytes(), np.uint8),
        "last_obs": held._last_obs,
        "last_episode_starts": held._last_episode_starts,
        "returns": env._returns,
        "lengths": env._lengths,
        "episodes": np.array([[e["r"], e["l"]] for e in held.ep_info_buffer or ()]),
        "curriculum": {} if env.hook is None else env.hook.save(),
    }
    if (buffer := getattr(held, "replay_buffer", None)) is not None:
        rows = slice(buffer.buffer_size if buffer.full else buffer.pos)
        arrays["buffer"] = _rows(_buffered(buffer), rows)
        arrays["position"] = np.array([buffer.pos, buffer.full], dtype=np.int64)
        if hasattr(buffer, "_current_ep_start"):
            arrays["current"] = buffer._current_ep_start
    tree = {
        "model": model.get_parameters(),
        "loose": {name: getattr(model, name) for name in _LOOSE if _is_tensor(model, name)},
        "random": torch.get_rng_state(),
        "array": arrays,
    }
    tensors, plain = split(tree)
    state: Any = np.random.get_state()  # noqa: NPY002
    kind, keys, position, has_gauss, cached = state
    version, internal, gauss = random.getstate()
    record = {
        "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
        "plain": plain,
        "random": {
            "numpy": [kind, keys.tolist(), position, has_gauss, cached],
            "python": [version, list(internal), gauss],
            "space": model.action_space.np_random.bit_generator.state,
        },
        "until": until,
    }
    return Checkpoint(step=model.num_timesteps, record=record, tensors=tensors)


def restore(model: BaseAlgorithm, env: WorldVecEnv, held: Checkpoint) -> int | None:
    """Puts a checkpoint into a freshly made model and its worlds; returns its `until`."""
    record, learner = held.record, cast(Any, model)
    try:
        tree = join(record["plain"], held.tensors)
        arrays = _numpy(tree["array"])
        for name in _LOOSE:
            if _is_tensor(model, name):
                getattr(model, name).data.copy_(tree["loose"][name])  # its optimiser holds it
        model.set_parameters(tree["model"], exact_match=True)
        env.reset()
        env.venv.unwrapped.restore(Snapshot.from_bytes(arrays["worlds"].tobytes()))
        learner._last_obs = arrays["last_obs"]
        learner._last_episode_starts = arrays["last_episode_starts"]
        env._returns[:], env._lengths[:] = arrays["returns"], arrays["lengths"]
        # Puts back the returns and lengths of recent episodes, whose means SB3 logs.
        window = learner._stats_window_size
        recent = ({"r": float(r), "l": int(n)} for r, n in arrays["episodes"].reshape(-1, 2))
        learner.ep_info_buffer = deque(recent, window)
        learner.ep_success_buffer = deque(maxlen=window)
        if "buffer" in arrays:
            buffer = learner.replay_buffer
            buffer.pos, buffer.full = int(arrays["position"][0]), bool(arrays["position"][1])
            _fill(_buffered(buffer), arrays["buffer"])
            if "current" in arrays:
                buffer._current_ep_start = arrays["current"]
        if env.hook is not None:
            env.hook.load(arrays["curriculum"])
        model.__dict__.update(record["counters"])
        torch.set_rng_state(tree["random"])
        kind, keys, position, has_gauss, cached = record["random"]["numpy"]
        state = (kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached)
        np.random.set_state(state)  # noqa: NPY002
        version, internal, gauss = record["random"]["python"]
        random.setstate((version, tuple(internal), gauss))
        model.action_space.np_random.bit_generator.state = record["random"]["space"]
    except KeyError as error:
        raise FileFormatError(
            f"the run's checkpoint is torn: {error} is missing",
            fix="Delete the folder to start the run afresh",
        ) from error
    until = record.get("until")
    return until if isinstance(until, int) else None


def _is_tensor(model: BaseAlgorithm, name: str) -> bool:
    return isinstance(getattr(model, name, None), torch.Tensor)


def _buffered(buffer: Any) -> dict[str, Any]:
    """Returns the arrays of a replay buffer, or dicts of them, a row for each transition."""
    return {name: getattr(buffer, name) for name in _BUFFER if hasattr(buffer, name)}


def _rows(tree: Any, rows: slice) -> Any:
    if isinstance(tree, Mapping):
        return {name: _rows(part, rows) for name, part in tree.items()}
    return tree[rows]


def _numpy(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {name: _numpy(part) for name, part in tree.items()}
    return tree.numpy()


def _fill(tree: Any, saved: Any) -> None:
    """Writes saved rows over the first ones."""
    if isinstance(tree, Mapping):
        for name, part in tree.items():
            _fill(part, saved[name])
    else:
        tree[: len(saved)] = saved
