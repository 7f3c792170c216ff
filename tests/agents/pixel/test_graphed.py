"""Graphed updates: plain on a CPU, bit for bit the same arithmetic on a GPU."""

import pytest
import torch

from interverse.agents.pixel.agent import PixelBatch, PixelHyper
from interverse.agents.pixel.graphed import GraphedUpdate
from interverse.agents.pixel.networks import PixelSizes
from interverse.agents.pixel.views import SacAug
from interverse.bench.learning import decision

SIZES = PixelSizes(pictures=(9, 32), actions=2, filters=4, layers=2, features=8, hidden=16)


def agent(device="cpu"):
    return SacAug(PixelHyper(batch=8), SIZES, 3, device)


def batches(count, device="cpu"):
    draw = torch.Generator().manual_seed(0)
    for _ in range(count):
        seen = torch.randint(0, 256, (2, 8, 9, 32, 32), generator=draw, dtype=torch.uint8)
        numbers = torch.rand((3, 8, 2), generator=draw)
        parts = (seen[0], numbers[0] * 2 - 1, numbers[1, :, :1], torch.zeros(8, 1), seen[1])
        yield PixelBatch(*parts).to(torch.device(device))


def differing(one, other):
    mine, theirs = one.state(), other.state()
    return [name for name in mine if not torch.equal(mine[name], theirs[name])]


def test_on_a_cpu_updates_run_plainly():
    plain, graphed = agent(), agent()
    update = GraphedUpdate(graphed)
    for batch in batches(6):
        expected, found = plain.update(batch), update(batch)
        assert {n: float(v) for n, v in expected.items()} == {n: float(v) for n, v in found.items()}
    assert graphed.updates == plain.updates == 6
    assert differing(plain, graphed) == []


@pytest.mark.parametrize("runs", [1, 2])
def test_a_decision_is_measured_with_acting_and_drawing(tmp_path, runs):
    tiny = {"image_size": 32, "render_size": 32, "filters": 4, "layers": 2, "features": 8}
    few = {"decisions": 8, "actors": 1, "batch": 8, "warm_up": 8}
    taken = decision(str(tmp_path), "cpu", hidden=16, runs=runs, **few, **tiny)
    assert 0.0 < taken < 60_000.0


@pytest.mark.gpu
def test_on_a_gpu_replays_equal_plain_updates():
    plain, graphed = agent("cuda"), agent("cuda")
    update = GraphedUpdate(graphed)
    for batch in batches(16, "cuda"):
        expected, found = plain.update(batch), update(batch)
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5)
    assert graphed.updates == plain.updates == 16
    assert all(update._programs[k]._recorded for k in (0, 1))
    mine, theirs = graphed.state(), plain.state()
    assert torch.equal(mine["generator"], theirs["generator"]), "the same random numbers"
    for name in mine:
        torch.testing.assert_close(mine[name], theirs[name], rtol=1e-3, atol=1e-4)
