"""From an id and options to a world; all that enters one, checked before it is touched.

An id and options make a world; `reset` takes options, episode numbers and selections of worlds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from interverse.core.arrays import to_numpy
from interverse.core.errors import (
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
