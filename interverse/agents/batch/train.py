"""PPO beside thousands of worlds: settings, checkpoints, resume and an exported policy."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, final

import numpy as np
import torch
import tyro
from rich.console import Console

from interverse.actors.curriculum import Curriculum, training_curriculum
from interverse.agents import tagged
from interverse.agents.batch.network import check_initial
from interverse.agents.batch.ppo import DevicePpo, PpoSettings
from interverse.agents.batch.starts import (
    AT_A_TIME,
    Demonstrations,
    Starts,
    check_drawn_at_start,
    curriculum_starts,
    demonstrate,
    make_arena,
    merge,
)
from interverse.agents.policies import TRAINED, trained_policy
from interverse.agents.training import record_of, run_of, trained_by
from interverse.core.errors import FileFormatError, InvalidValueError, check_whole
from interverse.core.files.atomic import write_json
from interverse.core.files.checkpoints import Checkpoint, Checkpoints
from interverse.core.rng import generator, region_seed
from interverse.core.run import CHECKPOINTS, Display, duration
from interverse.core.type_checks import Share, check_types, number, one_of, validated, whole
from interverse.rollouts.exported import ExportedPolicy
from interverse.rollouts.policy import one_thread
from interverse.rollouts.policy_world import space_note
from interverse.scm.variable import SPACE_NAMES, SpaceName
from interverse.sim.warp_device import find_device
from interverse.worlds import WORLDS, trifinger
from interverse.worlds.own_code import own_code
from interverse.worlds.world import check_device_name, parse_options

_GROUPS = 8  # groups of worlds that start at different times
_BRIEF = 0.2  # of a whole episode
_DEMONSTRATIONS = 256  # episodes of the baseline, where they are needed
_LARGEST_SEED = 2**31 - 1
_CURVE = "curve.json"
# What may differ from one call to the next.
_FREE = ("checkpoint_every", "out", "seconds", "wandb")
_REPORTED = 25  # updates between rows of the curve
_FIRST = 3  # updates after which the time that a run takes is told


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    """How much a run does unless it is told, and what it then reaches.

    Attributes:
        steps: in all.
        num_envs: worlds side by side.
        starts: different episode starts.
        shown: share of them on the paths of the scripted baseline.
        expects: the score that a run of these sizes reached, for its user.
    """

    steps: int = 30_000_000
    num_envs: int = 1024
    starts: int = 16384
    shown: float = 0.0
    expects: str = ""


GPU_SIZES = BatchSizes(steps=100_000_000, num_envs=8192)
CPU_SIZES: Mapping[str, BatchSizes] = {  # by task; measured on one core
    "reaching": BatchSizes(
        steps=1_500_000,
        num_envs=256,
        starts=2048,
        expects="success 1.0 in P0 and .9 in P5, which has goals of its own",
    ),
    "pushing": BatchSizes(expects="fractional success 1.0 in P0"),
    "picking": BatchSizes(steps=10_000_000, shown=0.25, expects="fractional success 1.0 in P0"),
}


def trained_steps(folder: Path) -> int:
    """Returns the steps that a run has learned from so far."""
    held = Checkpoints(folder / CHECKPOINTS).load()
    return 0 if held is None else held.step


@final
@dataclass(frozen=True, kw_only=True)
@validated
class DeviceTrain:
    """Trains PPO beside many worlds; started again with the same flags, it goes on."""

    task: str
    """A world's id: reaching, pushing, picking, pick_and_place or stacking2 of trifinger."""
    out: Path
    """A folder for checkpoints, curves and the exported policy."""
    algorithm: Annotated[str, one_of(tagged("batch"))] = "ppo"
    """The learner; each has flags of its own: `interverse train --algorithm NAME --help`."""
    device: str = ""
    """cpu (MuJoCo) or cuda (MuJoCo Warp); by default cuda where there is one."""
    steps: int = 0
    """Environment steps in all; 0 for what the task takes on this device."""
    num_envs: int = 0
    """Worlds side by side; 0 for 8,192 on a GPU, and 256 or 1,024 on a CPU."""
    curriculum: int | None = None
    """CausalWorld's: 0 none, 1 goals, 2 everything; by default 1, or 0 beside actors."""
    actor: tuple[str, ...] = ()
    """Actors that draw the starts instead, such as visual or physical_properties:group=block."""
    space: Annotated[SpaceName, one_of(SPACE_NAMES)] = "A"
    """The space that starts are drawn from; B and A_B are the tests', and the run says so."""
    seed: Annotated[int, whole(_LARGEST_SEED, least=0)] = 0
    """The seed of everything."""
    checkpoint_every: Annotated[int, whole(10**12)] = 10_000_000
    """Steps between checkpoints; there is one every five minutes anyhow."""
    seconds: float = 0.0
    """The most that this call may take; 0 for no limit."""
    wandb: str | None = None
    """A project of Weights & Biases that gets the curves too; needs the extra wandb."""
    options: Annotated[dict[str, Any], tyro.conf.Suppress] = field(
        default_factory=lambda: {"skip_frame": 3}
    )
    """Options of the worlds; by default 3 substeps a step, as published."""
    starts: Annotated[int, tyro.conf.Suppress] = 0
    """How many different episode starts are drawn; 0 for the usual number."""
    brief: Annotated[float | None, tyro.conf.Suppress, number(most=1.0)] = None
    """Share of the worlds whose episodes are a fifth as long; the others play whole ones. Worlds
    stand in eight groups, so it is a multiple of 1/8; by default 0.75, or 0 with fewer worlds than
    groups."""
    placed: Annotated[Share, tyro.conf.Suppress] = 0.0
    """Share of the starts at which the first block stands in its goal already."""
    plain: Annotated[Share, tyro.conf.Suppress] = 0.1
    """Share of the starts that the curriculum leaves as the task has them, those of P0, to the
    nearest whole one."""
    initial: Annotated[str, tyro.conf.Suppress] = ""
    """A policy that this learner trained with the same options of the world, for this task or one
    of the same observations, to begin with: one of the package's or a folder."""
    shown: Annotated[float | None, tyro.conf.Suppress, number(most=1.0)] = None
    """Share of the starts on paths of the task's scripted baseline, see
    `interverse.agents.batch.starts`."""
    demonstrations: Annotated[int | None, tyro.conf.Suppress, whole(10_000)] = None
    """Episodes of the baseline that are played for `shown` or the settings' `imitation`, solved or
    not; 256 by default."""
    shaping: Annotated[str, tyro.conf.Suppress] = "progress"
    """The reward that is learned from; see `interverse.agents.batch.shaping`."""
    settings: Annotated[PpoSettings, tyro.conf.Suppress] = field(default_factory=PpoSettings)
    """Hyper-parameters of PPO."""

    def __post_init__(self) -> None:
        device = self.device or usual_device()
        # MuJoCo's worlds on the CPU give Torch tensors here: they are the device "torch" there.
        object.__setattr__(self, "device", "torch" if device == "cpu" else device)
        sizes = self.usual_sizes()
        for name in ("steps", "num_envs", "starts", "shown"):
            given = getattr(self, name)
            if given is None or (given == 0 and name != "shown"):
                object.__setattr__(self, name, getattr(sizes, name))
        check_types(DeviceTrain, {item.name: getattr(self, item.name) for item in fields(self)})
        if self.curriculum is None:
            object.__setattr__(self, "curriculum", 0 if self.actor else 1)
        if self.brief is None:
            object.__setattr__(self, "brief", 0.75 if self.num_envs >= _GROUPS else 0.0)
        check_drawn_at_start(self.drawn())
        for name, most in (("steps", 10**12), ("num_envs", 10**6), ("starts", 10**6)):
            check_whole(getattr(self, name), name, most)
        if self.demonstrations is not None and not self.shown and not self.settings.imitation:
            raise InvalidValueError(
                f"demonstrations is {self.demonstrations}, and none is used",
                fix="Set shown or imitation above 0, or leave out demonstrations",
            )
        groups = (self.brief or 0.0) * _GROUPS
        few = self.num_envs < _GROUPS and 0.0 < groups < _GROUPS
        if few or groups != round(groups):
            raise InvalidValueError(
                f"brief is {self.brief} of {self.num_envs:,} worlds",
                allowed=f"0, 1, and from {_GROUPS} worlds on every multiple of 1/{_GROUPS}",
            )
        for name, many in (("placed", min(self.starts, AT_A_TIME)), ("shown", self.starts)):
            share = getattr(self, name)
            if share and not round(share * many):
                raise InvalidValueError(
                    f"{name} is {share}, and of {many:,} starts that is none",
                    fix=f"Raise {name} or starts, or leave out {name}",
                )
        if self.shaping != "progress":
            raise InvalidValueError(f"shaping is {self.shaping!r}", allowed="progress")
        if self.settings.horizon * self.num_envs < 2:
            raise InvalidValueError(
                "an update has one step of one world", fix="Raise horizon or num_envs"
            )
        # Options that the worlds on the device would not follow are refused.
        check_device_name(self.device)
        for name in ("device", "space"):
            if name in self.options:
                raise InvalidValueError(
                    f"option {name} is {self.options[name]!r}", fix=f"Give {name} itself"
                )
        trifinger.check_device_options(self.world_options(), self.device)

    def usual_sizes(self) -> BatchSizes:
        """Returns the sizes that this task has on this device, unless others are given."""
        name = self.task.partition("/")[2].removesuffix("-v1")
        if self.device == "torch":
            return CPU_SIZES.get(name, BatchSizes())
        learned = name in ("pushing", "picking")  # results/causalworld/h200.json
        return replace(GPU_SIZES, expects=CPU_SIZES[name].expects if learned else "")

    def expects(self) -> str:
        """Returns what a run like this one reached; empty where none was tried."""
        usual = DeviceTrain(task=self.task, out=self.out, device=self.device)
        names = {item.name for item in fields(self)} - {*_FREE, "seed"}
        alike = all(getattr(self, name) == getattr(usual, name) for name in names)
        return self.usual_sizes().expects if alike else ""

    def drawn(self) -> Curriculum:
        """Returns what draws the starts."""
        return training_curriculum(self.curriculum or 0, self.actor, self.space)

    def world_options(self) -> trifinger.TriFingerOptions:
        """Returns the options of the worlds on the device, whole."""
        entry = WORLDS[self.task]
        given = {**entry.options, **self.options, "device": self.device}
        options = parse_options(entry.load().options_type, given)
        if not isinstance(options, trifinger.TriFingerOptions):
            raise InvalidValueError(
                f"{self.task} is no task that ppo learns",
                allowed=f"{', '.join(trifinger.DEVICE_TASKS)} of trifinger",
                fix="Use --algorithm sb3_ppo",
            )
        return options


def usual_device() -> str:
    """Returns "cuda" where a GPU and MuJoCo Warp are there, else "cpu"."""
    if not torch.cuda.is_available():
        return "cpu"
    return "cpu" if importlib.util.find_spec("mujoco_warp") is None else "cuda"


def train_on_device(
    config: DeviceTrain,
    *,
    starts: Starts | None = None,
    shown: Demonstrations | None = None,
    report: Callable[[dict[str, Any]], None] | None = None,
    progress: bool = False,
) -> Path:
    """Trains and returns the folder of the exported policy.

    Args:
        config: the run.
        starts: episode starts of the curriculum drawn before; None draws them here.
        shown: demonstrations made before; None makes them here if the run needs them.
        report: told of the progress, as a row of the learning curve.
        progress: whether to show it on standard error.
    """
    if config.device.startswith("cuda"):
        find_device(config.device)  # drawing starts takes a while
    if config.initial:
        check_initial(_initial_policy(config.initial), config.world_options())  # likewise
    if note := space_note(config.space):
        Console(stderr=True).print(note, soft_wrap=True)
    # Networks this small lose by threads, fifteenfold on busy cores, and sums would depend on them.
    with one_thread(), Display(show=progress) as display:
        if shown is None and (config.shown or config.settings.imitation):
            playing = display.add(f"{config.task}: episodes of the scripted baseline", 1)
            shown = demonstrations_of(config)
            display.end(playing)
        starts = starts or drawn_starts(config)
        if shown is not None and config.shown:
            starts = mixed(starts, shown.starts, config)
        short = round((config.brief or 0.0) * _GROUPS)
        arena = make_arena(
            config.task,
            starts,
            num_worlds=config.num_envs,
            device=config.device,
            groups=[1.0] * (_GROUPS - short) + [_BRIEF] * short,
            options=config.options,
        )
        try:
            return _learn(config, arena, shown, display, report)
        finally:
            arena.close()


def drawn_starts(config: DeviceTrain) -> Starts:
    """Returns the starts of a run; one where all would be the same."""
    curriculum = config.drawn()
    return curriculum_starts(
        config.task,
        curriculum,
        config.starts if curriculum.stages or config.placed else 1,
        seed=region_seed("training", config.seed),
        options={**config.options, "space": config.space},
        placed=config.placed,
        plain=config.plain,
    )


def demonstrations_of(config: DeviceTrain) -> Demonstrations:
    """Returns the demonstrations of a run, which begin where none of its own starts does."""
    return demonstrate(
        config.task,
        config.drawn(),
        _DEMONSTRATIONS if config.demonstrations is None else config.demonstrations,
        seed=region_seed("demonstrations", config.seed),
        options={**config.options, "space": config.space},
        plain=config.plain,
    )


def mixed(starts: Starts, shown: Starts, config: DeviceTrain) -> Starts:
    """Returns as many starts as the run has, a share of them shown, in no order.

    Of either kind as many different ones are taken as there are, and all about equally often.
    """
    draw = generator(seed=config.seed, name="device/mixed_starts").permutation
    count = round((config.shown or 0.0) * config.starts)
    parts = [
        starts.take(np.resize(draw(len(starts)), config.starts - count)),
        shown.take(np.resize(draw(len(shown)), count)),
    ]
    return merge(parts, config.task, config.options).take(draw(config.starts))


def _learn(
    config: DeviceTrain,
    arena: trifinger.DeviceArena,
    shown: Demonstrations | None,
    display: Display,
    report: Callable[[dict[str, Any]], None] | None,
) -> Path:
    """Learns on a built arena, from the folder's checkpoint on; returns the policy's folder."""
    code, every = own_code(config.task, config.options), config.checkpoint_every
    record = run_record(config, arena)
    run = run_of(config, record, code, total=config.steps, display=display, every=every)
    curve: list[dict[str, Any]] = []
    with run:
        learner = DevicePpo(arena, config.settings, seed=config.seed)
        if (saved := run.resume()) is not None:
            try:
                learner.restore(saved.tensors)
            except (KeyError, ValueError, RuntimeError) as error:
                raise FileFormatError(
                    f"the checkpoint in {config.out} is none of this run: {error}",
                    fix="Remove it to begin again",
                ) from error
            curve += saved.record["curve"]
        if shown is not None and config.settings.imitation:
            learner.imitate(*(torch.as_tensor(a) for a in (shown.observations, shown.actions)))
        if config.initial:
            learner.begin_with(_initial_policy(config.initial))

        def state() -> Checkpoint:
            # No checkpoint of worlds whose contacts did not fit. Curve and policy come first: a
            # run that was stopped can be evaluated.
            arena.engine.check_capacity()
            write_json(config.out / _CURVE, curve)
            export(config, learner).save(config.out / "policy")
            return Checkpoint(step=learner.steps, record={"curve": curve}, tensors=learner.save())

        begun, started = learner.steps, time.perf_counter()
        between = _REPORTED * config.settings.horizon * config.num_envs
        clock: list[float] = []  # when the first updates were done
        spent = 0.0
        while learner.steps < config.steps and not (config.seconds and spent > config.seconds):
            kl = learner.advance(config.steps)
            done, spent = learner.steps, time.perf_counter() - started
            if done % between == 0 or done >= config.steps:  # as in a run without a pause
                row = learner.row(kl)
                row |= {"seconds": round(spent, 1), "rate": round((done - begun) / spent)}
                curve.append(row)
                run.log(done, {name: value for name, value in row.items() if name != "steps"})
                run.show(done, f"fraction {row['fraction']:.2f}, success {row['success']:.2f}")
                if report is not None:
                    report(row)
            run.show(done)
            if len(clock) < _FIRST:
                clock.append(spent)
                if len(clock) == _FIRST:
                    rate = (done - begun) * (1 - 1 / _FIRST) / (clock[-1] - clock[0])
                    left = duration((config.steps - done) / rate)
                    reached = f"; expect {told}." if (told := config.expects()) else "."
                    run.say(f"About {left} on this machine, at {rate:,.0f} steps a second{reached}")
            run.keep(done, state)
        if learner.steps < config.steps or not (config.out / "policy").exists():
            run.save(state())
    return config.out / "policy"


def _initial_policy(name: str) -> ExportedPolicy:
    return ExportedPolicy.load(trained_policy(name) if name in TRAINED else Path(name))


def export(config: DeviceTrain, learner: DevicePpo) -> Any:
    """Returns the learner's policy as plain weights and a card that says what trained it."""
    engine = type(learner.arena.engine).__name__
    record = run_record(config, learner.arena)
    trained = trained_by(record, learner.steps, engine=engine, torch=torch.__version__)
    bounds = learner.arena.action_limits(learner.arena.options)
    return learner.network.export(bounds, trained)


def run_record(config: DeviceTrain, arena: trifinger.DeviceArena) -> dict[str, Any]:
    """Returns all that a run is made with, JSON-ready, with the engine and its contacts."""
    more = {
        "horizon": arena.max_steps,
        "engine": {"device": config.device, "contact": arena.options.contact},
    }
    return record_of(config, more, without=_FREE)
