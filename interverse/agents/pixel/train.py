"""Training pixel agents: `interverse train --algorithm sac_aug`, or `train(PixelTrain(...))`."""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from interverse._version import __version__
from interverse.agents.pixel.actors import MakeEnv
from interverse.agents.pixel.config import PixelPlan, PixelTrain, check_together, plan
from interverse.agents.pixel.run import CURVES, PixelRun
from interverse.core.errors import missing_extra
from interverse.core.files.atomic import storage, write_json
from interverse.core.files.checkpoints import Checkpoint
from interverse.core.run import Display, Run, patient_interrupt
from interverse.envs import make
from interverse.models.steps import matmul_precision
from interverse.rollouts.saved import POLICY_FOLDER
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
        progress: whether to show it on standard error.
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
        progress: whether to show it on standard error.
    """
    check_together(configs)
    plans = [plan(config) for config in configs]
    beside = len(configs) > 1
    threads = torch.get_num_threads()
    torch.set_num_threads(configs[0].threads)
    try:
        with (
            matmul_precision(configs[0].precision),
            patient_interrupt() as stop,  # held until the last run has stopped
            Display(show=progress, unit="decisions") as display,
        ):
            return _in_turn(
                [
                    _training(config, planned, make_env, display, own_stream=beside)
                    for config, planned in zip(configs, plans, strict=True)
                ],
                stop,
            )
    finally:
        torch.set_num_threads(threads)


_Training = Generator[None, None, Path]


def _in_turn(trainings: Sequence[_Training], stop: threading.Event) -> list[Path]:
    """Takes every training a part further in turn until all have ended; returns their folders.

    Where they are asked to stop, each does with a checkpoint of its own.
    """
    folders: dict[int, Path | None] = {}
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
                except KeyboardInterrupt:
                    if not stop.is_set():
                        raise
                    folders[number] = None
    found = [folder for _, folder in sorted(folders.items()) if folder is not None]
    if len(found) < len(trainings):
        raise KeyboardInterrupt
    return found


def _training(
    config: PixelTrain,
    planned: PixelPlan,
    make_env: MakeEnv | None,
    display: Display,
    *,
    own_stream: bool,
) -> _Training:
    """Trains one run, pausing wherever others may go on: made, step begun, step finished."""
    learn_in = judge_in = make_env
    if learn_in is None or judge_in is None:
        learn_in = functools.partial(make, config.task, **planned.training_options)
        judge_in = functools.partial(make, config.task, **planned.world_options)
    name = f"{config.algorithm} {config.task} seed {config.seed}"
    with (
        storage(config.out),
        closing(PixelRun(config, planned, learn_in, judge_in, own_stream=own_stream)) as run,
    ):
        yield  # nothing is claimed before all could be made
        code = {} if make_env else own_code(config.task, planned.world_options)
        keeper = Run(
            config.out,
            {**config.record(), "code": code},
            title=name,
            total=planned.steps,
            every=config.checkpoint_every,
            display=display,
            wandb=config.wandb,
        )

        def policy() -> Path:
            trained = {
                "config": config.record(),
                "options": dict(planned.world_options),
                "steps": run.step,
                "version": __version__,
            }
            return run.policy(trained).save(config.out / POLICY_FOLDER)

        def state() -> Checkpoint:
            # Curves and policy come first: a run that was stopped can be evaluated.
            write_json(config.out / CURVES, run.curves)
            policy()
            return run.checkpoint()

        with keeper:
            run.start(keeper)
            while run.step < planned.steps:
                before = run.step
                run.begin()
                yield
                run.finish()
                over = run.step >= planned.steps
                if over or before // config.evaluate_every != run.step // config.evaluate_every:
                    run.evaluate()
                keeper.show(run.step)
                keeper.keep(run.step, state)
                yield
            return policy()
