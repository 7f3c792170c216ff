"""Training pixel agents: `interverse train --algorithm sac_aug`, or `train(PixelTrain(...))`."""

from __future__ import annotations

import functools
import gc
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from interverse._version import __version__
from interverse.agents.pixel.actors import MakeEnv
from interverse.agents.pixel.config import PixelPlan, PixelTrain, check_together, plan
from interverse.agents.pixel.run import PixelRun
from interverse.agents.presets import tracked
from interverse.core.code import stamp_run
from interverse.core.errors import missing_extra
from interverse.core.files.atomic import alone_in, quiet_threads, storage
from interverse.envs import make
from interverse.models.steps import matmul_precision
from interverse.worlds.own_code import own_code

try:
    import torch
except ImportError as error:
    raise missing_extra("torch", "torch") from error


def train(config: PixelTrain, *, make_env: MakeEnv | None = None, progress: bool = False) -> Path:
    """Trains and returns the folder of the exported policy.

    Args:
        config: what to train, and how.
        make_env: makes the environment, where it is no registered world; it must be picklable if
            there is more than one actor.
        progress: whether to show a bar on standard error.
    """
    (folder,) = train_together([config], make_env=make_env, progress=progress)
    return folder


def train_together(
    configs: Sequence[PixelTrain], *, make_env: MakeEnv | None = None, progress: bool = False
) -> list[Path]:
    """Trains several runs side by side in this process; returns the folders of their policies.

    Each run is the same as alone, byte for byte on a CPU. On a GPU each has a stream of its own. If
    one fails, all stop; started again, each goes on from its own checkpoint.

    Args:
        configs: what to train, and how, each in a folder of its own, all with the same device,
            precision and threads.
        make_env: makes the environment of every run, as for `train`.
        progress: whether to show bars on standard error.
    """
    check_together(configs)
    plans = [plan(config) for config in configs]
    beside = len(configs) > 1
    threads = torch.get_num_threads()
    torch.set_num_threads(configs[0].threads)
    try:
        with matmul_precision(configs[0].precision), quiet_threads(), _bars(show=progress) as bars:
            return _in_turn(
                [
                    _training(config, planned, make_env, bars, own_stream=beside)
                    for config, planned in zip(configs, plans, strict=True)
                ]
            )
    finally:
        torch.set_num_threads(threads)


def _bars(*, show: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"))
    more = (TimeRemainingColumn(), TextColumn("{task.fields[score]}"))
    return Progress(*columns, *more, console=Console(stderr=True), disable=not show)


_Training = Generator[None, None, Path]


def _in_turn(trainings: Sequence[_Training]) -> list[Path]:
    """Takes every training a part further in turn until all have ended; returns their folders."""
    folders: dict[int, Path] = {}
    with ExitStack() as stack:
        for training in trainings:
            stack.enter_context(closing(training))
        while len(folders) < len(trainings):
            for number, training in enumerate(trainings):
                if number in folders:
                    continue
                try:
                    next(training)
                except StopIteration as end:
                    folders[number] = end.value
                    gc.collect()  # its memory is free now, not while another records a graph
    return [folders[number] for number in range(len(trainings))]


def _training(
    config: PixelTrain,
    planned: PixelPlan,
    make_env: MakeEnv | None,
    bars: Progress,
    *,
    own_stream: bool,
) -> _Training:
    """Trains one run, pausing wherever others may go on: made, step begun, step finished."""
    learn_in = judge_in = make_env
    if learn_in is None or judge_in is None:
        learn_in = functools.partial(make, config.task, **planned.training_options)
        judge_in = functools.partial(make, config.task, **planned.world_options)
    tracking = tracked(config.wandb, config.out, config.record())
    with alone_in(config.out), storage(config.out), tracking:
        run = PixelRun(config, planned, learn_in, judge_in, own_stream=own_stream)
        with closing(run):
            yield  # nothing is claimed before all could be made
            code = {} if make_env else own_code(config.task, planned.world_options)
            claimed = {**config.record(), "code": code}
            stamp_run(config.out, claimed)
            run.start()
            yield from _learning(config, planned, run, bars)
            trained = {
                "config": config.record(),
                "options": dict(planned.world_options),
                "steps": run.step,
                "version": __version__,
            }
            return run.policy(trained).save(config.out / "policy")


def _learning(
    config: PixelTrain, planned: PixelPlan, run: PixelRun, bars: Progress
) -> Generator[None, None, None]:
    """Learns until the steps are made, with evaluations and checkpoints on the way."""
    name = f"{config.algorithm} {config.task} seed {config.seed}"
    task = bars.add_task(name, total=planned.steps, completed=run.step, score="")
    while run.step < planned.steps:
        before = run.step
        run.begin()
        yield
        run.finish()
        over = run.step >= planned.steps
        if over or before // config.evaluate_every != run.step // config.evaluate_every:
            returns = run.evaluate()
            bars.update(task, score=f"return {sum(returns) / len(returns):.1f}")
        if over or before // config.checkpoint_every != run.step // config.checkpoint_every:
            run.checkpoint()
        bars.update(task, completed=run.step)
        yield
