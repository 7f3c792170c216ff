"""Learning from pictures: augmentations of a batch, updates and decisions of SAC+AUG.

Augmentations of 256 stacks of 9x84x84 stand beside `clone()` of the same batch. Updates are made in
several precisions, decisions with acting and drawing, on a GPU.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import torch

from interverse.agents.pixel import AUGMENTATIONS
from interverse.agents.pixel.agent import PixelBatch, PixelHyper
from interverse.agents.pixel.augment import augmentation
from interverse.agents.pixel.config import PixelTrain, plan
from interverse.agents.pixel.graphed import GraphedUpdate
from interverse.agents.pixel.networks import PixelSizes
from interverse.agents.pixel.train import PixelRun
from interverse.agents.pixel.views import SacAug
from interverse.bench.measure import WALL, Row, best_pair, best_seconds, finished, time_row
from interverse.envs import make
from interverse.models.steps import Precision, autocast, check_device, matmul_precision

_SHAPE = (256, 9, 84, 84)
_THREADS = 2
_SLOW = {"color_jitter": 1000.0}  # milliseconds allowed on a CPU; others 300
_REPEATS = 4
_UPDATES, _WARM = 40, 12
_TASK, _ACTORS = "control/cartpole_balance-v1", 8
_TOGETHER = (2, 4)  # runs side by side; they share the actors
_DECISIONS = 2_000  # measured ones, after the warm-up and the recording of the graphs
_SIZES = PixelSizes(pictures=(9, 84), actions=1, filters=32, layers=4, features=50, hidden=1024)


def augment() -> list[Row]:
    """Returns milliseconds per batch of every augmentation, on the GPU too where there is one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(_THREADS)
    try:
        rows = [on_cpu(name) for name in AUGMENTATIONS]
    finally:
        torch.set_num_threads(threads)
    if torch.cuda.is_available():
        rows += [on_gpu(name) for name in AUGMENTATIONS]
    return rows


def on_cpu(name: str) -> Row:
    """Returns the time of a uint8 batch on two threads."""
    generator = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 256, _SHAPE, dtype=torch.uint8, generator=generator)
    floats = pictures.float()
    change = augmentation(name)
    ours, theirs = best_pair(
        lambda: change(pictures, generator=generator), floats.clone, repeats=_REPEATS, clock=WALL
    )
    metric = f"milliseconds, 256 stacks of 9x84x84, {_THREADS} threads"
    told = {"baseline": "clone() of the float32 batch"}
    target = f"under {_SLOW.get(name, 300.0):.0f} ms"
    return time_row(f"augmentation {name}", metric, ours, theirs, **told, target=target)


def on_gpu(name: str) -> Row:
    """Returns the time of a float32 batch on a GPU; the first calls compile."""
    generator = torch.Generator("cuda").manual_seed(0)
    pictures = torch.rand(_SHAPE, generator=generator, device="cuda") * 255.0
    change = augmentation(name)

    def taken(call: Callable[[], object]) -> float:  # in a row: one alone would time the launch
        return best_seconds(lambda: [call() for _ in range(50)], warm=0, clock=finished) / 50

    ours, theirs = taken(lambda: change(pictures, generator=generator)), taken(pictures.clone)
    metric = "milliseconds, 256 stacks of 9x84x84, float32"
    told = {"baseline": "clone() of the batch", "target": "ratio at most 5"}
    return time_row(f"augmentation {name} on the GPU", metric, ours, theirs, **told)


def pixel_updates() -> list[Row]:
    """Returns milliseconds of updates of synthetic data and of decisions; needs a GPU."""
    check_device("cuda")
    taken = {"update, plain, float32": _update_seconds("float32", graphed=False)}
    precisions: tuple[Precision, ...] = ("float32", "tf32", "bf16")
    for precision in precisions:
        taken[f"update, graphed, {precision}"] = _update_seconds(precision, graphed=True)
    compiled = _update_seconds("bf16", graphed=True, compiled=True)
    taken["update, graphed, bf16, compiled"] = compiled
    for runs in (1, *_TOGETHER):
        with tempfile.TemporaryDirectory() as folder:
            made = decision(folder, runs=runs, actors=_ACTORS // runs) / 1000.0
        side_by_side = "" if runs == 1 else f", {runs} runs side by side"
        taken[f"decision, bf16, compiled, drawing beside learning{side_by_side}"] = made
    metric, plain = "wall-clock time, batch 256 of 84 pixels", taken["update, plain, float32"]
    told = {"baseline": "the plain update in float32", "target": "2.5 ms a decision"}
    return [
        time_row(f"SAC+AUG {name}", metric, seconds, plain, **told)
        for name, seconds in taken.items()
    ]


def decision(
    folder: str,
    device: str = "cuda",
    *,
    decisions: int = _DECISIONS,
    actors: int = _ACTORS,
    runs: int = 1,
    **more: int,
) -> float:
    """Returns milliseconds of a decision in training: act, step, draw, and one update.

    Of several runs side by side it is the time in which any of them makes the next decision.

    Args:
        folder: for the runs.
        device: where they learn.
        decisions: how many are measured, of all runs together.
        actors: worlds of a run that are stepped and drawn side by side.
        runs: how many are trained side by side, as `train_together` does.
        **more: hyper-parameters other than the paper's.
    """
    config = PixelTrain(
        task=_TASK,
        out=Path(folder),
        preset="paper",
        actors=actors,
        device=device,
        precision="bf16",
        overlap=True,
        compiled=device == "cuda",
        hyper={"capacity": 20_000, **more},
    )
    planned = plan(config)
    world = functools.partial(make, _TASK, **planned.training_options)
    with matmul_precision("bf16"), ExitStack() as stack:
        held = []
        for seed in range(runs):
            one = replace(config, seed=seed, out=Path(folder) / str(seed))
            run = PixelRun(one, planned, world, own_stream=runs > 1)
            held.append(stack.enter_context(closing(run)))
            run.start()

        def advance() -> int:
            for run in held:
                run.begin()
            for run in held:
                run.finish()
            return sum(run.step for run in held)

        while held[0].step < planned.hyper.warm_up + decisions // 5:
            advance()
        start, before = finished(), sum(run.step for run in held)
        while (made := advance() - before) < decisions:
            pass
        return 1000.0 * (finished() - start) / made


def _update_seconds(precision: Precision, *, graphed: bool, compiled: bool = False) -> float:
    agent = SacAug(PixelHyper(), _SIZES, 0, "cuda")
    if compiled:
        agent.compile()
    update = GraphedUpdate(agent) if graphed else agent.update
    draw, count = torch.Generator().manual_seed(0), PixelHyper().batch
    channels, side = _SIZES.pictures
    shape = (2, count, channels, side, side)
    seen = torch.randint(0, 256, shape, generator=draw, dtype=torch.uint8)
    numbers = torch.rand((2, count, _SIZES.actions), generator=draw)
    parts = (seen[0], 2 * numbers[0] - 1, numbers[1, :, :1], torch.zeros(count, 1), seen[1])
    batch = PixelBatch(*parts).to(torch.device("cuda"))

    def some(updates: int = _UPDATES) -> None:
        with autocast("cuda", precision):
            for _ in range(updates):
                update(batch)

    with matmul_precision(precision):
        some(_WARM)
        return best_seconds(some, repeats=3, clock=finished) / _UPDATES
