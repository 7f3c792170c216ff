"""Settings of a pixel training run: the flags of `interverse train`, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, final

import tyro

from interverse.agents import AGENTS, check_agent, tagged
from interverse.agents.pixel.agent import AgentOptions, PixelLearner
from interverse.agents.pixel.networks import PixelSizes
from interverse.agents.pixel.presets import (
    EPISODE,
    PixelHyper,
    PixelPreset,
    drawn_size,
    own_options,
    preset,
    schedule,
)
from interverse.core.errors import InvalidValueError, check_name, check_whole, explain
from interverse.core.files.json_text import plain
from interverse.core.rng import check_seed
from interverse.core.type_checks import check_types
from interverse.models.steps import Precision, check_device

MOST_TOGETHER = 16  # Torch has 32 streams of a GPU, and a run takes two

_SEEN, _DRAWN, _OPTION = "--hyper image_size", "--hyper render_size", "--option image_size"
_LARGEST = 2048


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
    given = _given(hyper, options)
    seen, drawn = given.get(_SEEN), _one(algorithm, given)
    if algorithm not in tagged("cropped"):
        seen = drawn
    elif seen is not None and drawn is None:
        drawn = drawn_size(algorithm, seen)
    sizes = {"image_size": seen, "render_size": drawn}
    return {name: size for name, size in sizes.items() if size is not None}


def _given(hyper: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, int]:
    """Returns the sizes that are asked for by the flag of each."""
    asked = {_SEEN: hyper.get("image_size"), _DRAWN: hyper.get("render_size")}
    asked[_OPTION] = _edge(options.get("image_size"))
    given = {flag: size for flag, size in asked.items() if size is not None}
    for flag, size in given.items():
        check_whole(size, flag, _LARGEST)
    return given


def _edge(size: Any) -> Any:
    """Returns the edge of a square that is given as rows and columns; anything else as it is."""
    is_square = isinstance(size, tuple | list) and len(size) == 2 and size[0] == size[1]
    return size[0] if is_square else size


def _one(algorithm: str, given: Mapping[str, int]) -> int | None:
    """Returns the size that is drawn, or raises where two are asked for."""
    crops = algorithm in tagged("cropped")
    drawn = {flag: size for flag, size in given.items() if flag != _SEEN or not crops}
    if len(set(drawn.values())) > 1:
        flags = " and ".join(f"{flag} is {size}" for flag, size in drawn.items())
        raise InvalidValueError(
            explain(
                f"{flags} for {algorithm}",
                allowed=f"one size; {', '.join(tagged('cropped'))} see crops of larger pictures",
                fix="Give one of them and leave the others out",
            )
        )
    return next(iter(drawn.values()), None)


@dataclass(frozen=True, kw_only=True)
class PixelTrain:
    """Trains a pixel agent; started again with the same flags, it goes on where it stopped."""

    task: str
    """A world's id, such as control/cartpole_balance-v1."""
    out: Path
    """A folder for checkpoints, logs, curves and the exported policy."""
    algorithm: str = "sac_aug"
    """The agent: curl, drq, drq_v2, sac_aug, svea, tdmpc2, ...; `--help` lists them all."""
    preset: PixelPreset = "small"
    """Hyper-parameters: "paper" (DMCR's Table 4), "small" (64 pixels, for a CPU); svea, soda and
    sgqn also have "authors" (those of their authors' code)."""
    steps: int | None = None
    """Agent decisions in all; the preset's for the task by default."""
    seed: int = 0
    """The seed of everything."""
    actors: int = 1
    """Environments that act together, in processes of their own if more than one."""
    device: str = "cpu"
    """Where networks and replay buffer live: cpu or cuda."""
    precision: Precision = "float32"
    """float32, tf32 or bf16; the last two are for a GPU."""
    overlap: bool = False
    """Let actors step while the networks learn from what came before; the order is fixed."""
    compiled: bool = False
    """Compile actor and critics: seconds at the start, faster updates on a GPU afterwards."""
    threads: int = 1
    """Torch threads; with one, a resumed run equals an unbroken one to the last bit."""
    wandb: str | None = None
    """A project of Weights & Biases that gets the curves too; needs the extra wandb."""
    checkpoint_every: int = 2_000
    """Decisions between checkpoints; what a kill can cost at most."""
    evaluate_every: int = 5_000
    """Decisions between evaluations with the mean action."""
    evaluate_episodes: int = 5
    """Episodes of an evaluation."""
    options: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Options of the world, as for make."""
    hyper: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Hyper-parameters other than the preset's, by name; also the agent's own options."""

    def __post_init__(self) -> None:
        check_agent(self.algorithm, "pictures")
        check_seed(self.seed)
        counts = ("checkpoint_every", "evaluate_every", "evaluate_episodes")
        for name in (*counts, *(["steps"] if self.steps is not None else [])):
            check_whole(getattr(self, name), name, 10**12)
        for name in ("actors", "threads"):
            check_whole(getattr(self, name), name, 1024)
        check_device(self.device)

    def record(self) -> dict[str, Any]:
        """Returns the fields that tell one run from another, JSON-ready."""
        record = asdict(self)
        for name in ("out", "wandb"):
            del record[name]
        for name in ("overlap", "compiled"):  # runs from before they existed go on
            if not record[name]:
                del record[name]
        return dict(plain(record))


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

    def agent(self, sizes: PixelSizes, seed: int, device: str) -> PixelLearner:
        """Returns a new agent."""
        return self.kind(self.hyper, sizes, seed, device, self.agent_options)


def plan(config: PixelTrain) -> PixelPlan:
    """Returns what a configuration comes to, or raises naming what is wrong."""
    entry = AGENTS[config.algorithm]
    kind: type[PixelLearner] = entry.load()
    shared = {item.name for item in fields(PixelHyper)}
    own = {item.name for item in fields(kind.options_type)}
    for name in config.hyper:
        check_name("hyper-parameter", name, shared | own)
    check_types(kind.options_type, {n: v for n, v in config.hyper.items() if n in own})
    length = schedule(config.task, config.preset)
    world = {"frame_skip": length.frame_skip, **config.options}
    hyper = preset(
        config.algorithm, config.preset, config.task, decisions=_episode_decisions(world)
    )
    given_shared = {n: v for n, v in config.hyper.items() if n in shared}
    sizes = picture_sizes(config.algorithm, config.hyper, config.options)
    hyper = replace(hyper, **given_shared | sizes)
    given = {"image_size": hyper.render_size, "frame_stack": hyper.frame_stack}
    world = {**given, **world}
    short = {} if length.episode is None else {"max_steps": length.episode}
    return PixelPlan(
        kind=kind,
        hyper=hyper,
        agent_options=kind.options_type(
            **dict(entry.options)
            | own_options(config.algorithm, config.preset, config.task)
            | {n: v for n, v in config.hyper.items() if n in own},
        ),
        world_options=world,
        training_options={**short, **world},
        steps=length.steps if config.steps is None else config.steps,
    )


def _episode_decisions(world: Mapping[str, Any]) -> float:
    """Returns how many decisions an episode has under a world's options."""
    skip, most = world["frame_skip"], world.get("max_steps")
    check_whole(skip, "frame_skip", EPISODE)
    if most is None:
        return EPISODE / skip
    check_whole(most, "max_steps", 10**12)
    return min(EPISODE / skip, most)


def check_together(configs: Sequence[PixelTrain]) -> None:
    """Raises for runs that cannot be trained side by side in one process."""
    check_whole(len(configs), "the number of runs", MOST_TOGETHER)
    for name in ("device", "precision", "threads"):
        values = dict.fromkeys(getattr(config, name) for config in configs)
        if len(values) > 1:
            raise InvalidValueError(
                explain(
                    f"runs side by side have {name} {' and '.join(map(str, values))}",
                    allowed="one for all of them, as they share a process",
                    fix="Train them one after the other, or in processes of their own",
                )
            )
    folders: set[Path] = set()
    for config in configs:
        if config.out.resolve() in folders:
            raise InvalidValueError(
                explain(f"two runs have the folder {config.out}", fix="Give each a folder")
            )
        folders.add(config.out.resolve())
    if len(configs) > 1 and any(config.wandb is not None for config in configs):
        raise InvalidValueError(
            explain(
                "wandb follows one run of a process",
                fix="Leave it out, or train the runs one after the other",
            )
        )
