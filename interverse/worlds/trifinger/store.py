"""The store: every value a TriFinger world shows, as arrays (N, ...) by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from interverse.rng import Noise
from interverse.worlds.trifinger.scene import OBSERVATION_CAMERAS, Obstacle, Scene
from interverse.worlds.trifinger.variables import DELAY_LIMIT, Declared, Slot

Array = Any
Rows = dict[str, Array]

ADDRESS = "address"  # (N, 3): seed, episode and step of the noise in force
CLOCK = "clock"  # (N,): steps since the reset
COMMANDS = "commands"  # (N, DELAY_LIMIT + 1, 9): the last commands, the newest first
REWARD = "reward"  # (N,): of the last step
START_RATES = "start_rates"  # (N, 9): joint velocities at the start of the episode


def starting_rows(scene: Scene, declared: Iterable[Declared]) -> Rows:
    """Returns one world's rows at the start of the default scene, (1, ...) each."""
    rows: Rows = {}
    for item in declared:
        if item.slot is not None and not item.slot.index:
            rows[item.slot.key] = np.array(item.variable.default)[None]
    rows |= _robot_rows(scene) | _object_rows(scene)
    rows[ADDRESS] = np.zeros((1, 3), dtype=np.int64)
    rows[CLOCK] = np.zeros(1, dtype=np.int64)
    rows[COMMANDS] = np.zeros((1, DELAY_LIMIT + 1, 9))
    rows[REWARD] = np.zeros(1)
    rows[START_RATES] = np.zeros((1, 9))
    return rows


def _robot_rows(scene: Scene) -> Rows:
    return {
        "link/mass": np.array([scene.link_masses]),
        "link/color": np.array([[colors[1:] for colors in scene.link_colors]]),
        "camera/position": np.array([[camera.eye for camera in OBSERVATION_CAMERAS]]),
        "camera/rotation": np.zeros((1, len(OBSERVATION_CAMERAS), 3)),
    }


def _object_rows(scene: Scene) -> Rows:
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
            values = [getattr(item, key) for item in items]  # type: ignore[attr-defined]
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


def repeat(rows: Mapping[str, Array], count: int) -> Rows:
    """Returns one world's rows for `count` worlds."""
    return {key: np.repeat(values, count, axis=0) for key, values in rows.items()}


def take(store: Mapping[str, Array], worlds: Array) -> Rows:
    """Returns copies of some worlds' rows."""
    return {key: values[worlds] for key, values in store.items()}


def changed_keys(rows: Mapping[str, Array], before: Mapping[str, Array]) -> set[str]:
    """Returns the keys whose rows differ."""
    return {key for key, values in rows.items() if not np.array_equal(values, before[key])}


def part(rows: Mapping[str, Array], slot: Slot) -> Array:
    """Returns a view of what a slot means, (n, *shape)."""
    return rows[slot.key][(slice(None), *slot.index)]


def noise_of(address: Array) -> Noise:
    """Returns the noise at addresses, (n, 3)."""
    return Noise(address[:, 0], address[:, 1], address[:, 2])
