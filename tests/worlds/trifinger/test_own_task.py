"""A task that owns its goal: its score sees a variable of its own, and says what causes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import interverse as iv
from interverse.rollouts.laws import check_laws
from interverse.worlds.trifinger.scene import Block
from tests.worlds.trifinger.clearing import RING, Clearing

ID = "tests.worlds.trifinger.clearing:lab/clearing-v1"


def test_its_score_sees_its_own_variable():
    env = iv.make(ID, info_solution=True)
    env.reset(seed=0)
    values = env.unwrapped.values
    assert values["fractional_success"] == pytest.approx(0.05 / 0.12)
    outcome = env.unwrapped.do({RING: 0.1})
    assert outcome.changed == {RING, "fractional_success"}
    assert values["fractional_success"] == pytest.approx(0.5)
    *_, info = env.step(np.zeros(9, dtype=np.float32))
    assert info["desired_goal"].tolist() == [0.1]
    env.unwrapped.do(info["solution"], check=False)
    assert values["fractional_success"] == 1.0
    graph = env.unwrapped.graph
    assert graph.parents("fractional_success") == {RING, "block_0/cartesian_position"}
    assert graph.parents("reward") == {"fractional_success"}
    env.close()


@pytest.mark.slow
def test_it_keeps_every_law():
    broken = [law for law in check_laws(ID) if not law.passed]
    assert broken == []


def test_it_is_asked_again_for_every_world(monkeypatch):
    """What tasks of the package say is remembered; one's own may have changed meanwhile."""
    scene = Clearing.scene
    place = "block_0/cartesian_position"
    before = iv.make(ID).values[place]
    moved = (Block(position=(0.05, 0.0, 0.0325), mass=0.02),)
    monkeypatch.setattr(Clearing, "scene", lambda task: replace(scene(task), blocks=moved))
    assert iv.make(ID).values[place][0] == 0.05 != before[0]
