"""An episode whose physics diverges is recorded, and the others are as without it."""

from __future__ import annotations

import pytest

import interverse as iv
from interverse.envs.driver import Driver
from interverse.sim import SimulationError

SETTINGS = dict(task="tutorial/slider-v1", protocols="P1", episodes=4, max_steps=6)


@pytest.mark.parametrize("lost", [{1}, {0, 3}, {0, 1, 2, 3}])
def test_a_diverged_episode_is_a_row_with_its_reason(monkeypatch, lost):
    whole = iv.evaluate("random", **SETTINGS).data.to_pylist()
    step = Driver.step

    def diverges(self, *args, **kwargs):
        broken = [i for i, e in enumerate(self.episodes.tolist()) if e in lost]
        if broken and self.steps[0] == 2:
            raise SimulationError("the physics of a world broke down", broken)
        return step(self, *args, **kwargs)

    monkeypatch.setattr(Driver, "step", diverges)
    results = iv.evaluate("random", **SETTINGS)
    rows = results.data.to_pylist()
    for number, row in enumerate(rows):
        if number in lost:
            assert row["refused"]
            assert row["reason"].startswith("diverged: the physics")
            assert row["return"] is None
        else:
            assert row == whole[number]
