"""SAC+AUG learns to balance the pole from pictures, with the small preset on a CPU."""

from __future__ import annotations

import json
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
    """Returns the returns of the first episodes of seed 1000, each of its whole length."""
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


@pytest.mark.parametrize(
    ("name", "agent", "file", "every"),
    [
        ("TD-MPC2", "tdmpc2", "h200.json", 1000),
        ("SODA (one random filter a batch)", "soda", "small.json", 500),
        ("SVEA", "svea", "small.json", 500),
        ("SGQN", "sgqn", "small.json", 500),
    ],
)
def test_the_printed_curves_are_those_of_the_runs(repository, name, agent, file, every):
    held = json.loads((repository / "results" / "dmcr" / file).read_text())["runs"]
    (run,) = [run for run in held if run["agent"] == agent]
    ends, returns = np.array(run["training_returns"]).T
    parts = range(every, run["decisions"] + 1, every)
    means = [returns[(ends > at - every) & (ends <= at)].mean() for at in parts]
    words = [f"{at:,}: {mean:.0f}" for at, mean in zip(parts, means, strict=True)]
    page = (repository / "results" / "dmcr" / "curves.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {name} | ")]
    assert ", ".join(words) in row.replace(" (random)", "")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_sac_aug_balances_the_pole(tmp_path):
    start = time.process_time()
    folder = train(PixelTrain(task=TASK, out=tmp_path / "run", evaluate_episodes=2))
    spent = time.process_time() - start
    # A network that has learned nothing hardly acts, which already beats random pushing.
    beginner = train(PixelTrain(task=TASK, out=tmp_path / "start", steps=1, evaluate_episodes=1))
    learned, chance, idle = (returns(who).mean() for who in (folder, "random", beginner))
    score = f"{learned:.0f}, random {chance:.0f}, untrained {idle:.0f}, {spent:.0f} CPU seconds"
    print(score)
    assert learned >= 1.4 * chance, score
    assert learned > idle, score
    assert spent < 30 * 60, "thirty minutes of one core: " + score
