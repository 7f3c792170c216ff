"""trifinger/*-v1: the CausalWorld benchmark, nine tasks for a robot of three fingers.

The names below are for code outside this folder; they are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interverse.core.registry import lazy_names

if TYPE_CHECKING:
    from interverse.worlds.trifinger.device import ArenaView, DeviceArena
    from interverse.worlds.trifinger.device_options import DEVICE_TASKS, check_device_options
    from interverse.worlds.trifinger.grasps import grip_locations
    from interverse.worlds.trifinger.options import TriFingerOptions
    from interverse.worlds.trifinger.robot import (
        action_bounds,
        denormalise,
        inverse_kinematics,
        normalise,
        tip_positions,
    )
    from interverse.worlds.trifinger.scene import ArenaScene, Block, BlockMesh, Goal, Obstacle
    from interverse.worlds.trifinger.store import ARENA
    from interverse.worlds.trifinger.tasks.task import Task

__all__ = [
    "ARENA",
    "DEVICE_TASKS",
    "ArenaScene",
    "ArenaView",
    "Block",
    "BlockMesh",
    "DeviceArena",
    "Goal",
    "Obstacle",
    "Task",
    "TriFingerOptions",
    "action_bounds",
    "check_device_options",
    "denormalise",
    "grip_locations",
    "inverse_kinematics",
    "normalise",
    "tip_positions",
]
_LAZY = {
    "ARENA": "store",
    "ArenaScene": "scene",
    "ArenaView": "device",
    "Block": "scene",
    "BlockMesh": "scene",
    "DEVICE_TASKS": "device_options",
    "DeviceArena": "device",
    "Goal": "scene",
    "Obstacle": "scene",
    "Task": "tasks.task",
    "TriFingerOptions": "options",
    "action_bounds": "robot",
    "check_device_options": "device_options",
    "denormalise": "robot",
    "grip_locations": "grasps",
    "inverse_kinematics": "robot",
    "normalise": "robot",
    "tip_positions": "robot",
}

__getattr__ = lazy_names(__name__, _LAZY)
