"""From an id and options to a world; all that enters one, checked before it is touched.

An id and options make a world; `reset` takes options, episode numbers and selections of worlds, a
step takes actions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import clipped, to_numpy
from interverse.core.errors import (
    ActionError,
    InvalidValueError,
    UnknownNameError,
    check_whole,
    unknown,
)
from interverse.core.rng import check_seed
from interverse.scm import Do, as_intervention
from interverse.worlds import WORLDS
from interverse.worlds.world import Index, World, changed_options, parse_options

RESET_OPTIONS = {
    "do": "an intervention to start under",
    "episode": "which episode of the seed to play",
    "snapshot": "a saved moment to start from, with its own seed and episode",
}
VECTOR_RESET_OPTIONS = {**RESET_OPTIONS, "reset_mask": "which worlds to reset"}
_BESIDE_SNAPSHOT = {
    "do": "Reset to the snapshot, then call do",
    "episode": "Leave it out: a snapshot goes on with its own seed and episode",
}
_MOST_WORLDS = 1_000_000


def build_world(world_id: str, num_worlds: int, options: Mapping[str, Any]) -> World:
    """Returns N copies of a registered world, or raises naming what is wrong."""
    entry = WORLDS[world_id]
    check_whole(num_worlds, "num_envs", _MOST_WORLDS)
    kind: type[World] = entry.load()
    parsed = parse_options(kind.options_type, {**entry.options, **options})
    return kind(num_worlds=num_worlds, options=parsed)  # type: ignore[call-arg]


def options_of(world_id: str, world: World) -> dict[str, Any]:
    """Returns the options with which `make` builds a world like this from its id."""
    own, options = WORLDS[world_id].options, world.options
    given = {name: getattr(options, name) for name in own}
    return changed_options(options) | {n: v for n, v in given.items() if np.any(v != own[n])}


def check_render_mode(mode: object, allowed: Collection[str]) -> None:
    """Raises unless the mode is one of these, or None."""
    if mode is not None and mode not in allowed:
        raise UnknownNameError(unknown("render_mode", mode, allowed))


def check_reset_options(
    options: Mapping[str, Any] | None,
    allowed: Collection[str],
    variables: Collection[str] = (),
) -> Mapping[str, Any]:
    """Returns the reset options, or raises naming an unknown one, or one that a snapshot decides.

    Options named like one of `variables` are another way of writing a `do` on it.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise InvalidValueError(
            f"options is a {type(options).__name__}", allowed="a dict", fix="See reset"
        )
    for name in options:
        if name not in allowed and name not in variables:
            raise UnknownNameError(unknown("reset option", name, [*allowed, *variables]))
    if short := {name: value for name, value in options.items() if name in variables}:
        options = {name: value for name, value in options.items() if name not in short}
        do: Any = Do(short)
        if options.get("do") is not None:
            do = do | as_intervention(options["do"])
        options = {**options, "do": do}
    if "snapshot" in options:
        for name, fix in _BESIDE_SNAPSHOT.items():
            if name in options:
                raise InvalidValueError(f"reset got both a snapshot and a {name}", fix=fix)
    return options


_FEW = 8  # numbers
_SAMPLE = "env.action_space.sample() shows a valid one"


@final
class ActionChecker:
    """Checks actions for a space and a number of worlds; the usual case takes no detour."""

    def __init__(self, space: gym.Space[Any], num_worlds: int, *, clip: bool) -> None:
        self._space, self._clip = space, clip
        self._box = space if isinstance(space, gym.spaces.Box) else None
        self._shape = (num_worlds, *(space.shape or ()))
        few = num_worlds <= _FEW and self._box is not None
        ends = (np.ravel(getattr(space, name)).tolist() if few else [] for name in ("low", "high"))
        self._low, self._high = (end * num_worlds for end in ends)

    def __call__(self, actions: Any) -> Any:
        """Returns actions as (N, ...) in the space's type, or raises ActionError.

        A tensor stays a tensor on its device.
        """
        box, clip = self._box, self._clip
        real = type(actions) is np.ndarray and actions.dtype.kind == "f"
        if box is not None and real and actions.shape == self._shape:
            if clip and np.isfinite(actions).all():
                return clipped(actions, box.low, box.high)
            few, low, high = actions.size <= _FEW, box.low, box.high
            if self._within(actions) if few else ((actions >= low) & (actions <= high)).all():
                return actions
        tensor = hasattr(actions, "detach")
        array: Any = actions if tensor else _as_array(actions)
        if tuple(array.shape) != self._shape:
            told = f"actions have shape {tuple(array.shape)}"
            raise ActionError(told, allowed=f"{self._shape}", fix=_SAMPLE)
        if tensor:
            return self._tensor(array)
        return self._discrete(array) if box is None else self._in_box(array, box)

    def _within(self, actions: NDArray[Any]) -> bool:
        """Returns whether a few actions lie in their box: faster one by one."""
        for low, x, high in zip(self._low, actions.ravel().tolist(), self._high):  # noqa: B905
            if not low <= x <= high:
                return False
        return True

    def _tensor(self, tensor: Any) -> Any:
        """Returns a tensor of actions where it is; one answer is read back from its device."""
        if self._box is None:
            return tensor.new_tensor(self._discrete(_as_array(tensor.detach().cpu())))
        if not tensor.is_floating_point():
            _as_array(tensor.detach().cpu())  # raises for what is no number
            tensor = tensor.float()
        low, high = tensor.new_tensor(self._box.low), tensor.new_tensor(self._box.high)
        fits = tensor.isfinite() if self._clip else (tensor >= low) & (tensor <= high)
        if not bool(fits.all()):
            return self._in_box(tensor.detach().cpu().numpy(), self._box)  # raises, saying why
        return tensor.clamp(low, high) if self._clip else tensor

    def _in_box(self, array: NDArray[Any], box: gym.spaces.Box) -> NDArray[Any]:
        array = array if array.dtype.kind == "f" else array.astype(box.dtype)
        if not np.all(np.isfinite(array)):
            raise ActionError("actions hold NaN or infinity", allowed="finite numbers")
        if self._clip:
            return clipped(array, box.low, box.high)
        if np.any(array < box.low) or np.any(array > box.high):
            raise ActionError(
                f"actions reach from {array.min()} to {array.max()}",
                allowed=f"{box.low.min()} to {box.high.max()}",
                fix="Clip them to env.action_space",
            )
        return array

    def _discrete(self, array: NDArray[Any]) -> NDArray[Any]:
        space = self._space
        if array.dtype.kind not in "iu":
            told = f"actions have type {array.dtype}"
            raise ActionError(told, allowed="whole numbers", fix=_SAMPLE)
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
                fix=_SAMPLE,
            )
        return array.astype(np.int64)


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
