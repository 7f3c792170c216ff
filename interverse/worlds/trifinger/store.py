"""The arrays of a TriFinger store: one world's starting rows, and where each variable stands.

Objects of a kind share an array: `block_2/mass` is `rows["block/mass"][:, 2]`. A variable that is
named nowhere here has an array of its own name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from interverse.core.arrays import Array
from interverse.core.rng import Noise
from interverse.scm.store import Rows, StoreSlot
from interverse.worlds.trifinger.scene import OBSERVATION_CAMERAS, ArenaScene, Obstacle
from interverse.worlds.trifinger.variables import DELAY_LIMIT, FINGERS, LINK_NAMES

ADDRESS = "address"  # (N, 3): seed, episode and step of the noise in force
CLOCK = "clock"  # (N,): steps since the reset
COMMANDS = "commands"  # (N, DELAY_LIMIT + 1, 9): the last commands, the newest first
REWARD = "reward"  # (N,): of the last step
START_RATES = "start_rates"  # (N, 9): joint velocities at the start of the episode

_OBJECT = re.compile(r"(block|goal|obstacle|camera)_(\d+)/(\w+)")
_LINK = re.compile(rf"({'|'.join(FINGERS)})/({'|'.join(LINK_NAMES)})/(mass|color)")
_COMPUTED = ("end_effector_positions", "fractional_success")
_KEPT_AS = {
    "goal_tower/cylindrical_position": StoreSlot("goal_tower/place"),
    "obstacle/color": StoreSlot("obstacle/color", (0,)),
    "obstacle/size": StoreSlot("obstacle/size", (0,)),
    "robot/commands": StoreSlot(COMMANDS),
}


def slots_of(names: Iterable[str], start: Rows) -> dict[str, StoreSlot | None]:
    """Returns where values are kept that have no array of their own; None for computed ones.

    Args:
        names: the variables.
        start: one world's rows.
    """
    hidden = [
        f"{kind}_{i}/{key}"
        for kind, key in (("block", "used"), ("obstacle", "used"), ("obstacle", "position"))
        for i in range(start[f"{kind}/used"].shape[1])
    ]
    out: dict[str, StoreSlot | None] = {}
    for name in (*names, *hidden):
        slot = _shared_slot(name)
        if name in _COMPUTED or (name.endswith("/cylindrical_position") and name not in _KEPT_AS):
            out[name] = None
        elif slot is not None and (slot.key in start or name in _KEPT_AS):
            out[name] = slot
    return out


def _shared_slot(name: str) -> StoreSlot | None:
    if name in _KEPT_AS:
        return _KEPT_AS[name]
    if thing := _OBJECT.fullmatch(name):
        kind, number, key = thing.groups()
        return StoreSlot(f"{kind}/{key.removeprefix('cartesian_')}", (int(number),))
    if link := _LINK.fullmatch(name):
        finger, part, key = link.groups()
        return StoreSlot(f"link/{key}", (FINGERS.index(finger), LINK_NAMES.index(part)))
    return None


def starting_rows(scene: ArenaScene) -> Rows:
    """Returns the shared arrays of one world at the start of the default scene, (1, ...) each."""
    return {
        **_robot_rows(scene),
        **_object_rows(scene),
        ADDRESS: np.zeros((1, 3), dtype=np.int64),
        CLOCK: np.zeros(1, dtype=np.int64),
        COMMANDS: np.zeros((1, DELAY_LIMIT + 1, 9)),
        REWARD: np.zeros(1),
        START_RATES: np.zeros((1, 9)),
    }


def _robot_rows(scene: ArenaScene) -> Rows:
    return {
        "link/mass": np.array([scene.link_masses]),
        "link/color": np.array([[colors[1:] for colors in scene.link_colors]]),
        "camera/position": np.array([[camera.eye for camera in OBSERVATION_CAMERAS]]),
        "camera/rotation": np.zeros((1, len(OBSERVATION_CAMERAS), 3)),
    }


def _object_rows(scene: ArenaScene) -> Rows:
    blocks, goals = scene.block_count, scene.goal_count
    rows: Rows = {
        "block/mass": np.full((1, blocks), 0.08),
        "block/friction": np.ones((1, blocks)),
        "block/used": np.arange(blocks)[None] < len(scene.blocks),
        "block/linear_velocity": np.zeros((1, blocks, 3)),
        "block/angular_velocity": np.zeros((1, blocks, 3)),
        "goal/used": np.arange(goals)[None] < len(scene.goals),
        "obstacle/used": np.array([[_is_placed(o) for o in scene.obstacles]], dtype=bool),
    }
    kinds = (("block", blocks, scene.blocks), ("goal", goals, scene.goals))
    for kind, count, items in (*kinds, ("obstacle", len(scene.obstacles), scene.obstacles)):
        for key, spare in _SPARE.items():
            values = [getattr(item, key) for item in items]
            values += [spare] * (count - len(values))
            rows[f"{kind}/{key}"] = np.array(values, dtype=np.float64).reshape(1, count, len(spare))
    rows["goal/color"][:, len(scene.goals) :] = (0.0, 1.0, 0.0)
    for i, block in enumerate(scene.blocks):
        rows["block/mass"][:, i], rows["block/friction"][:, i] = block.mass, block.friction
    return rows


_SPARE = {  # of an object that is not in use
    "position": (0.0, 0.0, 0.0),
    "orientation": (0.0, 0.0, 0.0, 1.0),
    "size": (0.065, 0.065, 0.065),
    "color": (1.0, 0.0, 0.0),
}


def _is_placed(obstacle: Obstacle) -> bool:
    """Returns whether an obstacle is there from the start: those below the floor wait."""
    return obstacle.position[2] > 0.0


def noise_of(address: Array) -> Noise:
    """Returns the noise at addresses, (n, 3)."""
    return Noise(address[:, 0], address[:, 1], address[:, 2])
