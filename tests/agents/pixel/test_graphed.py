"""Graphed updates: plain on a CPU, bit for bit the same arithmetic on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interverse.agents.pixel.agent import PixelBatch, PixelHyper
from interverse.agents.pixel.graphed import GraphedUpdate
from interverse.agents.pixel.networks import PixelSizes
from interverse.agents.pixel.replay import PixelMoment, Replay
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


def test_a_draw_is_gathered_where_the_frames_are():
    buffer, rng = Replay(capacity=40, lanes=2, frame=(3, 8, 8), actions=2, stack=3), rng_of(1)
    for time in range(15):
        frames = rng.integers(0, 256, (2, 3, 8, 8), dtype=np.uint8)
        ages = np.array([time, time % 6])
        acted, earned = rng.random((2, 2), np.float32), rng.random(2, np.float32)
        buffer.add(PixelMoment(frames, ages, acted, earned, np.array([False, time % 6 == 5])))
    drawn, sampled = buffer.gather(buffer.draw(16, rng_of(2))), buffer.sample(16, rng_of(2))
    assert all(torch.equal(*parts) for parts in zip(drawn, sampled, strict=True))
    assert torch.equal(drawn.observations[:, 3:], drawn.successors[:, :6]), "they share frames"
    assert not torch.equal(drawn.observations[:, :3], drawn.successors[:, 6:])
    assert set(drawn.ends.unique().tolist()) <= {0.0, 1.0}


def test_returns_of_several_steps_are_discounted_and_stay_in_their_episode():
    buffer = Replay(capacity=40, lanes=1, frame=(3, 4, 4), actions=1, stack=2, discounts=(1.0, 0.5))
    for time in range(30):
        frame = np.full((1, 3, 4, 4), time, dtype=np.uint8)
        acted = np.full((1, 1), time, np.float32)
        earned = np.array([10.0 + time], np.float32)
        buffer.add(PixelMoment(frame, np.array([time % 7]), acted, earned, np.array([False])))
    batch = buffer.sample(64, rng_of(0))
    time = batch.actions[:, 0]
    assert torch.equal(batch.observations[:, 3, 0, 0].float(), time)
    assert torch.equal(batch.successors[:, 3, 0, 0].float(), time + 2)
    assert torch.equal(batch.rewards[:, 0], 10 + time + 0.5 * (11 + time))
    assert set((time % 7).tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}, "none leaves its episode"


def rng_of(seed):
    return np.random.default_rng(seed)


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
