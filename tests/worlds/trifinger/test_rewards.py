"""Reward terms beyond the recorded transitions, and scores: boxes' volumes against SciPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection
from scipy.spatial.transform import Rotation

from interverse.core.arrays import from_yaw
from interverse.sim.boxes import intersection_volume
from interverse.worlds.trifinger import rewards
from interverse.worlds.trifinger.rewards import aabb_score, bounds, oriented_score, reaching_score

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


def test_the_rates_that_rewards_start_from_are_those_of_the_start(make):
    """Set before the first step they are the start's; set later they are not."""
    env = make("trifinger/pick_and_place-v1")
    rows = env.unwrapped.world._store.rows
    env.do({"joint_velocities": np.full(9, 0.25)})
    assert np.all(rows["start_rates"] == 0.25)
    env.step(env.action_space.low)
    env.do({"joint_velocities": np.full(9, 0.5)})
    assert np.all(rows["start_rates"] == 0.25)


UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])


def draw_boxes(rng, *shape):
    turn = rng.normal(size=(*shape, 4))
    turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
    return rng.uniform(-0.04, 0.04, (*shape, 3)), turn, rng.uniform(0.03, 0.1, (*shape, 3))


def scipy_volume(one, other):
    """Returns the common volume of two boxes by SciPy's convex geometry."""
    rows = []
    for position, turn, size in (one, other):
        axes = Rotation.from_quat(turn).as_matrix()
        for i in range(3):
            for normal in (axes[:, i], -axes[:, i]):
                rows.append([*normal, -(normal @ position + size[i] / 2)])
    spaces = np.array(rows)
    # the centre of the largest ball inside, if there is one
    found = linprog(
        [0, 0, 0, -1],
        A_ub=np.c_[spaces[:, :3], np.ones(len(spaces))],
        b_ub=-spaces[:, 3],
        bounds=[(None, None)] * 3 + [(0, None)],
    )
    if found.status != 0 or found.x[3] < 1e-9:
        return 0.0
    return ConvexHull(HalfspaceIntersection(spaces, found.x[:3]).intersections).volume


def first(boxes, i=0):
    return tuple(part[i] for part in boxes)


@given(seed=st.integers(0, 2**32 - 1))
def test_volume_of_boxes_in_any_position(seed):
    rng = np.random.default_rng(seed)
    one, other = draw_boxes(rng, 4), draw_boxes(rng, 4)
    found = intersection_volume(one, other)
    for i in range(4):
        expected = scipy_volume(first(one, i), first(other, i))
        assert found[i] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_volume_of_boxes_with_faces_in_one_plane():
    size = np.array([[0.065, 0.05, 0.04]])
    here, there = np.zeros((1, 3)), np.array([[0.02, 0.01, 0.0]])
    upright = UPRIGHT[None]
    assert intersection_volume((here, upright, size), (here, upright, size)) == pytest.approx(
        size.prod()
    )
    expected = 0.045 * 0.04 * 0.04
    moved = intersection_volume((here, upright, size), (there, upright, size))
    assert moved == pytest.approx(expected)
    quarter = from_yaw(np.array([np.pi / 2]))
    turned = intersection_volume((here, upright, size), (here, quarter, size))
    assert turned == pytest.approx(0.05 * 0.05 * 0.04)


def test_volume_of_a_block_turned_on_the_same_floor():
    size = np.full((1, 3), 0.065)
    turned = from_yaw(np.array([np.pi / 4]))
    found = intersection_volume(
        (np.zeros((1, 3)), UPRIGHT[None], size), (np.zeros((1, 3)), turned, size)
    )
    octagon = 2 * (np.sqrt(2) - 1)  # a square turned by 45 degrees over itself, of unit edge
    assert found == pytest.approx(octagon * 0.065**3, rel=1e-9)


def test_volume_of_boxes_that_only_touch_or_lie_apart():
    size = np.full((1, 3), 0.06)
    for gap in (0.06, 0.0600001, 0.2):
        away = np.array([[gap, 0.0, 0.0]])
        found = intersection_volume(
            (np.zeros((1, 3)), UPRIGHT[None], size), (away, UPRIGHT[None], size)
        )
        assert found == pytest.approx(0.0, abs=1e-15)


def test_yaw_costs_nothing_in_bounding_boxes_but_counts_in_true_volumes():
    place, size = np.zeros((1, 1, 3)), np.full((1, 1, 3), 0.065)
    straight, turned = UPRIGHT[None, None], from_yaw(np.array([[np.pi / 4]]))
    assert aabb_score(bounds(place, turned, size), bounds(place, straight, size))[0] == 1
    score = oriented_score((place, turned, size), (place, straight, size))[0]
    assert score == pytest.approx(2 * (np.sqrt(2) - 1))


def test_oriented_score_is_capped_where_bounding_boxes_exceed_one():
    place, size = np.zeros((1, 2, 3)), np.full((1, 2, 3), 0.065)
    turn = np.tile(UPRIGHT, (1, 2, 1))
    goal = (place[:, :1], turn[:, :1], size[:, :1])
    assert aabb_score(bounds(place, turn, size), bounds(*goal))[0] == 2
    assert oriented_score((place, turn, size), goal)[0] == 1


def test_padding_with_empty_boxes_changes_nothing():
    rng = np.random.default_rng(5)
    blocks, goals = draw_boxes(rng, 6, 2), draw_boxes(rng, 6, 2)
    padding = (np.zeros((6, 1, 3)), np.tile(UPRIGHT, (6, 1, 1)), np.zeros((6, 1, 3)))
    padded = [
        tuple(np.concatenate([part, pad], axis=1) for part, pad in zip(boxes, padding, strict=True))
        for boxes in (blocks, goals)
    ]
    assert np.array_equal(oriented_score(*padded), oriented_score(blocks, goals))
    assert np.array_equal(
        aabb_score(*(bounds(*boxes) for boxes in padded)),
        aabb_score(bounds(*blocks), bounds(*goals)),
    )


def test_without_goals_the_score_is_one():
    blocks = draw_boxes(np.random.default_rng(6), 3, 2)
    none = tuple(part[:, :0] for part in blocks)
    assert (oriented_score(blocks, none) == 1).all()
    assert (aabb_score(bounds(*blocks), bounds(*none)) == 1).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_block_in_its_place_scores_one_also_where_poses_are_rounded(kind):
    rng = np.random.default_rng(8)
    yaw, size = rng.uniform(-np.pi, np.pi, (400, 1)), np.full((400, 1, 3), 0.065, kind)
    place = rng.uniform(-0.1, 0.1, (400, 1, 3)).astype(kind)
    quarter = rng.integers(0, 4, (400, 1)) * np.pi / 2
    turned, straight = (from_yaw(a).astype(np.float32).astype(kind) for a in (yaw + quarter, yaw))
    near = place + rng.uniform(-1e-6, 1e-6, place.shape).astype(kind)
    for there in (place, near):
        score = oriented_score((there, turned, size), (place, straight, size))
        assert score.dtype == kind
        assert score == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(("gap", "score"), [(0.005, 1.0), (0.02, 0.5), (0.04, 0.0)])
def test_reaching_score_falls_with_the_mean_distance(gap, score):
    tips = np.full((1, 9), 0.1)
    fraction, mean = reaching_score(tips, tips + gap)
    assert mean[0] == pytest.approx(gap)
    assert fraction[0] == pytest.approx(score)
