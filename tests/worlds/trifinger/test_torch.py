"""A world of Torch tensors is the world of NumPy arrays."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.core.rng import Noise
from interverse.worlds.trifinger.tasks import TASKS

torch = pytest.importorskip("torch")

DO = {
    "towers": {"tower/counts": (1, 2, 2), "tower/dims": (0.08, 0.1, 0.1)},
    "reaching": {"obstacles/count": 3},
    "pick_and_place": {"obstacle/size": (0.5, 0.015, 0.05)},
    "stacking2": {"goal_tower/cylindrical_position": (0.08, 1.0, 0.065)},
    "general": {"general/count": 3},
}


def as_numpy(part):
    return np.asarray(part)


def play(task, device):
    """Returns everything an episode of two worlds gives, with interventions on one and on both."""
    env = iv.make_vec(f"trifinger/{task}-v1", num_envs=2, device=device, threads=1)
    given = DO.get(task, {"block_0/mass": 0.04})
    seen = [env.reset(seed=3, options={"do": given})[0]]
    actions = np.random.default_rng(0).uniform(-1, 1, (4, 2, 9)).astype(np.float32)
    inner = env.unwrapped
    for action in actions:
        observation, reward, *_ = env.step(action)
        seen += [observation, reward]
        inner.do({"gravity": -8.0, "floor/friction": 0.4}, worlds=[1])
        inner.do({"joint_positions": (0.0, 0.9, -1.6) * 3, "finger_0/lower/mass": 0.03})
    saved = inner.snapshot()
    seen += [rows for _, rows in sorted(saved.arrays.items())]
    inner.restore(saved)
    seen.append(env.step(actions[0])[0])
    goal = inner.world.sample_goal(np.arange(2), Noise(*(np.arange(2) for _ in range(3))), "A")
    seen += [rows for _, rows in sorted(goal.items())]
    kinds = {type(seen[0]).__name__, *(type(v).__name__ for v in inner.world._store.rows.values())}
    env.close()
    return [as_numpy(part) for part in seen], kinds


@pytest.mark.parametrize("task", [t for t in TASKS if t not in ("stacked_blocks",)])
def test_torch_agrees_with_numpy(task):
    numbers, _ = play(task, "cpu")
    tensors, kinds = play(task, "torch")
    assert kinds == {"Tensor"}
    for a, b in zip(numbers, tensors, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)


def test_other_scores_control_modes_and_rewards_run_on_torch():
    options = {
        "score": "oriented",
        "action_mode": "delta_end_effector_positions",
        "defaults": {"robot/observation_noise": 0.1, "robot/action_delay": 2},
    }
    found = []
    for device in ("cpu", "torch"):
        env = iv.make("trifinger/pushing-v1", device=device, **options)
        env.reset(seed=0)
        out = [env.step(np.full(9, 0.2, dtype=np.float32))[:2] for _ in range(3)]
        found.append([np.asarray(part) for pair in out for part in pair])
        env.close()
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)
