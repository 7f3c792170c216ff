"""Actors: in this process or in others, the same steps; failures are told."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from interverse.agents.pixel.actors import ActorError, Actors
from tests.agents.pixel.dot import LENGTH, Dot, PlainDot


def play(actors: Actors, steps: int, seed: int = 0):
    draw = np.random.default_rng(seed)
    actions = draw.uniform(-2, 2, (steps, actors.count, 1)).astype(np.float32)
    return [actors.step(action) for action in actions]


def test_an_ended_episode_starts_anew_at_the_next_step():
    actors = Actors(Dot, 1)
    first = actors.reset(seed=4)
    steps = play(actors, LENGTH + 2)
    ages = [int(step.ages[0]) for step in steps]
    assert ages == [*range(1, LENGTH + 1), 0, 1]
    total = sum(float(step.rewards[0]) for step in steps[:LENGTH])
    assert steps[LENGTH - 1].returns[0] == pytest.approx(total)
    assert np.isnan([step.returns[0] for step in steps if step is not steps[LENGTH - 1]]).all()
    assert steps[LENGTH].rewards[0] == 0
    assert not np.array_equal(steps[LENGTH].observations, first), "another episode"
    assert not any(step.terminated[0] for step in steps)
    actors.close()


def test_processes_do_what_one_does():
    """Two in processes equal two alone, and go on from a saved moment as if nothing had been."""
    together = Actors(Dot, 2)
    start = together.reset(seed=7)
    steps = play(together, 15)
    for lane in range(2):
        alone = Actors(Dot, 1)
        assert np.array_equal(alone.reset(seed=7 + lane), start[lane : lane + 1])
        draw = np.random.default_rng(0).uniform(-2, 2, (15, 2, 1)).astype(np.float32)
        for step, action in zip(steps, draw, strict=True):
            mine = alone.step(action[lane : lane + 1])
            assert np.array_equal(mine.observations[0], step.observations[lane])
            assert mine.rewards[0] == step.rewards[lane]
        alone.close()
    saved = together.save()
    after = play(together, 14, seed=1)
    again = together.load(saved)
    assert np.array_equal(again, steps[-1].observations)
    for one, two in zip(after, play(together, 14, seed=1), strict=True):
        for mine, theirs in zip(one, two, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(ActorError, match="contains"):
        together.step(np.full((2, 1), 9.0, dtype=np.float32))
    together.close()


def test_without_snapshots_an_episode_starts_anew():
    actors = Actors(functools.partial(PlainDot, length=5), 1)
    actors.reset(seed=0)
    play(actors, 3)
    (saved,) = actors.save()
    assert saved["moment"] == b""
    seen = actors.load([saved | {"seed": 11}])
    fresh = Actors(PlainDot, 1)
    assert np.array_equal(seen, fresh.reset(seed=11))
    assert actors.step(np.zeros((1, 1), dtype=np.float32)).ages[0] == 1
