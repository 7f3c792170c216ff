"""Training on a device: PPO with checkpoints, resume and an exported policy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from rich.console import Console

from interverse._version import __version__
from interverse.actors.curriculum import Curriculum
from interverse.actors.words import training_curriculum
from interverse.agents.policies import TRAINED, trained_policy
from interverse.core.code import claim_run
from interverse.core.errors import (
    FileFormatError,
    InvalidValueError,
    check_name,
    check_number,
    check_whole,
    explain,
)
from interverse.core.files.atomic import alone_in, storage, write_json
from interverse.core.files.json_text import plain, read_json
from interverse.core.files.tensor_files import read_safetensors, write_safetensors
from interverse.core.rng import generator, region_seed
from interverse.core.type_checks import check_types
from interverse.learning.demonstrations import Demonstrations, demonstrate
from interverse.learning.initial import check_initial
from interverse.learning.ppo import DevicePpo, PpoSettings
from interverse.learning.starts import (
    AT_A_TIME,
    Starts,
    StartShares,
    check_drawn_at_start,
    curriculum_starts,
    make_arena,
    merge,
)
from interverse.rollouts.exported import ExportedPolicy
from interverse.rollouts.policy import space_note
from interverse.scm.variable import SPACE_NAMES, SpaceName
from interverse.sim.warp_device import find_device
from interverse.worlds import WORLDS, trifinger
from interverse.worlds.own_code import own_code
from interverse.worlds.world import check_device_name, parse_options

_GROUPS = 8  # groups of worlds that start at different times
_BRIEF = 0.2  # of a whole episode
_DEMONSTRATIONS = 256  # episodes of the baseline, where they are needed
_LARGEST_SEED = 2**31 - 1
_CHECKPOINT, _CURVE = "checkpoint.safetensors", "curve.json"


def trained_steps(folder: Path) -> int:
    """Returns the steps that a run has learned from so far."""
    path = folder / _CHECKPOINT
    return int(read_safetensors(path)["count"][0]) if path.exists() else 0


@final
@dataclass(frozen=True, kw_only=True)
class DeviceTrain:
    """A run of PPO on a device; started again with the same values, it goes on where it stopped.

    Attributes:
        task: a world's id. out: a folder. device: "cuda", "warp" or "torch".
        curriculum: CausalWorld's 0, 1 or 2; by default 1, or 0 beside actors.
        actor: actors that draw the starts instead, as words; see `interverse.actors.words`.
        space: the space that they draw from.
        steps: in all. seconds: the most this call may take, 0 for no limit.
        num_worlds: side by side. starts: how many different episode starts are drawn.
        seed: of everything. options: of the world; by default 3 substeps a step, as published.
        checkpoint_every: steps between checkpoints, rounded up to updates. settings: of PPO.
        brief: share of the worlds whose episodes are a fifth as long; the others play whole ones.
            Worlds stand in eight groups, so it is a multiple of 1/8; by default 0.75, or 0 with
            fewer worlds than groups.
        placed: share of the starts at which the first block stands in its goal already.
        plain: share of the starts that the curriculum leaves as the task has them, those of P0, to
            the nearest whole one.
        initial: a policy that a device trained with the same options of the world, for this task or
            one of the same observations, to begin with: one of the package's or a folder.
        shown: share of the starts on paths of the task's scripted baseline, see
            `interverse.learning.demonstrations`.
        demonstrations: episodes of the baseline that are played for `shown` or the settings'
            `imitation`, solved or not; 256 by default.
        shaping: the reward that is learned from; see `interverse.learning.shaping`.
        allow_other_code: go on with a folder that other code or libraries began.
    """

    task: str
    out: Path
    device: str = "cuda"
    curriculum: int | None = None
    actor: tuple[str, ...] = ()
    space: SpaceName = "A"
    steps: int = 100_000_000
    seconds: float = 0.0
    num_worlds: int = 8192
    starts: int = 16384
    seed: int = 0
    options: dict[str, Any] = field(default_factory=lambda: {"skip_frame": 3})
    checkpoint_every: int = 10_000_000
    shaping: str = "progress"
    allow_other_code: bool = False
    brief: float | None = None
    placed: float = 0.0
    plain: float = 0.1
    initial: str = ""
    shown: float = 0.0
    demonstrations: int | None = None
    settings: PpoSettings = field(default_factory=PpoSettings)

    def __post_init__(self) -> None:
        check_types(DeviceTrain, {item.name: getattr(self, item.name) for item in fields(self)})
        check_whole(self.seed, "seed", _LARGEST_SEED, least=0)
        check_name("space", self.space, SPACE_NAMES)
        if self.curriculum is None:
            object.__setattr__(self, "curriculum", 0 if self.actor else 1)
        if self.brief is None:
            object.__setattr__(self, "brief", 0.75 if self.num_worlds >= _GROUPS else 0.0)
        check_drawn_at_start(self.drawn())
        for name in ("steps", "checkpoint_every"):
            check_whole(getattr(self, name), name, 10**12)
        for name in ("num_worlds", "starts"):
            check_whole(getattr(self, name), name, 1_000_000)
        if self.demonstrations is not None:
            check_whole(self.demonstrations, "demonstrations", 10_000)
            if not self.shown and not self.settings.imitation:
                raise InvalidValueError(
                    explain(
                        f"demonstrations is {self.demonstrations}, and none is used",
                        fix="Set shown or imitation above 0, or leave out demonstrations",
                    )
                )
        for name in ("brief", "placed", "plain", "shown"):
            check_number(getattr(self, name), name, most=1.0)
        self._check_shares()
        if self.shaping != "progress":
            raise InvalidValueError(explain(f"shaping is {self.shaping!r}", allowed="progress"))
        if self.settings.horizon * self.num_worlds < 2:
            raise InvalidValueError(
                explain("an update has one step of one world", fix="Raise horizon or num_worlds")
            )
        self._check_options()

    def drawn(self) -> Curriculum:
        """Returns what draws the starts."""
        return training_curriculum(self.curriculum or 0, self.actor, self.space)

    def _check_shares(self) -> None:
        """Raises for shares that so many worlds or starts cannot have."""
        groups = (self.brief or 0.0) * _GROUPS
        few = self.num_worlds < _GROUPS and 0.0 < groups < _GROUPS
        if few or groups != round(groups):
            raise InvalidValueError(
                explain(
                    f"brief is {self.brief} of {self.num_worlds:,} worlds",
                    allowed=f"0, 1, and from {_GROUPS} worlds on every multiple of 1/{_GROUPS}",
                )
            )
        for name, many in (("placed", min(self.starts, AT_A_TIME)), ("shown", self.starts)):
            share = getattr(self, name)
            if share and not round(share * many):
                raise InvalidValueError(
                    explain(
                        f"{name} is {share}, and of {many:,} starts that is none",
                        fix=f"Raise {name} or starts, or leave out {name}",
                    )
                )

    def _check_options(self) -> None:
        """Raises for options that the worlds on the device would not follow."""
        check_device_name(self.device)
        for name in ("device", "space"):
            if name in self.options:
                raise InvalidValueError(
                    explain(f"option {name} is {self.options[name]!r}", fix=f"Give {name} itself")
                )
        trifinger.check_device_options(self.world_options(), self.device)

    def world_options(self) -> trifinger.TriFingerOptions:
        """Returns the options of the worlds on the device, whole."""
        entry = WORLDS[self.task]
        given = {**entry.options, **self.options, "device": self.device}
        options = parse_options(entry.load().options_type, given)
        if not isinstance(options, trifinger.TriFingerOptions):
            raise InvalidValueError(
                explain(f"{self.task} has no device form", allowed="tasks of trifinger")
            )
        return options


def train_on_device(
    config: DeviceTrain,
    *,
    starts: Starts | None = None,
    shown: Demonstrations | None = None,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> Path:
    """Trains and returns the folder of the exported policy.

    Args:
        config: the run.
        starts: episode starts of the curriculum drawn before; None draws them here.
        shown: demonstrations made before; None makes them here if the run needs them.
        report: told of the progress, as a row of the learning curve.
    """
    if config.device.startswith("cuda"):
        find_device(config.device)  # drawing starts takes a while
    if config.initial:
        check_initial(_initial_policy(config.initial), config.world_options())  # likewise
    if shown is None and (config.shown or config.settings.imitation):
        shown = demonstrations_of(config)
    if note := space_note(config.space):
        Console(stderr=True).print(note, soft_wrap=True)
    starts = starts or drawn_starts(config)
    if shown is not None and config.shown:
        starts = mixed(starts, shown.starts, config)
    short = round((config.brief or 0.0) * _GROUPS)
    arena = make_arena(
        config.task,
        starts,
        num_worlds=config.num_worlds,
        device=config.device,
        groups=[1.0] * (_GROUPS - short) + [_BRIEF] * short,
        options=config.options,
    )
    try:
        with alone_in(config.out), storage(config.out):
            learner = DevicePpo(arena, config.settings, seed=config.seed)
            return learn(config, learner, report, shown)
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
        shares=StartShares(placed=config.placed, plain=config.plain),
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
    count = round(config.shown * config.starts)
    parts = [
        Starts({name: rows[picked] for name, rows in part.rows.items()})
        for part, picked in (
            (starts, np.resize(draw(len(starts)), config.starts - count)),
            (shown, np.resize(draw(len(shown)), count)),
        )
    ]
    whole = merge(parts, config.task, config.options).rows
    order = draw(config.starts)
    return Starts({name: rows[order] for name, rows in whole.items()})


def learn(
    config: DeviceTrain,
    learner: DevicePpo,
    report: Callable[[dict[str, Any]], None] | None,
    shown: Demonstrations | None = None,
) -> Path:
    """Learns on a built arena, from the folder's checkpoint on; returns the policy's folder."""
    record = run_record(config, learner.arena)
    claimed = {**record, "code": own_code(config.task, config.options)}
    claim_run(config.out, claimed, allow_other_code=config.allow_other_code)
    curve = _resume(config.out, learner)
    if shown is not None and config.settings.imitation:
        learner.imitate(*(torch.as_tensor(a) for a in (shown.observations, shown.actions)))
    if config.initial:
        learner.begin_with(_initial_policy(config.initial))
    saved = learner.steps
    writer = _tensorboard(config.out, learner.steps)

    def told(row: dict[str, Any]) -> None:
        curve.append(row)
        for name, value in row.items() if writer is not None else ():
            if isinstance(value, int | float) and name != "steps":
                writer.add_scalar(name, value, row["steps"])
        if report is not None:
            report(row)

    def updated() -> None:
        nonlocal saved
        if learner.steps >= saved + config.checkpoint_every:
            saved = learner.steps
            _save(config.out, learner, curve)

    learner.learn(config.steps, report=told, updated=updated, seconds=config.seconds)
    _save(config.out, learner, curve)
    if writer is not None:
        writer.close()
    return export(config, learner).save(config.out / "policy")


def _initial_policy(name: str) -> ExportedPolicy:
    return ExportedPolicy.load(trained_policy(name) if name in TRAINED else Path(name))


def _tensorboard(folder: Path, steps: int) -> Any:
    """Returns a writer of curves that go on after `steps`; None where TensorBoard is not there."""
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder / "tensorboard"), purge_step=steps + 1 if steps else None)


def export(config: DeviceTrain, learner: DevicePpo) -> Any:
    """Returns the learner's policy as plain weights and a card that says what trained it."""
    record = run_record(config, learner.arena)
    trained = {"config": record, "steps": learner.steps, "version": __version__}
    trained |= {"engine": type(learner.arena.engine).__name__, "torch": torch.__version__}
    bounds = learner.arena.action_limits(learner.arena.options)
    return learner.network.export(bounds, trained)


def run_record(config: DeviceTrain, arena: trifinger.DeviceArena) -> dict[str, Any]:
    """Returns all that a run is made with, JSON-ready, with the engine and its contacts."""
    record = asdict(config) | {
        "horizon": arena.max_steps,
        "engine": {"device": config.device, "contact": arena.options.contact},
    }
    for name in ("out", "seconds", "allow_other_code", "checkpoint_every"):
        del record[name]
    return dict(plain(record))


def _save(folder: Path, learner: DevicePpo, curve: list[dict[str, Any]]) -> None:
    """Writes the learning curve, then the checkpoint that makes it count."""
    learner.arena.engine.check_capacity()  # no checkpoint of worlds whose contacts did not fit
    write_json(folder / _CURVE, curve)
    write_safetensors(folder / _CHECKPOINT, learner.save())


def _resume(folder: Path, learner: DevicePpo) -> list[dict[str, Any]]:
    """Loads the folder's checkpoint, if there is one; returns the learning curve so far."""
    if not (folder / _CHECKPOINT).exists():
        return []
    saved = read_safetensors(folder / _CHECKPOINT)
    try:
        learner.restore(saved)
    except (KeyError, ValueError, RuntimeError) as error:
        raise FileFormatError(
            explain(
                f"{folder / _CHECKPOINT} is no checkpoint of this run: {error}",
                fix="Remove it to begin again",
            )
        ) from error
    curve: list[dict[str, Any]] = read_json(folder / _CURVE)
    return [row for row in curve if row["steps"] <= learner.steps]
