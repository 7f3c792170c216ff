"""Actions in radians, shown and paid for, are limited by the joints and not by [-1, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from interverse.actors.curriculum import paper_curriculum

torch = pytest.importorskip("torch")

from interverse.agents.batch.ppo import DevicePpo, PpoSettings  # noqa: E402
from interverse.agents.batch.shaping import WEIGHTS  # noqa: E402
from interverse.agents.batch.starts import curriculum_starts, make_arena  # noqa: E402
from interverse.worlds.trifinger import DeviceArena  # noqa: E402

TASK = "trifinger/pushing-v1"
SMALL = PpoSettings(horizon=4, epochs=1, minibatches=1, hidden=(8,), imitation=0.5)


def learner(**options: Any) -> DevicePpo:
    given = {"skip_frame": 1, "contact": "convex", **options}
    starts = curriculum_starts(TASK, paper_curriculum(0), 1, seed=0, options=given)
    arena = make_arena(TASK, starts, num_worlds=2, device="torch", options=given)
    return DevicePpo(arena, SMALL, seed=0)


@pytest.mark.parametrize("normalised", [True, False])
def test_shown_actions_are_kept_up_to_the_limits(
    normalised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interverse.agents.batch.ppo._CLONE_STEPS", 1)
    mine = learner(normalize_actions=normalised)
    low, high = (np.array(b) for b in DeviceArena.action_limits(mine.arena.options))
    assert (high == 1.0).all() == normalised
    beyond = torch.as_tensor(np.stack([2.0 * low, 0.9 * low, 2.0 * high]), dtype=torch.float32)
    mine.imitate(torch.zeros(3, mine.arena.layout.width), beyond)
    assert mine._shown is not None
    np.testing.assert_allclose(mine._shown[1], [low, 0.9 * low, high], rtol=1e-6)


def test_effort_counts_radians_up_to_the_limits() -> None:
    mine = learner(normalize_actions=False)
    low, high = DeviceArena.action_limits(mine.arena.options)
    before = mine.arena.view()
    earned = []
    for action in (torch.zeros(2, 9), torch.full((2, 9), 50.0)):
        mine.arena.step = lambda _: None  # type: ignore[method-assign]
        mine._advance(0, before, action)
        earned.append(mine._buffer.rewards[0].clone() / SMALL.reward_scale)
    paid = WEIGHTS.effort * float(np.mean(np.square(high)))
    np.testing.assert_allclose(earned[0] - earned[1], paid, atol=1e-5)
    assert min(low) < -1.0
