"""Reward terms beyond the recorded transitions: signs, branches, both array libraries."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.core.arrays import from_yaw
from interverse.worlds.trifinger import rewards

GOAL = rewards.Targets(
    positions=np.array([[[0.0, 0.08, 0.0325]]]),
    orientations=np.array([[[0.0, 0.0, 0.0, 1.0]]]),
    sizes=np.full((1, 1, 3), 0.065),
)


def moment(block, *, tips=0.1, yaw=0.0, rates=0.0, goals=GOAL):
    return rewards.Instant(
        goals=goals,
        reference_rates=np.full((1, 9), rates),
        tips=np.full((1, 9), tips),
        rates=np.full((1, 9), rates),
        positions=np.array([block], float).reshape(1, -1, 3),
        orientations=np.broadcast_to(from_yaw(np.array([[yaw]])), (1, np.size(block) // 3, 4)),
    )


def test_progress_is_positive_and_symmetric():
    far, near = moment((0, -0.08, 0.0325)), moment((0, 0.0, 0.0325))
    there, back = rewards.pushing(far, near), rewards.pushing(near, far)
    assert there[1][0] == pytest.approx(0.08)
    assert all(a[0] == pytest.approx(-b[0]) for a, b in zip(there, back, strict=True))


def test_the_angle_is_not_the_shortest_one():
    turned = from_yaw(np.array([1.5]))
    upright = np.array([[0.0, 0.0, 0.0, 1.0]])
    assert rewards.angle_to(upright, turned)[0] == pytest.approx(1.5)
    assert rewards.angle_to(upright, -turned)[0] == pytest.approx(2 * np.pi - 1.5)


def test_spread_counts_the_two_nearest_fingers_beyond_the_block():
    tips = np.array([[0.01, 0.0, 0.02, 0.3, 0.0, 0.0, 0.0, 0.9, 0.0]])
    now = rewards.Instant(
        tips=tips,
        rates=np.zeros((1, 9)),
        positions=np.zeros((1, 1, 3)),
        orientations=np.array([[[0.0, 0.0, 0.0, 1.0]]]),
        sizes=np.full((1, 1, 3), 0.065),
        goals=GOAL,
    )
    spread = rewards.picking(now, now)[6]
    assert spread[0] == pytest.approx(-0.1)  # 0 for the first, 0.3 / 3 for the second


@pytest.mark.parametrize(("y", "wanted"), [(-0.05, 0.15), (0.05, 0.0325)])
def test_a_block_on_the_wrong_side_is_wanted_high(y, wanted):
    low, high = moment((0, y, 0.04)), moment((0, y, 0.06))
    lift = rewards.pick_and_place(low, high)[2]
    assert lift[0] == pytest.approx(abs(0.04 - wanted) - abs(0.06 - wanted))


def test_stacking_turns_to_the_upper_block_once_the_lower_is_placed():
    goals = rewards.Targets(
        positions=np.array([[[0.0, 0.0, 0.0325], [0.0, 0.0, 0.0975]]]),
        orientations=np.tile((0.0, 0.0, 0.0, 1.0), (1, 2, 1)),
        sizes=np.full((1, 2, 3), 0.065),
    )

    def at(blocks):
        return moment(blocks, goals=goals)

    away = [at([(0.1, 0, 0.0325), (0, 0.1, z)]) for z in (0.04, 0.06)]
    placed = [at([(0.001, 0, 0.0325), (0, 0.1, z)]) for z in (0.04, 0.06)]
    above = [at([(0.001, 0, 0.0325), (0.002, 0, z)]) for z in (0.04, 0.06)]
    assert rewards.stacking2(*away)[2][0] == 0
    assert rewards.stacking2(*placed)[2][0] == pytest.approx(0.02)
    assert rewards.stacking2(*above)[2][0] == 0
    assert rewards.stacking2(*placed)[3][0] == 0
    over = [at([(0.001, 0, 0.0325), (x, 0, 0.11)]) for x in (0.05, 0.03)]
    assert rewards.stacking2(*over)[3][0] == pytest.approx(0.02)


def test_total_and_sparse():
    terms = (np.array([1.0, 2.0]), np.array([10.0, np.nan]))
    reward = rewards.total(terms, (3.0, 0.0), np.array([0.5, 1.0]), 2.0, 0.04)
    assert reward == pytest.approx([0.04 * 4, 0.04 * 8])  # a weight of zero leaves its term out
    assert rewards.sparse(np.array([True, False]), 0.04) == pytest.approx([0.04, 0.0])


def test_the_rates_that_rewards_start_from_are_those_of_the_start():
    """Set before the first step they are the start's; set later they are not."""
    env = iv.make("trifinger/pick_and_place-v1")
    env.reset(seed=0)
    rows = env.unwrapped.world._store.rows
    env.do({"joint_velocities": np.full(9, 0.25)})
    assert np.all(rows["start_rates"] == 0.25)
    env.step(env.action_space.low)
    env.do({"joint_velocities": np.full(9, 0.5)})
    assert np.all(rows["start_rates"] == 0.25)
    env.close()
