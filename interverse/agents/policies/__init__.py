"""Trained policies that come with the package: PPO on a GPU, to be run on any engine."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from interverse.core.errors import UnknownNameError, unknown

TRAINED = ("pick_and_place_2", "picking_1", "picking_2", "pushing_1", "pushing_2")
"""A task and CausalWorld's curriculum it was trained under; they act with skip_frame=3."""


def trained_policy(name: str) -> Path:
    """Returns the folder of a trained policy, for `iv.evaluate` and every other taker.

    >>> trained_policy("pushing_2").name
    'pushing_2'
    """
    if name not in TRAINED:
        raise UnknownNameError(unknown("trained policy", name, TRAINED))
    return Path(str(files("interverse.agents.policies"))) / name
