"""Training a pixel agent: `interverse train --algorithm sac_aug`, or `train(PixelTrain(...))`."""

from __future__ import annotations

import functools
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from interverse._version import __version__
from interverse.agents.pixel.actors import MakeEnv
from interverse.agents.pixel.config import PixelPlan, PixelTrain, plan
from interverse.agents.pixel.export import export
from interverse.agents.pixel.run import PixelRun
from interverse.agents.presets import tracked
from interverse.core.code import claim_run
from interverse.core.errors import missing_extra
from interverse.core.files.atomic import alone_in, quiet_threads, storage
from interverse.envs import make
from interverse.models.steps import matmul_precision

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
    planned = plan(config)
    learn_in = judge_in = make_env
    if learn_in is None or judge_in is None:
        learn_in = functools.partial(make, config.task, **planned.training_options)
        judge_in = functools.partial(make, config.task, **planned.world_options)
    threads = torch.get_num_threads()
    torch.set_num_threads(config.threads)
    try:
        tracking = tracked(config.wandb, config.out, config.record())
        with (
            matmul_precision(config.precision),
            alone_in(config.out),
            storage(config.out),
            tracking,
            quiet_threads(),
        ):
            run = PixelRun(config, planned, learn_in, judge_in)
            return _train(config, run, planned, show=progress)
    finally:
        torch.set_num_threads(threads)


def _train(config: PixelTrain, run: PixelRun, planned: PixelPlan, *, show: bool) -> Path:
    try:
        claim_run(config.out, config.record(), allow_other_code=config.allow_other_code)
        run.start()
        _learn(config, planned, run, show=show)
        trained = {
            "config": config.record(),
            "options": dict(planned.world_options),
            "steps": run.step,
            "version": __version__,
        }
        policy = export(run.agent, run.observation_space, run.action_space, trained)
        return policy.save(config.out / "policy")
    finally:
        run.close()


def _learn(config: PixelTrain, planned: PixelPlan, run: PixelRun, *, show: bool) -> None:
    """Learns until the steps are made, with evaluations and checkpoints on the way."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"))
    more = (TimeRemainingColumn(), TextColumn("{task.fields[score]}"))
    bar = Progress(*columns, *more, console=Console(stderr=True), disable=not show)
    with bar:
        task = bar.add_task(f"{config.algorithm} {config.task}", total=planned.steps, score="")
        bar.update(task, completed=run.step)
        while run.step < planned.steps:
            before = run.step
            run.advance()
            over = run.step >= planned.steps
            if over or before // config.evaluate_every != run.step // config.evaluate_every:
                returns = run.evaluate()
                bar.update(task, score=f"return {sum(returns) / len(returns):.1f}")
            if over or before // config.checkpoint_every != run.step // config.checkpoint_every:
                run.checkpoint()
            bar.update(task, completed=run.step)
