"""Agents: one table of all that learns, and planners that use a world model.

A row says all of an agent: the class that learns, the options it is made with, and tags. The first
tag is its family, which has settings and a loop in common: `batch` (thousands of worlds beside the
learner), `states` (Stable-Baselines3) or `pictures`. The others are what presets go by: `cropped`
agents see random crops of larger pictures, `authored` ones have a preset of their authors' code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interverse.core.registry import Entry, Registry, lazy_names

if TYPE_CHECKING:
    from interverse.agents.cem import CEM, Planner, run_planner

_SAC_AUG = "interverse.agents.pixel.views:SacAug"
_PICTURES = ("pictures",)
_REPLAY = {"buffer_size": 50_000, "learning_starts": 500, "train_freq": 4}

AGENTS = Registry(
    "algorithm",
    {
        "curl": Entry("interverse.agents.pixel.auxiliary:Curl", {}, ("pictures", "cropped")),
        "dbc": Entry("interverse.agents.pixel.auxiliary:Dbc", {}, _PICTURES),
        "drq": Entry("interverse.agents.pixel.views:Drq", {}, _PICTURES),
        "drq_v2": Entry("interverse.agents.pixel.views:DrqV2", {}, _PICTURES),
        "ppo": Entry("interverse.agents.batch.ppo:DevicePpo", {}, ("batch",)),
        "rad": Entry("interverse.agents.pixel.views:Rad", {}, ("pictures", "cropped")),
        "sac": Entry("stable_baselines3:SAC", _REPLAY, ("states",)),
        "sac_ae": Entry("interverse.agents.pixel.auxiliary:SacAe", {}, _PICTURES),
        "sac_aug": Entry(_SAC_AUG, {"augmentation": "drq"}, _PICTURES),
        "sac_cj_aug": Entry(_SAC_AUG, {"augmentation": "color_jitter+drq"}, _PICTURES),
        "sac_nr_aug": Entry(_SAC_AUG, {"augmentation": "network_randomization+drq"}, _PICTURES),
        "sac_pixels": Entry("interverse.agents.pixel.views:PixelSac", {}, _PICTURES),
        "sb3_ppo": Entry("stable_baselines3:PPO", {}, ("states",)),
        "sgqn": Entry("interverse.agents.pixel.auxiliary:Sgqn", {}, ("pictures", "authored")),
        "soda": Entry(
            "interverse.agents.pixel.auxiliary:Soda", {}, ("pictures", "authored", "cropped")
        ),
        "svea": Entry("interverse.agents.pixel.views:Svea", {}, ("pictures", "authored")),
        "td3": Entry("stable_baselines3:TD3", _REPLAY, ("states",)),
        "tdmpc2": Entry("interverse.agents.pixel.tdmpc2:TdMpc2", {}, _PICTURES),
    },
)


def tagged(tag: str) -> tuple[str, ...]:
    """Returns the agents of a family, or with another tag.

    >>> tagged("states")
    ('sac', 'sb3_ppo', 'td3')
    """
    return tuple(name for name in AGENTS if tag in AGENTS[name].tags)


__all__ = ["AGENTS", "CEM", "Planner", "run_planner", "tagged"]

__getattr__ = lazy_names(__name__, dict.fromkeys(("CEM", "Planner", "run_planner"), "cem"))
