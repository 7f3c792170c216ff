"""Checks of actions, world selections and intervention values, before a world is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import clipped
from interverse.core.errors import (
    ActionError,
    InterventionError,
    InvalidValueError,
    explain,
    unknown,
)
from interverse.core.rng import check_seed
from interverse.envs.values import to_numpy
from interverse.scm.space import Space
from interverse.scm.variable import Variable
from interverse.worlds.world import Index

UNCHECKED = "Pass check=False to allow any value in its domain"


def check_actions(actions: object, space: gym.Space[Any], num_worlds: int, *, clip: bool) -> Any:
    """Returns the actions as (N, ...) in the space's type, or raises ActionError.

    A tensor stays a tensor on its device.
    """
    tensor = hasattr(actions, "detach")
    array: Any = actions if tensor else _as_array(actions, "actions", ActionError)
    wanted = (num_worlds, *(space.shape or ()))
    if tuple(array.shape) != wanted:
        raise ActionError(
            explain(
                f"actions have shape {tuple(array.shape)}", allowed=f"{wanted}", fix=_sample_hint()
            )
        )
    if tensor:
        return _check_tensor(array, space, clip=clip)
    if isinstance(space, gym.spaces.Box):
        return _check_box(array, space, clip=clip)
    return _check_discrete(array, space)


def _check_tensor(tensor: Any, space: gym.Space[Any], *, clip: bool) -> Any:
    """Returns a tensor of actions where it is; one answer is read back from its device."""
    if not isinstance(space, gym.spaces.Box):
        checked = _check_discrete(_as_array(tensor.detach().cpu(), "actions", ActionError), space)
        return tensor.new_tensor(checked)
    if not tensor.is_floating_point():
        _as_array(tensor.detach().cpu(), "actions", ActionError)  # raises for what is no number
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
        raise ActionError(explain("actions hold NaN or infinity", allowed="finite numbers"))
    if clip:
        return clipped(array, space.low, space.high)
    if np.any(array < space.low) or np.any(array > space.high):
        raise ActionError(
            explain(
                f"actions reach from {array.min()} to {array.max()}",
                allowed=f"{space.low.min()} to {space.high.max()}",
                fix="Clip them to env.action_space",
            )
        )
    return array


def _check_discrete(array: NDArray[Any], space: gym.Space[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "iu":
        raise ActionError(
            explain(f"actions have type {array.dtype}", allowed="whole numbers", fix=_sample_hint())
        )
    if isinstance(space, gym.spaces.Discrete):
        low, high = np.asarray(space.start), np.asarray(space.start + space.n - 1)
    elif isinstance(space, gym.spaces.MultiDiscrete):
        low, high = space.start, space.start + space.nvec - 1
    else:
        raise ActionError(explain(f"no check for a {type(space).__name__} action space"))
    if np.any(array < low) or np.any(array > high):
        raise ActionError(
            explain(
                f"actions reach from {array.min()} to {array.max()}",
                allowed=f"{low.tolist()} to {high.tolist()}",
                fix=_sample_hint(),
            )
        )
    return array.astype(np.int64)


def _sample_hint() -> str:
    return "env.action_space.sample() shows a valid one"


def _as_array(value: object, name: str, error: type[InvalidValueError]) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as problem:
        raise error(explain(f"{name} is no array: {problem}")) from problem
    if array.dtype.kind not in "biuf":
        raise error(explain(f"{name} has type {array.dtype}", allowed="numbers"))
    if array.dtype.kind == "b" and error is ActionError:
        raise error(explain(f"{name} has type bool", allowed="numbers"))
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
        explain(
            f"worlds is {array.tolist() if array.size < 9 else array.shape} of type {array.dtype}",
            allowed=f"a bool mask of shape ({num_worlds},) or distinct indices below {num_worlds}",
        )
    )


def check_episodes(given: int | Sequence[int], worlds: int) -> list[int]:
    """Returns one episode number per world, or raises."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return [check_seed(given, name="episode")] * worlds
    rows = np.asarray(given).ravel().tolist()
    if len(rows) != worlds:
        raise InvalidValueError(
            explain(f"episode has {len(rows)} entries", allowed=f"one, or one per world ({worlds})")
        )
    return [check_seed(row, name="episode") for row in rows]


def check_values(
    given: Mapping[str, Any], variables: Mapping[str, Variable], index: Index, num_worlds: int
) -> dict[str, NDArray[Any]]:
    """Returns (len(index), *shape) rows per variable, or raises InterventionError if malformed.

    Malformed: an unknown or read-only variable, a wrong shape or type, NaN.
    """
    out = {}
    for name, value in given.items():
        if name not in variables:
            fix = "See env.unwrapped.variables"
            raise InterventionError(unknown("variable", name, variables, fix=fix), [name])
        variable = variables[name]
        if variable.read_only:
            raise InterventionError(
                explain(f"{name} can be read but not set", allowed="variables not read_only"),
                [name],
            )
        array = _value_array(name, value, variable)
        out[name] = _rows(array, variable, index, num_worlds)
    return out


def _value_array(name: str, value: object, variable: Variable) -> NDArray[Any]:
    try:
        array = _as_array(value, name, InterventionError)
    except InterventionError as error:
        raise InterventionError(error.reason, [name]) from error
    if not np.all(np.isfinite(array)):
        raise InterventionError(
            explain(f"{name} holds NaN or infinity", allowed="finite numbers"), [name]
        )
    with np.errstate(invalid="ignore"):  # a number beyond all whole ones is told below
        cast = array.astype(variable.dtype)
    if np.any(cast != array):
        raise InterventionError(
            explain(f"{name} is {array.tolist()}", allowed="whole numbers"), [name]
        )
    return _at_bounds(array, cast, variable) if array.dtype == np.float32 else cast


def _at_bounds(array: NDArray[Any], cast: NDArray[Any], variable: Variable) -> NDArray[Any]:
    """Returns float32 values in float64; what is a bound as float32 has it is the bound.

    The float32 next to .4 lies above it, so a batch from A would lose the world at its end.
    """
    for space in (variable.domain, variable.space_a, variable.space_b):
        if (
            isinstance(space, Space)
            and array.shape[-len(space.shape) or array.ndim :] == space.shape
        ):
            for bound in (space.low, space.high):
                cast = np.where(array == np.asarray(bound, np.float32), bound, cast)
    return cast


def _rows(array: NDArray[Any], variable: Variable, index: Index, num_worlds: int) -> NDArray[Any]:
    if variable.cube and array.shape == (num_worlds,) == variable.shape and np.ptp(array):
        raise InterventionError(
            explain(
                f"{variable.name} is {array.tolist()} in {num_worlds} worlds: one box, or edges of"
                " cubes",
                allowed=f"({num_worlds}, {num_worlds}) numbers, a row for each world",
            ),
            [variable.name],
        )
    if array.shape == variable.shape or (variable.cube and array.ndim == 0):
        return np.array(np.broadcast_to(array, (len(index), *variable.shape)))
    if array.shape == (num_worlds, *variable.shape):
        return array[index]
    either = f"{variable.shape} or ({num_worlds}, ...) of such"
    raise InterventionError(
        explain(f"{variable.name} has shape {array.shape}", allowed=either), [variable.name]
    )


def outside(
    rows: NDArray[Any], variable: Variable, space_name: Any, *, check: bool
) -> dict[int, str]:
    """Returns, for each row that lies outside what is allowed, the text that says so."""
    beyond = ~variable.domain.inside(rows)
    out = {row: _text(rows, row, variable, variable.domain) for row in _where(beyond)}
    active = variable.region(space_name) if check else None
    if active is not None:
        for row in _where(~active.inside(rows) & ~beyond):
            out[row] = _text(rows, row, variable, active, f"space {space_name}")
    return out


def _where(mask: NDArray[np.bool_]) -> list[int]:
    return np.flatnonzero(mask).tolist()


def _text(rows: NDArray[Any], row: int, variable: Variable, space: Space, label: str = "") -> str:
    low, high = (np.asarray(bound) for bound in (space.low, space.high))
    if low.ndim > len(variable.shape):  # bounds that depend on each world's other values
        low, high = low[row], high[row]
    bounds = f"{low.tolist()} to {high.tolist()} {variable.unit}".rstrip()
    problem = f"{variable.name} is {np.round(rows[row], 9).tolist()}"
    allowed = f"{label or 'its domain'}, {bounds} {space.rule}".rstrip()
    return explain(problem, allowed=allowed, fix=UNCHECKED if label else "")
