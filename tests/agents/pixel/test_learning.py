"""SAC+AUG learns to balance the pole from pictures, with the small preset on a CPU."""

from __future__ import annotations

import time

import numpy as np
import pytest

import interverse as iv
from interverse.agents.pixel.config import PixelTrain
from interverse.agents.pixel.train import train
from interverse.rollouts.policy import as_policy

TASK = "control/cartpole_balance-v1"
OPTIONS = {"image_size": 64, "frame_stack": 3, "frame_skip": 8}


def returns(policy, episodes: int = 10) -> np.ndarray:
    """Returns the returns of the first episodes of seed 1000."""
    env = iv.make(TASK, **OPTIONS)
    act, totals = as_policy(policy, env.world), []
    for episode in range(episodes):
        seen, _ = env.reset(seed=1000, options={"episode": episode})
        act.reset(np.ones(1, dtype=bool), np.array([1000 + episode]))
        total, done = 0.0, False
        while not done:
            seen, reward, terminated, truncated, _ = env.step(act(seen[None])[0])
            total, done = total + reward, terminated or truncated
        totals.append(total)
    env.close()
    return np.array(totals)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_sac_aug_balances_the_pole(tmp_path):
    start = time.process_time()
    folder = train(PixelTrain(task=TASK, out=tmp_path, threads=2, evaluate_episodes=2))
    learned, chance = returns(folder).mean(), returns("random").mean()
    assert learned >= 1.4 * chance, f"{learned:.0f} against {chance:.0f}"
    assert time.process_time() - start < 2 * 30 * 60, "thirty minutes of two cores"
