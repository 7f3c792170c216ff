"""The original benchmark's file layout, out and in.

One group per episode, "0" to "E-1", each with obs and next_obs float32 (T, 3, 50, 50) in [0, 1],
action int64 (T,), reward float64 (T,) and target float32 (3, 50, 50); nothing is compressed. The
original's reader takes groups in the order of their names as text ("0", "1", "10", "100", ...);
here episodes are in the order of their numbers unless asked otherwise.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.core.files.hdf5 import new_hdf5
from interverse.core.rng import Noise
from interverse.data.dataset import Dataset, Header, opened, write_dataset, write_part
from interverse.data.generate import Collect, header_of
from interverse.envs.build import build_world
from interverse.sim.raster import CELL, GRID

Order = Literal["number", "text"]
_EPISODES_AT_ONCE = 64
_UNLIKELY = 1e-9
_MEMBERS = ("obs", "action", "next_obs", "reward", "target")


def export_original(data: Dataset, path: str | os.PathLike[str]) -> Path:
    """Writes a data set in the original's layout (60 kB a transition); returns the path."""
    target = Path(path)
    with new_hdf5(target) as file:
        for start in range(0, len(data), _EPISODES_AT_ONCE):
            rows = np.arange(start, min(start + _EPISODES_AT_ONCE, len(data)))
            frames, goals = data.images(rows), data.target_images(rows)
            for row, episode in enumerate(rows.tolist()):
                seen = _to_float(frames[row])
                group = file.create_group(str(episode))
                group["obs"], group["next_obs"] = seen[:-1], seen[1:]
                group["action"] = data.actions[episode]
                group["reward"] = data.rewards[episode]
                group["target"] = _to_float(goals[row])
    return target


def import_original(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    id: str,
    order: Order = "number",
    **options: Any,
) -> Path:
    """Reads a file of the original's layout into a data set with stored pixels; returns its path.

    The file holds neither states nor seeds: `states` and `values` of the data set are empty, and
    its seeds are -1. Nor does it name its world: one whose actions, objects or looks it cannot have
    raises.

    Args:
        source: the original's file.
        out: the data set to write.
        id: the world it was made in; `header.graph` and `header.palette` come from it.
        order: "number", or "text" as the original's reader has it.
        **options: options of that world.
    """
    if order not in ("number", "text"):
        raise InvalidValueError(f"order is {order!r}", allowed="number, text")
    with opened(Path(source), "the original's layout, one group per episode") as file:
        names = sorted(file, key=str if order == "text" else int)
        if not names:
            raise ValueError("it has no episodes")
        steps = len(file[names[0]]["action"])
        config = Collect(id=id, out=Path(out), episodes=len(names), steps=steps, options=options)
        told: dict[str, Any] = {"images": True, "targets": True, "seed": -1, "source": "imported"}
        header = replace(header_of(config), **told)
        parts = config.out.with_name(f".{config.out.name}.import.parts")
        shutil.rmtree(parts, ignore_errors=True)
        files, highest = [], 0
        try:
            for start in range(0, len(names), _EPISODES_AT_ONCE):
                files.append(parts / f"{start:09d}.h5")
                part = _read(file, names[start : start + _EPISODES_AT_ONCE], header, start)
                highest = max(highest, int(part["actions"].max()))
                _check_world(config, part["actions"], part["images"])
                write_part(files[-1], part)
            # Random play, which these files hold, leaves none of the last actions out for long.
            chance = ((highest + 1) / header.actions) ** (len(names) * header.steps)
            if chance < _UNLIKELY:
                wrong = f"its actions end at {highest}, and there are {header.actions}"
                raise _other_world(config, wrong)
            write_dataset(config.out, header, files)
        finally:
            shutil.rmtree(parts, ignore_errors=True)
    return config.out


def _check_world(config: Collect, actions: NDArray[np.int64], images: NDArray[np.uint8]) -> None:
    """Raises where episodes cannot be of the world they are said to be of.

    Blocks move and keep their colours; substances change colour and, in most modes, stay.
    """
    world = build_world(config.id, 1, config.options)
    zero = np.zeros(1, dtype=np.int64)
    world.reset(zero, Noise(zero, zero, zero), {})
    count = int(world.action_space.n)  # type: ignore[attr-defined]
    present = np.asarray(images.any(-1))  # (E, T + 1, 50, 50)
    moves = bool((present != present[:, :1]).any())
    totals = images.sum((2, 3), dtype=np.int64)  # of each colour channel: moving changes none
    paints = bool((totals != totals[:, :1]).any())
    drawn = int(_occupied(np.asarray(world.observe()["image"].any(-1)))[0])
    held = sorted(set(_occupied(present[:, 0]).tolist()))
    wrong = ""
    if actions.min() < 0 or actions.max() >= count:
        wrong = f"it holds actions from {actions.min()} to {actions.max()}, and there are {count}"
    elif held != [drawn]:
        shown = ", ".join(map(str, held))
        wrong = f"its first pictures show {shown} objects, and there are {drawn}"
    elif config.id.startswith("blocks/") and paints:
        wrong = "its objects change colour, as in chemistry"
    elif config.id.startswith("chemistry/") and moves and not paints:
        wrong = "its objects move and keep their colours, as in blocks"
    if wrong:
        raise _other_world(config, wrong)


def _other_world(config: Collect, wrong: str) -> InvalidValueError:
    told = f"the file is not of {config.id} {dict(config.options)}: {wrong}"
    return InvalidValueError(told, fix="Pass the id and options of its world")


def _occupied(present: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns in how many cells of pictures (N, 50, 50) something lies, (N,)."""
    cells = present.reshape(len(present), GRID, CELL, GRID, CELL).any((2, 4))
    return cells.sum((1, 2))


def _read(file: h5py.File, names: list[str], header: Header, start: int) -> dict[str, NDArray[Any]]:
    """Returns the arrays of some episodes; one of another shape raises naming it."""
    parts: dict[str, list[NDArray[Any]]] = {}
    for name in names:
        group = file[name]
        absent = [member for member in _MEMBERS if member not in group]
        if absent:
            raise FileFormatError(f"episode {name} has no {', '.join(absent)}")
        if len(group["action"]) != header.steps:
            raise FileFormatError(
                f"episode {name} has {len(group['action'])} actions",
                allowed=f"{header.steps}, as the first",
            )
        seen = np.concatenate([group["obs"][:], group["next_obs"][-1:]])
        for key, array in (
            ("actions", group["action"][:].astype(np.int64)),
            ("rewards", group["reward"][:].astype(np.float64)),
            ("images", _to_bytes(seen)),
            ("target_images", _to_bytes(group["target"][:])),
        ):
            parts.setdefault(key, []).append(array)
    count = len(names)
    return {
        **{key: np.stack(arrays) for key, arrays in parts.items()},
        "states": np.zeros((count, header.steps + 1, 0), dtype=np.int64),
        "seeds": np.full(count, -1, dtype=np.int64),
        "episodes": np.arange(start, start + count, dtype=np.int64),
    }


def _to_float(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.moveaxis(images, -1, -3).astype(np.float32) / np.float32(255)


def _to_bytes(images: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.rint(np.moveaxis(images, -3, -1) * 255).astype(np.uint8)
