"""Policies that CausalWorld released, by their content, and the worlds they were trained in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

_PAPER_WORLD = {"skip_frame": 3}  # 83 Hz, so that ten seconds are 834 steps
# The worlds of the paper's runs, with the weights of their rewards.
PAPER_WORLDS: Mapping[str, Mapping[str, Any]] = {
    "trifinger/pushing-v1": {
        **_PAPER_WORLD,
        "dense_reward_weights": (750.0, 250.0, 0.0),
        "fractional_reward_weight": 1.0,
    },
    "trifinger/picking-v1": {
        **_PAPER_WORLD,
        "dense_reward_weights": (250.0, 0.0, 125.0, 0.0, 750.0, 0.0, 0.0, 0.005),
        "fractional_reward_weight": 1.0,
    },
    "trifinger/pick_and_place-v1": {
        **_PAPER_WORLD,
        "dense_reward_weights": (750.0, 50.0, 250.0, 0.0, 0.005),
        "fractional_reward_weight": 1.0,
    },
    "trifinger/stacking2-v1": {
        **_PAPER_WORLD,
        "dense_reward_weights": (750.0, 250.0, 250.0, 125.0, 0.005),
        "fractional_reward_weight": 1.0,
    },
}


@final
class Released(NamedTuple):
    """A policy that the original released: its task's name, and its curriculum."""

    task: str
    curriculum: int


RELEASED: Mapping[str, Released] = {  # by SHA-256 of the zip
    # causal_world/assets/baseline_actors
    "c33f081f154b9ae969e785e2add0ed169cc8267d5b5814099916dabddc875eb6": Released(
        "pick_and_place", 0
    ),
    "4890f867b9b71fae70e9618c123c2a63fef11d740cb8d07665e029918343c737": Released("picking", 1),
    "ab42f124171c276ad5c709060983edd7cea3451e1102278afd4293f2c322ad16": Released("pushing", 1),
    "5f528828b8c78a5ff2c989e7555b64dd8356a3d14ceea625f40ab359e8fb8bdf": Released("reaching", 1),
    "64aaf5a7e05f01b53f7a181b14605a2e9b8e83ddd696e6434a37ec7843bf993c": Released("stacking2", 1),
    # tutorials/evaluating_model
    "1d706dc82f195281f1b29604a24c4508f9106e1deef92d115a2df793059cceb4": Released("pushing", 0),
    "47f0c486a7a86f66708077b65d5edf6d79aeb03bb32c8ece1e2f3b0bf7270e42": Released("pushing", 1),
}


@final
@dataclass(frozen=True, slots=True)
class ReleasedCard:
    """What is known of a released policy, as the cards of saved policies tell it."""

    trained: Mapping[str, Any]


def released(path: Path) -> Released | None:
    """Returns which of the released policies a file is, by its content; None for others."""
    if not path.is_file():
        return None
    return RELEASED.get(hashlib.sha256(path.read_bytes()).hexdigest())


def released_card(path: Path) -> ReleasedCard | None:
    """Returns the card of a released policy: its task and the world it was trained in."""
    found = released(path)
    if found is None:
        return None
    task = f"trifinger/{found.task}-v1"
    config = {"task": task, "curriculum": found.curriculum}
    return ReleasedCard({"config": config, "options": PAPER_WORLDS.get(task, _PAPER_WORLD)})
