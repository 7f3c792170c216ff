"""Trained policies that come with the package: PPO on TriFinger, and pixel agents on control."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from interverse.core.errors import check_name

TRAINED = ("pick_and_place_2", "picking_1", "picking_2", "pushing_1", "pushing_2", "reaching_1")
"""A task and CausalWorld's curriculum it was trained under; they act with skip_frame=3."""
TRAINED_PIXELS = (
    "cartpole_balance_paper",
    "cartpole_balance_small",
    "cartpole_balance_svea",
    "walker_walk_paper",
)
"""A control task, seen in the default look only, and the preset of its SAC+AUG, or its SVEA.

That SVEA had one random filter for a whole batch, as `policy.json` says. Walker Walk had a
fifth of the paper's length."""
SHIPPED = (*TRAINED, *TRAINED_PIXELS)


def trained_policy(name: str) -> Path:
    """Returns the folder of a trained policy, for `iv.evaluate` and every other taker.

    >>> trained_policy("pushing_2").name
    'pushing_2'
    """
    check_name("trained policy", name, SHIPPED)
    return Path(str(files("interverse") / "agents" / "policies")) / name


def shipped_path(given: str) -> str:
    """Returns the folder of a policy of the package, given by name; all else as it is."""
    if given not in SHIPPED or Path(given).exists():
        return given
    return str(trained_policy(given))
