"""Settings of a pixel training run: presets, the flags of `interverse train`, what they come to.

Hyper-parameters go by name: Table 4 of the DMCR paper, some authors' own, and small ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, final, get_args

import tyro

from interverse.agents import AGENTS, tagged
from interverse.agents.pixel.agent import AgentOptions, PixelHyper, PixelLearner
from interverse.agents.training import PLACES, record_of
from interverse.core.errors import InvalidValueError, check_name, check_whole
from interverse.core.type_checks import Seed, check_types, one_of, validated, whole
from interverse.models.steps import Precision, check_device

PixelPreset = Literal["authors", "paper", "small"]
MOST_TOGETHER = 16  # Torch has 32 streams of a GPU, and a run takes two
_SEEN, _DRAWN, _OPTION = "--hyper image_size", "--hyper render_size", "--option image_size"
_LARGEST = 2048


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
# What an agent has otherwise: agent, preset or any, what the task's id holds, and hyper-parameters
# and options of its own; later rows win. From its authors' code where no paper has it.
_OWN: tuple[tuple[str, str, str, Mapping[str, Any]], ...] = (
    (
        "curl",
        "paper",
        "/cheetah_",
        {"encoder_rate": 2e-4, "critic_rate": 2e-4, "actor_rate": 2e-4},
    ),
    ("drq", "", "", {"alpha_momentum": 0.9}),
    (  # every second decision both networks learn, with one rate and one smoothing
        "drq_v2",
        "",
        "",
        {
            "encoder_rate": 1e-4,
            "critic_rate": 1e-4,
            "actor_rate": 1e-4,
            "critic_tau": 0.01,
            "update_rate": 0.5,
            "actor_every": 1,
        },
    ),
    ("drq_v2", "paper", "", {"warm_up": 2000}),
    ("sac_ae", "paper", "", {"batch": 128}),
    # As in their script, which has this task alone.
    ("sgqn", "authors", "cartpole_swingup-", {"quantile": 0.98}),
    ("soda", "authors", "", {"projection_rate": 3e-4}),
    ("soda", "small", "", {"own_batch": 32}),
    ("tdmpc2", "", "", {"alpha": 1e-4, "actor_every": 1}),
    # The authors': two rounds more where an action has 20 numbers or more.
    ("tdmpc2", "", "humanoid", {"iterations": 8}),
    (
        "tdmpc2",
        "paper",
        "",
        {
            "image_size": 64,
            "features": 512,
            "hidden": 512,
            "encoder_rate": 9e-5,
            "critic_rate": 3e-4,
            "actor_rate": 3e-4,
        },
    ),
    (
        "tdmpc2",
        "small",
        "",
        {
            "filters": 16,
            "layers": 4,
            "features": 256,
            "hidden": 256,
            "encoder_rate": 3e-4,
            "critic_rate": 1e-3,
            "actor_rate": 1e-3,
            "samples": 96,
            "elites": 16,
            "policy_paths": 8,
            "iterations": 4,
        },
    ),
)
EPISODE = 1000  # control steps of an episode of the control suite
_SHARED = {item.name for item in fields(PixelHyper)}


def _own(algorithm: str, name: str, task: str) -> dict[str, Any]:
    rows = (row for row in _OWN if row[0] == algorithm and row[1] in ("", name) and row[2] in task)
    return {key: value for *_, values in rows for key, value in values.items()}


def own_options(algorithm: str, name: str, task: str = "") -> dict[str, Any]:
    """Returns the options of one kind of agent that a preset changes, for a task."""
    own = _own(algorithm, name, task)
    return {key: value for key, value in own.items() if key not in _SHARED}


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
    check_name("algorithm", algorithm, tagged("pictures"))
    every: tuple[str, ...] = get_args(PixelPreset)
    authored = "authored" in AGENTS[algorithm].tags
    known = every if authored else [one for one in every if one != "authors"]
    check_name("preset", name, known)
    own = {key: v for key, v in _own(algorithm, name, task).items() if key in _SHARED}
    if algorithm == "tdmpc2":  # some follows from the length of an episode
        if decisions is None:
            decisions = EPISODE / schedule(task, name).frame_skip
        own["discount"] = min(max(1.0 - 5.0 / decisions, 0.95), 0.995)
        if name == "paper":
            own["warm_up"] = max(1000, round(5 * decisions))
    hyper = replace(_BASES[name], **own)
    return replace(hyper, render_size=drawn_size(algorithm, hyper.image_size))


def drawn_size(algorithm: str, image_size: int) -> int:
    """Returns how large pictures are drawn for an encoder that sees so many pixels."""
    return round(image_size * 100 / 84) if "cropped" in AGENTS[algorithm].tags else image_size


def schedule(task: str, name: str) -> Schedule:
    """Returns a task's training length, frame skip and episodes under a preset."""
    full = SCHEDULES.get(task, OTHER_SCHEDULE)
    if name == "paper":
        return full
    if name == "authors":
        skip = next((n for domain, n in _AUTHORS_SKIPS.items() if f"/{domain}_" in task), 4)
        return Schedule(_AUTHORS_STEPS, skip)
    return replace(full, steps=SMALL_STEPS, episode=math.ceil(SMALL_EPISODE / full.frame_skip))


def picture_sizes(
    algorithm: str, hyper: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, int]:
    """Returns the hyper-parameters `image_size` and `render_size` that a run's flags come to.

    None where no size is given: the preset's fit. Agents that crop see a part of what is drawn, all
    others the whole of it.

    >>> picture_sizes("sac_aug", {"image_size": 32}, {})
    {'image_size': 32, 'render_size': 32}
    >>> picture_sizes("rad", {"image_size": 84}, {})
    {'image_size': 84, 'render_size': 100}
    """
    edge = options.get("image_size")
    if isinstance(edge, tuple | list) and len(edge) == 2 and edge[0] == edge[1]:
        edge = edge[0]  # rows and columns of a square
    asked = {_SEEN: hyper.get("image_size"), _DRAWN: hyper.get("render_size"), _OPTION: edge}
    given = {flag: size for flag, size in asked.items() if size is not None}
    for flag, size in given.items():
        check_whole(size, flag, _LARGEST)
    crops, seen = algorithm in tagged("cropped"), given.get(_SEEN)
    wanted = {flag: size for flag, size in given.items() if flag != _SEEN or not crops}
    if len(set(wanted.values())) > 1:
        flags = " and ".join(f"{flag} is {size}" for flag, size in wanted.items())
        raise InvalidValueError(
            f"{flags} for {algorithm}",
            allowed=f"one size; {', '.join(tagged('cropped'))} see crops of larger pictures",
            fix="Give one of them and leave the others out",
        )
    drawn = next(iter(wanted.values()), None)
    if not crops:
        seen = drawn
    elif seen is not None and drawn is None:
        drawn = drawn_size(algorithm, seen)
    sizes = {"image_size": seen, "render_size": drawn}
    return {name: size for name, size in sizes.items() if size is not None}


_Count = Annotated[int, whole(10**12)]
_Few = Annotated[int, whole(1024)]


@dataclass(frozen=True, kw_only=True)
@validated
class PixelTrain:
    """Trains a pixel agent; started again with the same flags, it goes on where it stopped."""

    task: str
    """A world's id, such as control/cartpole_balance-v1."""
    out: Path
    """A folder for checkpoints, logs, curves and the exported policy."""
    algorithm: Annotated[str, one_of(tagged("pictures"))] = "sac_aug"
    """The agent: curl, drq, drq_v2, sac_aug, svea, tdmpc2, ...; `--help` lists them all."""
    preset: PixelPreset = "small"
    """Hyper-parameters: "paper" (DMCR's Table 4), "small" (64 pixels, for a CPU); svea, soda and
    sgqn also have "authors" (those of their authors' code)."""
    steps: _Count | None = None
    """Agent decisions in all; the preset's for the task by default."""
    seed: Seed = 0
    """The seed of everything."""
    actors: _Few = 1
    """Environments that act together, in processes of their own if more than one."""
    device: str = "cpu"
    """Where networks and replay buffer live: cpu or cuda."""
    precision: Precision = "float32"
    """float32, tf32 or bf16; the last two are for a GPU."""
    overlap: bool = False
    """Let actors step while the networks learn from what came before; the order is fixed."""
    compiled: bool = False
    """Compile actor and critics: seconds at the start, faster updates on a GPU afterwards."""
    threads: _Few = 1
    """Torch threads; with one, a resumed run equals an unbroken one to the last bit."""
    wandb: str | None = None
    """A project of Weights & Biases that gets the curves too; needs the extra wandb."""
    checkpoint_every: _Count = 2_000
    """Decisions between checkpoints; what a kill can cost at most."""
    evaluate_every: _Count = 5_000
    """Decisions between evaluations with the mean action."""
    evaluate_episodes: _Count = 5
    """Episodes of an evaluation."""
    options: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Options of the world, as for make."""
    hyper: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Hyper-parameters other than the preset's, by name; also the agent's own options."""

    def __post_init__(self) -> None:
        check_device(self.device)

    def record(self) -> dict[str, Any]:
        """Returns the fields that tell one run from another, JSON-ready."""
        later = [name for name in ("overlap", "compiled") if not getattr(self, name)]
        return record_of(self, without={*PLACES, *later})  # runs from before they existed go on


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PixelPlan:
    """What a configuration comes to: hyper-parameters, the agent's options, the world's, length.

    Attributes:
        world_options: what the policy is judged in.
        training_options: what it learns in: the same, but episodes may be shorter.
    """

    kind: type[PixelLearner]
    hyper: PixelHyper
    agent_options: AgentOptions
    world_options: Mapping[str, Any]
    training_options: Mapping[str, Any]
    steps: int


def plan(config: PixelTrain) -> PixelPlan:
    """Returns what a configuration comes to, or raises naming what is wrong."""
    entry = AGENTS[config.algorithm]
    kind: type[PixelLearner] = entry.load()
    own = {item.name for item in fields(kind.options_type)}
    for name in config.hyper:
        check_name("hyper-parameter", name, _SHARED | own)
    given_own = {n: v for n, v in config.hyper.items() if n in own}
    check_types(kind.options_type, given_own)
    length = schedule(config.task, config.preset)
    world = {"frame_skip": length.frame_skip, **config.options}
    # An episode ends by itself, or after so many decisions as the world's options say.
    check_whole(world["frame_skip"], "frame_skip", EPISODE)
    decisions, most = EPISODE / world["frame_skip"], world.get("max_steps")
    if most is not None:
        check_whole(most, "max_steps", 10**12)
        decisions = min(decisions, most)
    hyper = preset(config.algorithm, config.preset, config.task, decisions=decisions)
    sizes = picture_sizes(config.algorithm, config.hyper, config.options)
    given_shared = {n: v for n, v in config.hyper.items() if n in _SHARED}
    hyper = replace(hyper, **given_shared | sizes)
    world = {"image_size": hyper.render_size, "frame_stack": hyper.frame_stack, **world}
    short = {} if length.episode is None else {"max_steps": length.episode}
    preset_own = own_options(config.algorithm, config.preset, config.task)
    return PixelPlan(
        kind=kind,
        hyper=hyper,
        agent_options=kind.options_type(**{**entry.options, **preset_own, **given_own}),
        world_options=world,
        training_options={**short, **world},
        steps=length.steps if config.steps is None else config.steps,
    )


def check_together(configs: Sequence[PixelTrain]) -> None:
    """Raises for runs that cannot be trained side by side in one process."""
    check_whole(len(configs), "the number of runs", MOST_TOGETHER)
    for name in ("device", "precision", "threads"):
        values = dict.fromkeys(getattr(config, name) for config in configs)
        if len(values) > 1:
            raise InvalidValueError(
                f"runs side by side have {name} {' and '.join(map(str, values))}",
                allowed="one for all of them, as they share a process",
                fix="Train them one after the other, or in processes of their own",
            )
    folders = [config.out.resolve() for config in configs]
    for config, folder in zip(configs, folders, strict=True):
        if folders.count(folder) > 1:
            raise InvalidValueError(
                f"two runs have the folder {config.out}", fix="Give each a folder"
            )
    if len(configs) > 1 and any(config.wandb is not None for config in configs):
        raise InvalidValueError(
            "wandb follows one run of a process",
            fix="Leave it out, or train the runs one after the other",
        )
