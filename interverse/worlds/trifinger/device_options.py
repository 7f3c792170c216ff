"""Options of a TriFinger world that hold for thousands of worlds on a device, and the others."""

from __future__ import annotations

from interverse.core.errors import InvalidValueError
from interverse.worlds.trifinger.contacts import contact_mode
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.world import changed_options

DEVICE_TASKS = ("reaching", "pushing", "picking", "pick_and_place", "stacking2")
# They act where starts are drawn.
BY_STARTS = ("defaults", "draw_scenes", "legacy_unchecked", "space")
BY_ARENA = (
    "constraints",
    "contact",
    "contacts",
    "device",
    "drag",
    "legacy_time_left",
    "max_steps",
    "normalize_actions",
    "normalize_observations",
    "score",
    "skip_frame",
    "task",
    "threads",
)
_REWARD = "a device learns from its shaped reward"
_PICTURE = "a device shows numbers alone, no pictures"
_INFO = "a device gives observations and scores, no info"
REFUSED = {  # why
    "action_mode": "a device has joint_positions alone",
    "active_edges": _INFO,
    "cameras": _PICTURE,
    "contact_sensors": _INFO,
    "custom_observations": "a device gives the task's own observation",
    "dense_reward_weights": _REWARD,
    "fractional_reward_weight": _REWARD,
    "image_size": _PICTURE,
    "info_solution": _INFO,
    "info_state": _INFO,
    "look": _PICTURE,
    "max_blocks": "a device has tasks of fixed blocks alone",
    "mended_reward": _REWARD,
    "mirrored_images": _PICTURE,
    "observation_keys": "a device gives the task's own observation",
    "observation_mode": _PICTURE,
    "picture_kinds": _PICTURE,
    "shadows": _PICTURE,
    "sparse_reward": _REWARD,
}


def check_device_options(options: TriFingerOptions, device: str) -> None:
    """Raises for a task or an option that worlds on a device would not follow.

    Args:
        options: of the world.
        device: where the many run.
    """
    if options.task not in DEVICE_TASKS:
        raise InvalidValueError(
            f"{options.task} has no device form",
            allowed=", ".join(DEVICE_TASKS),
            fix="Train it with --algorithm sb3_ppo",
        )
    if device == "cpu":
        raise InvalidValueError(
            "device is 'cpu', where arrays are NumPy's", allowed="cuda, torch, warp"
        )
    for name in sorted(changed_options(options).keys() - {*BY_ARENA, *BY_STARTS}):
        raise InvalidValueError(
            f"option {name} is {getattr(options, name)!r}, but {REFUSED[name]}",
            fix="Leave it out, or use make_vec on the CPU or --algorithm sb3_ppo",
        )
    contact_mode(options.contact, device, blocks=1)
