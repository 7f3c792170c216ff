"""Hyper-parameters by name: Table 4 of the DMCR paper, some authors' own, and small ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, final, get_args

from interverse.agents import AGENTS, check_agent
from interverse.core.errors import InvalidValueError, check_name, check_number, check_whole, explain

PixelPreset = Literal["authors", "paper", "small"]

_PIXEL_SHARES = ("critic_tau", "discount", "encoder_tau")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PixelHyper:
    """What every pixel agent shares; the defaults are the paper's."""

    image_size: int = 84
    """Pixels that the encoder sees."""
    render_size: int = 84
    """Pixels that the world draws; larger where the agent crops at random."""
    frame_stack: int = 3
    """Frames of an observation. Table 4 prints 1; the paper's text and all code have 3."""
    filters: int = 32
    layers: int = 4
    features: int = 50
    hidden: int = 1024
    batch: int = 256
    capacity: int = 100_000
    """Frames in the replay buffer: 2.1 GB at 84 pixels."""
    warm_up: int = 1000
    """Random actions before learning starts."""
    update_rate: float = 1.0
    """Updates per action."""
    actor_every: int = 2
    """Updates from one step of actor, temperature and targets to the next."""
    discount: float = 0.99
    encoder_rate: float = 1e-3
    critic_rate: float = 1e-3
    actor_rate: float = 1e-3
    alpha_rate: float = 1e-4
    """Learning rates, of Adam."""
    alpha_momentum: float = 0.5
    alpha: float = 0.1
    """The temperature at the start."""
    critic_tau: float = 0.01
    encoder_tau: float = 0.05
    """How far targets move at a step."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(item.default, int):
                check_whole(value, item.name, 10**12)
            elif item.name == "alpha_momentum":
                check_number(value, item.name, most=1.0, below=True)
            else:
                share = item.name in _PIXEL_SHARES
                check_number(value, item.name, most=1.0 if share else 1e12, above=True)
        if self.render_size < self.image_size:
            raise InvalidValueError(
                explain(f"render_size is {self.render_size}", allowed=f"from {self.image_size}")
            )


@final
@dataclass(frozen=True, slots=True)
class Schedule:
    """How long a task is trained, how often an action is repeated, how long an episode is.

    Attributes:
        steps: agent decisions.
        frame_skip: control steps of a decision.
        episode: decisions after which training starts anew; None for the world's own length.
            Evaluations always have the world's.
    """

    steps: int
    frame_skip: int
    episode: int | None = None


# Section C of the paper's appendix; our text of it is damaged at Hopper's length.
SCHEDULES: Mapping[str, Schedule] = {
    "control/ball_in_cup_catch-v1": Schedule(75_000, 4),
    "control/cartpole_balance-v1": Schedule(50_000, 8),
    "control/cheetah_run-v1": Schedule(250_000, 4),
    "control/finger_spin-v1": Schedule(100_000, 2),
    "control/hopper_stand-v1": Schedule(50_000, 4),
    "control/walker_walk-v1": Schedule(250_000, 2),
}
OTHER_SCHEDULE = Schedule(100_000, 4)  # ours, for tasks the paper does not train
SMALL_STEPS = 4_000
SMALL_EPISODE = 250  # control steps: a quarter of an episode, so that starts are seen more often

_PAPER = PixelHyper()
_SMALL = PixelHyper(
    image_size=64,
    render_size=64,
    filters=16,
    layers=3,
    hidden=256,
    batch=32,
    capacity=20_000,
    warm_up=500,
    # Short runs: values reach less far and targets follow faster; the temperature starts low, as
    # there is no time for it to fall.
    discount=0.98,
    critic_tau=0.05,
    alpha=0.01,
    alpha_rate=1e-3,
)
# The code of SVEA and SODA, which SGQN's builds on. Its buffer forgets nothing.
_AUTHORS = PixelHyper(batch=128, layers=11, features=100, capacity=500_000)
_AUTHORS_STEPS = 500_000
_AUTHORS_SKIPS = {"cartpole": 8, "finger": 2}  # all other domains have 4
_BASES = {"authors": _AUTHORS, "paper": _PAPER, "small": _SMALL}
# What an agent has otherwise under every preset: from its authors' code.
_OWN: Mapping[str, Mapping[str, Any]] = {
    "drq": {"alpha_momentum": 0.9},
    "drq_v2": {  # every second decision both networks learn, with one rate and one smoothing
        "encoder_rate": 1e-4,
        "critic_rate": 1e-4,
        "actor_rate": 1e-4,
        "critic_tau": 0.01,
        "update_rate": 0.5,
        "actor_every": 1,
    },
    "tdmpc2": {"alpha": 1e-4, "actor_every": 1},
}
# What it has under one of them.
_OWN_UNDER: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("drq_v2", "paper"): {"warm_up": 2000},
    ("sac_ae", "paper"): {"batch": 128},
    ("tdmpc2", "paper"): {
        "image_size": 64,
        "features": 512,
        "hidden": 512,
        "encoder_rate": 9e-5,
        "critic_rate": 3e-4,
        "actor_rate": 3e-4,
    },
    ("tdmpc2", "small"): {
        "filters": 16,
        "layers": 4,
        "features": 256,
        "hidden": 256,
        "encoder_rate": 3e-4,
        "critic_rate": 1e-3,
        "actor_rate": 1e-3,
    },
}
# And there in one domain.
_OWN_IN: Mapping[tuple[str, str, str], Mapping[str, Any]] = {
    ("curl", "paper", "cheetah"): {
        "encoder_rate": 2e-4,
        "critic_rate": 2e-4,
        "actor_rate": 2e-4,
    },
}
EPISODE = 1000  # control steps of an episode of the control suite


def own_options(algorithm: str, name: str, task: str = "") -> dict[str, Any]:
    """Returns the options of one kind of agent that a preset changes, for a task."""
    if (algorithm, name) == ("tdmpc2", "small"):
        return {"samples": 96, "elites": 16, "policy_paths": 8, "iterations": 4}
    if (algorithm, name) == ("soda", "small"):
        return {"own_batch": 32}
    if (algorithm, name) == ("soda", "authors"):
        return {"projection_rate": 3e-4}
    if (algorithm, name) == ("sgqn", "authors") and "cartpole_swingup-" in task:
        return {"quantile": 0.98}  # as in their script, which has this task alone
    if algorithm == "tdmpc2" and "humanoid" in task:
        return {"iterations": 8}  # the authors': two more where an action has 20 numbers or more
    return {}


def preset(
    algorithm: str, name: str, task: str = "", *, decisions: float | None = None
) -> PixelHyper:
    """Returns the hyper-parameters of a pixel agent under a preset's name, for a task.

    Args:
        algorithm: the agent.
        name: of the preset.
        task: some agents have other settings in some.
        decisions: of an episode; by default those of the schedule for the task.
    """
    check_agent(algorithm, "pictures")
    every: tuple[str, ...] = get_args(PixelPreset)
    authored = "authored" in AGENTS[algorithm].tags
    known = every if authored else [one for one in every if one != "authors"]
    check_name("preset", name, known)
    if decisions is None:
        decisions = EPISODE / schedule(task, name).frame_skip
    domain = task.partition("/")[2].partition("_")[0]
    changed = {
        **_OWN.get(algorithm, {}),
        **_OWN_UNDER.get((algorithm, name), {}),
        **_OWN_IN.get((algorithm, name, domain), {}),
        **(_by_episode(name, decisions) if algorithm == "tdmpc2" else {}),
    }
    hyper = replace(_BASES[name], **changed)
    return replace(hyper, render_size=drawn_size(algorithm, hyper.image_size))


def drawn_size(algorithm: str, image_size: int) -> int:
    """Returns how large pictures are drawn for an encoder that sees so many pixels."""
    return round(image_size * 100 / 84) if "cropped" in AGENTS[algorithm].tags else image_size


def _by_episode(name: str, decisions: float) -> dict[str, float]:
    """Returns what TD-MPC2 takes from the length of an episode."""
    discount = min(max(1.0 - 5.0 / decisions, 0.95), 0.995)
    warm_up = {"warm_up": max(1000, round(5 * decisions))} if name == "paper" else {}
    return {"discount": discount, **warm_up}


def schedule(task: str, name: str) -> Schedule:
    """Returns a task's training length, frame skip and episodes under a preset."""
    full = SCHEDULES.get(task, OTHER_SCHEDULE)
    if name == "paper":
        return full
    if name == "authors":
        skip = next((n for domain, n in _AUTHORS_SKIPS.items() if f"/{domain}_" in task), 4)
        return Schedule(_AUTHORS_STEPS, skip)
    return replace(full, steps=SMALL_STEPS, episode=math.ceil(SMALL_EPISODE / full.frame_skip))
