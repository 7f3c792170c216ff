"""Checkpoints of a training with Stable-Baselines3: it goes on as if it had never stopped.

Weights, optimisers, counters, every random state, the replay buffer and the worlds themselves, as
the tensors and the record of a checkpoint: nothing is pickled.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from interverse.agents.sb3 import WorldVecEnv
from interverse.agents.tensor_tree import join, split
from interverse.core.errors import FileFormatError
from interverse.core.files.checkpoints import Checkpoint
from interverse.envs import Snapshot

_BUFFER = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
_HINDSIGHT = ("ep_start", "ep_length")  # of each transition in a hindsight buffer
_LOOSE, _ARRAY, _WORLDS = "loose|", "array|", "worlds"  # in the names of tensors
_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num")


def checkpoint(model: BaseAlgorithm, env: WorldVecEnv, until: int | None) -> Checkpoint:
    """Returns all that the rest of a run depends on.

    Args:
        model: what learns.
        env: its worlds.
        until: the step of the next regular checkpoint, where this one stands in between.
    """
    tensors, plain = split(model.get_parameters())
    tensors |= {f"{_LOOSE}{k}": v.detach().clone() for k, v in _loose_tensors(model).items()}
    tensors["rng/torch"] = torch.get_rng_state()
    arrays = {**_arrays(model, env), _WORLDS: np.frombuffer(_worlds(env).to_bytes(), np.uint8)}
    tensors |= {_ARRAY + name: torch.tensor(np.asarray(rows)) for name, rows in arrays.items()}
    counters = {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)}
    state: Any = np.random.get_state()  # noqa: NPY002
    kind, keys, position, has_gauss, cached = state
    version, internal, gauss = random.getstate()
    record = {
        "counters": counters,
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
    tensors, state = dict(held.tensors), held.record
    arrays = {name: tensors.pop(name) for name in tuple(tensors) if name.startswith(_ARRAY)}
    rows = {name.removeprefix(_ARRAY): part.numpy() for name, part in arrays.items()}
    try:
        rng = tensors.pop("rng/torch")
        for name, tensor in _loose_tensors(model).items():
            tensor.data.copy_(tensors.pop(_LOOSE + name))  # in place: its optimiser holds it
        model.set_parameters(join(state["plain"], tensors), exact_match=True)
        env.reset()
        env.venv.unwrapped.restore(Snapshot.from_bytes(rows.pop(_WORLDS).tobytes()))
        _restore_arrays(model, env, rows)
        model.__dict__.update(state["counters"])
        torch.set_rng_state(rng)
        _restore_random(model, state["random"])
    except KeyError as error:
        raise FileFormatError(
            f"the run's checkpoint is torn: {error} is missing",
            fix="Delete the folder to start the run afresh",
        ) from error
    until = state.get("until")
    return until if isinstance(until, int) else None


def _worlds(env: WorldVecEnv) -> Snapshot:
    found: Snapshot = env.venv.unwrapped.snapshot()
    return found


def _loose_tensors(model: Any) -> dict[str, torch.Tensor]:
    """Returns what SB3 trains outside its state dicts: SAC's entropy coefficient."""
    names = ("log_ent_coef",)
    found = {name: getattr(model, name, None) for name in names}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def _arrays(model: Any, env: WorldVecEnv) -> dict[str, np.ndarray]:
    out = {
        "last_episode_starts": model._last_episode_starts,
        "returns": env._returns,
        "lengths": env._lengths,
        "episodes": np.array([[e["r"], e["l"]] for e in model.ep_info_buffer or ()]),
    }
    out |= dict(_leaves("last_obs", model._last_obs))
    buffer = getattr(model, "replay_buffer", None)
    if buffer is not None:
        rows = buffer.buffer_size if buffer.full else buffer.pos
        out["buffer/position"] = np.array([buffer.pos, buffer.full], dtype=np.int64)
        out |= {name: array[:rows] for name, array in _buffered(buffer).items()}
        if hasattr(buffer, "_current_ep_start"):
            out["buffer/current"] = buffer._current_ep_start
    if env.hook is not None:
        out |= {f"curriculum/{k}": v for k, v in env.hook.save().items()}
    return out


def _leaves(name: str, tree: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the arrays of an observation, flat or a dict, by path."""
    if not isinstance(tree, Mapping):
        yield name, tree
        return
    for key, part in tree.items():
        yield from _leaves(f"{name}/{key}", part)


def _buffered(buffer: Any) -> dict[str, np.ndarray]:
    """Returns the arrays of a replay buffer, a row for each transition."""
    names = [*_BUFFER, *(name for name in _HINDSIGHT if hasattr(buffer, name))]
    return {
        path: array
        for name in names
        for path, array in _leaves(f"buffer/{name}", getattr(buffer, name))
    }


def _restore_arrays(model: Any, env: WorldVecEnv, arrays: Mapping[str, np.ndarray]) -> None:
    prefix = "last_obs/"
    parts = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
    model._last_obs = parts or arrays["last_obs"]
    model._last_episode_starts = arrays["last_episode_starts"]
    env._returns[:], env._lengths[:] = arrays["returns"], arrays["lengths"]
    # Puts back the returns and lengths of recent episodes, whose means SB3 logs.
    rows = arrays["episodes"]
    window = model._stats_window_size
    model.ep_info_buffer, model.ep_success_buffer = deque(maxlen=window), deque(maxlen=window)
    model.ep_info_buffer.extend({"r": float(r), "l": int(n)} for r, n in rows.reshape(-1, 2))
    if "buffer/position" in arrays:
        buffer = model.replay_buffer
        position, full = arrays["buffer/position"].tolist()
        buffer.pos, buffer.full = position, bool(full)
        for name, held in _buffered(buffer).items():
            held[: len(arrays[name])] = arrays[name]
        if "buffer/current" in arrays:
            buffer._current_ep_start = arrays["buffer/current"]
    if env.hook is not None:
        prefix = "curriculum/"
        memory = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        env.hook.load(memory)


def _restore_random(model: Any, states: Mapping[str, Any]) -> None:
    kind, keys, position, has_gauss, cached = states["numpy"]
    restored = (kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached)
    np.random.set_state(restored)  # noqa: NPY002
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    model.action_space.np_random.bit_generator.state = states["space"]
