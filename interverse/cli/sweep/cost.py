"""Cost of a sweep: seconds and bytes of each cell, from finished ones or from a short trial.

A trial steps the cell's worlds and learns from them for a second or two; it writes to a folder that
is gone afterwards. Runs on a device and on pictures are not tried: they are known once one of their
kind is finished.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from rich.filesize import decimal
from rich.table import Column, Table

from interverse.cli.sweep import cell as cells
from interverse.cli.sweep.plan import SweepCell
from interverse.cli.sweep.run import folder_of
from interverse.cli.train import training
from interverse.core.files.atomic import scratch_folder
from interverse.envs import make, make_vec
from interverse.protocols.select import select_protocols
from interverse.protocols.unit import ROWS
from interverse.results.schema import SCORES

_TRIED = 0.5  # seconds of play that tell the speed of an evaluation
_BYTES = 60 * (len(SCORES) + 6)  # of an episode's row, in its unit's file and in two tables


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCost:
    """What a cell takes; None where nothing is known."""

    steps: int | None
    episodes: int
    seconds: float | None
    bytes: float | None


def sweep_costs(plan: Sequence[SweepCell], root: Path) -> dict[str, tuple[str, SweepCost]]:
    """Returns how far each cell is, by name, and what it takes in all."""
    known: dict[tuple[str, ...], SweepCost] = {}
    found = {}
    for cell in plan:
        kind = (cell.task, *_without_seed(cell))
        if kind not in known:
            same = [other for other in plan if (other.task, *_without_seed(other)) == kind]
            known[kind] = _cost(cell, [folder_of(root, other) for other in same])
        found[cell.name] = _state(folder_of(root, cell)), known[kind]
    return found


def cost_table(costs: Mapping[str, tuple[str, SweepCost]], workers: int) -> Table:
    """Returns the cells as a table: how far each is, and what is left to spend."""
    table = Table(Column("cell", overflow="fold"), "state", "steps", "episodes", "time", "disk")
    seconds = size = 0.0
    guessed = False
    for name, (state, cost) in costs.items():
        guessed |= cost.seconds is None
        if state != "finished":
            seconds, size = seconds + (cost.seconds or 0.0), size + (cost.bytes or 0.0)
        table.add_row(
            name,
            state,
            "?" if cost.steps is None else f"{cost.steps:,}",
            f"{cost.episodes:,}",
            _time(cost.seconds),
            "?" if cost.bytes is None else decimal(round(cost.bytes)),
        )
    table.add_section()
    more = " and more" if guessed else ""
    table.add_row(
        f"{len(costs)} cells",
        "to do",
        "",
        "",
        _time(seconds / workers) + more,
        decimal(round(size)),
    )
    return table


def _without_seed(cell: SweepCell) -> tuple[str, ...]:
    place = cell.train.index("--seed")
    return (*cell.train[:place], *cell.train[place + 2 :])


def _state(folder: Path) -> str:
    if cells.is_finished(folder):
        return "finished"
    if (folder / cells.FAILED_FILE).exists():
        return "failed"
    return "begun" if (folder / "train.json").exists() else "new"


def _cost(cell: SweepCell, alike: Sequence[Path]) -> SweepCost:
    """Returns what a finished cell of the kind took, or what a trial says."""
    asked = cell.evaluation()
    episodes = asked["episodes"] * len(select_protocols(cell.task, asked["protocols"]))
    settings, _ = training(cell.command(Path(cell.name)))
    for folder in alike:
        record = cells.read_record(folder)
        if record is not None and record.get("seconds") and cells.is_finished(folder):
            return SweepCost(
                steps=settings.steps,
                episodes=episodes,
                seconds=sum(record["seconds"]),
                bytes=float(sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())),
            )
    told = ("episodes", "metrics", "protocols", "seed")
    options = {n: v for n, v in asked.items() if n not in told}
    played = episodes * _seconds_per_episode(cell.task, {**settings.options, **options})
    learned, size = _trial(settings) if hasattr(settings, "her") else (None, None)
    return SweepCost(
        steps=settings.steps,
        episodes=episodes,
        seconds=None if learned is None else learned * settings.steps + played,
        bytes=None if size is None else size + episodes * _BYTES,
    )


def _seconds_per_episode(task: str, options: dict[str, Any]) -> float:
    """Returns what an episode of an evaluation takes, from a moment of random play."""
    single = make(task, **options)
    length = int(single.unwrapped.world.max_steps)  # type: ignore[attr-defined]
    single.close()
    env = make_vec(task, ROWS, **options)
    try:
        env.reset(seed=0)
        env.step(env.action_space.sample())
        started, steps = time.monotonic(), 0
        while time.monotonic() - started < _TRIED:
            env.step(env.action_space.sample())
            steps += 1
        return (time.monotonic() - started) / steps * length / ROWS
    finally:
        env.close()


def _trial(settings: Any) -> tuple[float, float]:
    """Returns seconds per step and bytes on disk of a Stable-Baselines3 run, from a short one."""
    from stable_baselines3.common.logger import Logger

    from interverse.agents import training_state
    from interverse.agents.train import make_env, make_model

    env = make_env(settings)
    model: Any = make_model(settings, env)
    model.set_logger(Logger(None, []))
    try:
        steps = _shortened(model)
        model.learn(steps)
        started, before = time.monotonic(), model.num_timesteps
        model.learn(steps, reset_num_timesteps=False)
        spent = (time.monotonic() - started) / (model.num_timesteps - before)
        with scratch_folder() as folder:
            training_state.save(model, env, folder / "checkpoint", None)
            size = sum(path.stat().st_size for path in folder.rglob("*"))
        return spent, float(size + _growth(model, settings.steps))
    finally:
        env.close()


def _shortened(model: Any) -> int:
    """Lets a model learn as early as it can; returns the steps that make it learn once."""
    if hasattr(model, "rollout_buffer"):  # on policy: two minibatches instead of a whole batch
        short = max(2, -(-2 * model.batch_size // model.n_envs))
        if short < model.n_steps:
            model.n_steps = short
            model._setup_model()
        return int(model.n_steps * model.n_envs)
    if not hasattr(model.replay_buffer, "ep_length"):  # hindsight needs whole episodes
        model.learning_starts = min(model.learning_starts, 100)
    return int(model.learning_starts + 50 * model.n_envs)


def _growth(model: Any, steps: int) -> int:
    """Returns the bytes that a replay buffer still grows by until the end of a run."""
    buffer = getattr(model, "replay_buffer", None)
    if buffer is None:
        return 0
    rows = min(buffer.buffer_size, steps // model.n_envs) - buffer.pos
    names = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
    parts = [getattr(buffer, name) for name in names]
    flat = [p for part in parts for p in (part.values() if isinstance(part, dict) else [part])]
    return int(rows * sum(array[0].nbytes for array in flat))


def _time(seconds: float | None) -> str:
    """Returns a time for a reader.

    >>> [_time(s) for s in (None, 4.2, 75, 7300)]
    ['?', '4 s', '1 min 15 s', '2 h 1 min']
    """
    if seconds is None:
        return "?"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
