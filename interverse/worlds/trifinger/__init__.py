"""trifinger/*-v1: the CausalWorld benchmark, nine tasks for a robot of three fingers.

The names below are for code outside this folder; they are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interverse.core.registry import lazy_names

if TYPE_CHECKING:
    from interverse.worlds.trifinger.device import ArenaView, DeviceArena
    from interverse.worlds.trifinger.device_options import DEVICE_TASKS, check_device_options
    from interverse.worlds.trifinger.options import TriFingerOptions
    from interverse.worlds.trifinger.robot import inverse_kinematics
    from interverse.worlds.trifinger.store import ARENA

__all__ = [
    "ARENA",
    "DEVICE_TASKS",
    "ArenaView",
    "DeviceArena",
    "TriFingerOptions",
    "check_device_options",
    "inverse_kinematics",
]
_LAZY = {
    "ARENA": "store",
    "ArenaView": "device",
    "DEVICE_TASKS": "device_options",
    "DeviceArena": "device",
    "TriFingerOptions": "options",
    "check_device_options": "device_options",
    "inverse_kinematics": "robot",
}

__getattr__ = lazy_names(__name__, _LAZY)
