"""Updates of SAC+AUG on a device: plain, graphed, and graphed in lower precisions."""

from __future__ import annotations

import torch

from interverse.agents.pixel.agent import PixelBatch
from interverse.agents.pixel.graphed import GraphedUpdate
from interverse.agents.pixel.networks import PixelSizes
from interverse.agents.pixel.presets import PixelHyper
from interverse.agents.pixel.sac_aug import SacAug
from interverse.bench.measure import WALL, Row, best_seconds
from interverse.models.steps import Precision, autocast, matmul_precision

_UPDATES, _WARM = 40, 12
_SIZES = PixelSizes(pictures=(9, 84), actions=1, filters=32, layers=4, features=50, hidden=1024)


def pixel_updates() -> list[Row]:
    """Returns milliseconds of an update (84 pixels, batch 256) of synthetic data; none on a CPU."""
    if not torch.cuda.is_available():
        return []
    plain = _milliseconds("float32", graphed=False)
    rows = [_row("plain, float32", plain, plain)]
    precisions: tuple[Precision, ...] = ("float32", "tf32", "bf16")
    for precision in precisions:
        taken = _milliseconds(precision, graphed=True)
        rows.append(_row(f"graphed, {precision}", taken, plain))
    return rows


def _row(name: str, taken: float, plain: float) -> Row:
    return Row(
        name=f"SAC+AUG update, {name}",
        metric="time of an update, batch 256 of 84 pixels",
        value=taken,
        unit="ms",
        ratio=taken / plain,
        baseline="the plain update in float32",
        target="2.5 ms a decision",
    )


def _milliseconds(precision: Precision, *, graphed: bool) -> float:
    hyper = PixelHyper()
    agent = SacAug(hyper, _SIZES, 0, "cuda")
    update = GraphedUpdate(agent) if graphed else agent.update
    batch = _batch(hyper.batch)

    def some() -> None:
        with autocast("cuda", precision):
            for _ in range(_UPDATES):
                update(batch)
        torch.cuda.synchronize()

    with matmul_precision(precision):
        for _ in range(_WARM):
            with autocast("cuda", precision):
                update(batch)
        return 1000.0 * best_seconds(some, repeats=3, clock=WALL) / _UPDATES


def _batch(count: int) -> PixelBatch:
    draw = torch.Generator().manual_seed(0)
    channels, side = _SIZES.pictures
    shape = (2, count, channels, side, side)
    seen = torch.randint(0, 256, shape, generator=draw, dtype=torch.uint8)
    numbers = torch.rand((2, count, _SIZES.actions), generator=draw)
    parts = (seen[0], 2 * numbers[0] - 1, numbers[1, :, :1], torch.zeros(count, 1), seen[1])
    return PixelBatch(*parts).to(torch.device("cuda"))
