"""Augmentations of a training batch, 256 stacks of 9x84x84, beside `clone()` of the same batch."""

from __future__ import annotations

import time

from interverse.agents.pixel import AUGMENTATIONS
from interverse.agents.pixel.augment import augmentation
from interverse.bench.measure import WALL, Row, best_pair
from interverse.core.errors import missing_extra

try:
    import torch
except ImportError as error:
    raise missing_extra("torch", "torch") from error

_SHAPE = (256, 9, 84, 84)
_THREADS = 2
_SLOW = {"color_jitter": 1000.0}  # milliseconds allowed on a CPU; others 300
_REPEATS = 4


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
    return Row(
        name=f"augmentation {name}",
        metric=f"milliseconds, 256 stacks of 9x84x84, {_THREADS} threads",
        value=1e3 * ours,
        unit="ms",
        ratio=ours / theirs,
        baseline="clone() of the float32 batch",
        target=f"under {_SLOW.get(name, 300.0):.0f} ms",
    )


def on_gpu(name: str) -> Row:
    """Returns the time of a float32 batch on a GPU; the first calls compile."""
    generator = torch.Generator("cuda").manual_seed(0)
    pictures = torch.rand(_SHAPE, generator=generator, device="cuda") * 255.0
    change = augmentation(name)
    ours = _gpu_seconds(lambda: change(pictures, generator=generator))
    theirs = _gpu_seconds(pictures.clone)
    return Row(
        name=f"augmentation {name} on the GPU",
        metric="milliseconds, 256 stacks of 9x84x84, float32",
        value=1e3 * ours,
        unit="ms",
        ratio=ours / theirs,
        baseline="clone() of the batch",
        target="ratio at most 5",
    )


def _gpu_seconds(call: object, rounds: int = 50) -> float:
    """Returns the best mean of many calls in a row: one alone would time the launch."""
    best = float("inf")
    for _ in range(_REPEATS + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(rounds):
            call()  # type: ignore[operator]
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / rounds)
    return best
