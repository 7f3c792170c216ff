"""Checks of actions, of episode numbers and of selections of worlds, before a world is touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import clipped
from interverse.core.errors import ActionError, InvalidValueError
from interverse.core.rng import check_seed
from interverse.envs.values import to_numpy
from interverse.worlds.world import Index


def check_actions(actions: object, space: gym.Space[Any], num_worlds: int, *, clip: bool) -> Any:
    """Returns the actions as (N, ...) in the space's type, or raises ActionError.

    A tensor stays a tensor on its device.
    """
    tensor = hasattr(actions, "detach")
    array: Any = actions if tensor else _as_array(actions)
    wanted = (num_worlds, *(space.shape or ()))
    if tuple(array.shape) != wanted:
        raise ActionError(
            f"actions have shape {tuple(array.shape)}", allowed=f"{wanted}", fix=_sample_hint()
        )
    if tensor:
        return _check_tensor(array, space, clip=clip)
    if isinstance(space, gym.spaces.Box):
        return _check_box(array, space, clip=clip)
    return _check_discrete(array, space)


def _check_tensor(tensor: Any, space: gym.Space[Any], *, clip: bool) -> Any:
    """Returns a tensor of actions where it is; one answer is read back from its device."""
    if not isinstance(space, gym.spaces.Box):
        checked = _check_discrete(_as_array(tensor.detach().cpu()), space)
        return tensor.new_tensor(checked)
    if not tensor.is_floating_point():
        _as_array(tensor.detach().cpu())  # raises for what is no number
        tensor = tensor.float()
    low, high = tensor.new_tensor(space.low), tensor.new_tensor(space.high)
    fits = tensor.isfinite() if clip else (tensor >= low) & (tensor <= high)
    if not bool(fits.all()):
        return _check_box(tensor.detach().cpu().numpy(), space, clip=clip)  # raises, saying why
    return tensor.clamp(low, high) if clip else tensor


def _check_box(array: NDArray[Any], space: gym.spaces.Box, *, clip: bool) -> NDArray[Any]:
    if (
        not clip
        and array.dtype.kind == "f"
        and ((array >= space.low) & (array <= space.high)).all()
    ):
        return array  # the usual case: each further question costs as much as a small physics step
    if array.dtype.kind != "f":
        array = array.astype(space.dtype)
    if not np.all(np.isfinite(array)):
        raise ActionError("actions hold NaN or infinity", allowed="finite numbers")
    if clip:
        return clipped(array, space.low, space.high)
    if np.any(array < space.low) or np.any(array > space.high):
        raise ActionError(
            f"actions reach from {array.min()} to {array.max()}",
            allowed=f"{space.low.min()} to {space.high.max()}",
            fix="Clip them to env.action_space",
        )
    return array


def _check_discrete(array: NDArray[Any], space: gym.Space[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "iu":
        raise ActionError(
            f"actions have type {array.dtype}", allowed="whole numbers", fix=_sample_hint()
        )
    if isinstance(space, gym.spaces.Discrete):
        low, high = np.asarray(space.start), np.asarray(space.start + space.n - 1)
    elif isinstance(space, gym.spaces.MultiDiscrete):
        low, high = space.start, space.start + space.nvec - 1
    else:
        raise ActionError(f"no check for a {type(space).__name__} action space")
    if np.any(array < low) or np.any(array > high):
        raise ActionError(
            f"actions reach from {array.min()} to {array.max()}",
            allowed=f"{low.tolist()} to {high.tolist()}",
            fix=_sample_hint(),
        )
    return array.astype(np.int64)


def _sample_hint() -> str:
    return "env.action_space.sample() shows a valid one"


def _as_array(value: object) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as problem:
        raise ActionError(f"actions is no array: {problem}") from problem
    if array.dtype.kind not in "iuf":
        told = "bool" if array.dtype.kind == "b" else array.dtype
        raise ActionError(f"actions has type {told}", allowed="numbers")
    return array


def select_worlds(worlds: object, num_worlds: int) -> Index:
    """Returns the indices a mask or index list selects; None selects all, an empty list none."""
    everyone = np.arange(num_worlds)
    if worlds is None:
        return everyone
    array = to_numpy(worlds)
    if array.dtype.kind == "b" and array.shape == (num_worlds,):
        return everyone[array]
    if array.shape == (0,):
        return everyone[:0]
    whole = array.dtype.kind in "iu" and array.ndim == 1 and len(set(array.tolist())) == len(array)
    if whole and np.all((array >= 0) & (array < num_worlds)):
        return array.astype(np.int64)
    raise InvalidValueError(
        f"worlds is {array.tolist() if array.size < 9 else array.shape} of type {array.dtype}",
        allowed=f"a bool mask of shape ({num_worlds},) or distinct indices below {num_worlds}",
    )


def check_episodes(given: int | Sequence[int], worlds: int) -> list[int]:
    """Returns one episode number per world, or raises."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return [check_seed(given, name="episode")] * worlds
    rows = np.asarray(given).ravel().tolist()
    if len(rows) != worlds:
        raise InvalidValueError(
            f"episode has {len(rows)} entries", allowed=f"one, or one per world ({worlds})"
        )
    return [check_seed(row, name="episode") for row in rows]
