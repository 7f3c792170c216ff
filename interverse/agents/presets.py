"""Presets by name: the CausalWorld paper's setting (its Table 5), and a small one for a start.

The paper ran Stable-Baselines 2. Two things differ in Stable-Baselines3's PPO, which has no setting
for them: its value loss lacks version 2's factor 1/2, and a clipped value is learned from as it is,
where version 2 takes the larger of both losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

from interverse.agents import AGENTS
from interverse.core.errors import check_name, check_whole
from interverse.core.type_checks import check_types
from interverse.rollouts.saved import PAPER_WORLDS

Preset = Literal["paper", "small"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Hyper:
    """What an algorithm is made with.

    Attributes:
        steps: of the whole training.
        num_envs: worlds in the batch.
        settings: arguments of the SB3 class.
        tanh: whether the networks use tanh (else ReLU).
        net: hidden layers.
        shared: whether actor and critic of sb3_ppo share them.
    """

    steps: int = 100_000
    num_envs: int
    settings: Mapping[str, Any]
    tanh: bool = False
    net: tuple[int, ...] = (256, 256)
    shared: bool = False

    def __post_init__(self) -> None:
        check_types(Hyper, {"net": self.net, "tanh": self.tanh})
        for width in self.net:
            check_whole(width, "a layer of net", 10**6)


PRESETS: Mapping[tuple[str, Preset], Hyper] = {
    ("sb3_ppo", "paper"): Hyper(
        steps=100_000_000,
        num_envs=20,
        tanh=True,
        shared=True,
        settings={
            "gamma": 0.99,
            "n_steps": 6000,  # 20 workers x 6000: the paper's batch of 120,000
            "batch_size": 3000,  # 40 minibatches
            "n_epochs": 4,
            "learning_rate": 2.5e-4,
            "ent_coef": 0.01,
            "vf_coef": 0.5,
            "max_grad_norm": 0.5,
            "clip_range_vf": 0.2,  # as Stable-Baselines 2 does unless told otherwise
        },
    ),
    ("sb3_ppo", "small"): Hyper(
        num_envs=16,
        tanh=True,
        net=(64, 64),
        settings={"n_steps": 128, "batch_size": 256, "n_epochs": 10, "gamma": 0.98},
    ),
    ("sac", "paper"): Hyper(
        steps=10_000_000,
        num_envs=1,
        settings={
            "gamma": 0.95,
            "ent_coef": 0.001,
            "learning_starts": 1000,
            "batch_size": 256,
            "learning_rate": 1e-4,
            "buffer_size": 1_000_000,
            "tau": 0.001,
        },
    ),
    ("td3", "paper"): Hyper(
        steps=10_000_000,
        num_envs=1,
        settings={
            "gamma": 0.96,
            "learning_starts": 1000,
            "train_freq": 100,  # Stable-Baselines 2 learns in bursts
            "gradient_steps": 100,
            "batch_size": 128,
            "learning_rate": 1e-4,
            "buffer_size": 500_000,
            "tau": 0.02,
        },
    ),
}


def world_options(task: str, name: str) -> Mapping[str, Any]:
    """Returns the options that a preset makes a world with; the paper has four tasks."""
    return PAPER_WORLDS.get(task, {}) if name == "paper" else {}


def preset(algorithm: str, name: str) -> Hyper:
    """Returns the hyper-parameters of an algorithm under a preset's name.

    An algorithm's row has the settings of the small one, unless a preset here has others.
    """
    small = Hyper(num_envs=4, net=(64, 64), settings=AGENTS[algorithm].options)
    known: dict[str, Hyper] = {"small": small}
    known |= {key[1]: hyper for key, hyper in PRESETS.items() if key[0] == algorithm}
    check_name("preset", name, known)
    return known[name]
