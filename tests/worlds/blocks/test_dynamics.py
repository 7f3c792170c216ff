"""Blocks: placing, pushing, intensities and palettes, against plain references."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from interverse.worlds.blocks import BlocksOptions, appearance, dynamics
from interverse.worlds.grid import place
from interverse.worlds.palette import NEW_QUALITATIVE, QUALITATIVE


def pushed_by_hand(cells, weights, block, direction):
    """The rule in plain Python, one world: returns cells and whether the push was invalid."""
    cells = [tuple(cell) for cell in cells]
    offset = dynamics.OFFSETS[direction]
    ahead = tuple(a + d for a, d in zip(cells[block], offset, strict=True))
    beyond = tuple(a + d for a, d in zip(ahead, offset, strict=True))
    inside = [all(0 <= c < 5 for c in cell) for cell in (ahead, beyond)]
    if direction == 0 or not inside[0]:
        return cells, False
    if ahead in cells:
        other = cells.index(ahead)
        if weights[block] <= weights[other]:
            return cells, False
        if beyond in cells:
            return cells, True
        if not inside[1]:
            return cells, False
        cells[other] = beyond
    cells[block] = ahead
    return cells, False


def scenes(count, objects, seed):
    rng = np.random.default_rng(seed)
    positions = place(rng.random((count, objects)))
    weights = rng.integers(0, 4, (count, objects)).astype(float)  # equal weights are common
    return positions, weights, rng.integers(objects, size=count), rng.integers(5, size=count)


@pytest.mark.parametrize("objects", [1, 2, 5, 12, 25])
def test_push_equals_the_rule_by_hand(objects):
    positions, weights, blocks, directions = scenes(500, objects, seed=objects)
    after, invalid = dynamics.push(positions, weights, blocks, directions)
    for row in range(len(positions)):
        cells, flag = pushed_by_hand(
            positions[row].tolist(), weights[row], blocks[row], directions[row]
        )
        assert after[row].tolist() == [list(cell) for cell in cells]
        assert bool(invalid[row]) == flag


@given(seed=st.integers(0, 2**32 - 1), objects=st.integers(1, 25))
def test_pushing_keeps_blocks_apart_and_inside(seed, objects):
    positions, weights, *_ = scenes(20, objects, seed)
    rng = np.random.default_rng(seed)
    after = dynamics.play(positions, weights, rng.integers(5 * objects, size=(20, 8)))
    assert after.min() >= 0
    assert after.max() <= 4
    for cells in after:
        assert len({tuple(cell) for cell in cells}) == objects


def test_push_leaves_its_input_alone():
    positions, weights, blocks, directions = scenes(50, 5, seed=0)
    before = positions.copy()
    dynamics.push(positions, weights, blocks, directions)
    np.testing.assert_array_equal(positions, before)


def test_ordered_pairs_of_cells_are_equally_likely():
    positions = place(np.random.default_rng(3).random((120_000, 2)))
    cells = positions[..., 0] * 5 + positions[..., 1]
    counts = np.bincount(cells[:, 0] * 25 + cells[:, 1], minlength=625).reshape(25, 25)
    assert np.all(np.diag(counts) == 0)
    pairs = counts[~np.eye(25, dtype=bool)]
    assert chisquare(pairs).pvalue > 1e-3


def test_a_full_grid_holds_every_cell_once():
    (cells,) = place(np.full((1, 25), 1 - 2**-53))
    assert sorted(map(tuple, cells.tolist())) == list(itertools.product(range(5), range(5)))


def test_look_ahead_is_the_reward_of_taking_each_action():
    positions, weights, *_ = scenes(40, 3, seed=5)
    targets = place(np.random.default_rng(6).random((40, 3)))
    ahead = dynamics.look_ahead(positions, weights, targets)
    assert ahead.shape == (40, 15)
    for action in range(15):
        after = dynamics.play(positions, weights, np.full((40, 1), action))
        np.testing.assert_array_equal(ahead[:, action], dynamics.reward(after, targets))


def test_reward_at_the_target_is_a_plain_zero():
    positions, *_ = scenes(4, 3, seed=7)
    reward = dynamics.reward(positions, positions)
    assert not np.signbit(reward).any()
    assert (reward == 0).all()


HALF_WIDTHS = {"Train": 1 / 8, "Test-v1": 1 / 4, "Test-v2": 1 / 3, "Test-v3": 1 / 2}


def intensities(mode, objects, count=20_000, **options):
    """Lightest block first."""
    chosen = BlocksOptions(mode=mode, objects=objects, **options)
    uniforms = np.random.default_rng(0).random((count, objects))
    weights = np.tile(np.arange(objects, 0, -1.0), (count, 1))
    return appearance.intensity(weights, uniforms, chosen.spread)[:, ::-1]


@pytest.mark.parametrize("objects", [2, 3, 5])
@pytest.mark.parametrize("mode", HALF_WIDTHS)
def test_intensities_are_uniform_about_an_even_grid(mode, objects):
    seen = intensities(mode, objects)
    spacing = 1 / (objects - 1)
    reach = HALF_WIDTHS[mode] * spacing
    for i, values in enumerate(seen.T):
        middle = i * spacing
        low = middle if i == 0 else middle - reach
        high = middle if i == objects - 1 else middle + reach
        assert low <= values.min() < low + 0.01 * reach
        assert high - 0.01 * reach < values.max() <= high
        assert values.mean() == pytest.approx((low + high) / 2, abs=0.02 * reach)
    assert np.all(np.diff(seen, axis=1) > 0)


def test_zero_shot_intensities_are_sorted_uniform_numbers():
    seen = intensities("ZeroShot", 3)
    assert np.all(np.diff(seen, axis=1) > 0)
    np.testing.assert_allclose(seen.mean(axis=0), [0.25, 0.5, 0.75], atol=0.01)


def test_zero_shot_shape_keeps_the_order_unless_legacy():
    assert np.all(np.diff(intensities("ZeroShotShape", 5), axis=1) > 0)
    crossed = np.diff(intensities("ZeroShotShape", 5, legacy=True), axis=1) < 0
    assert 0.1 < crossed.mean() < 0.5


def test_intensity_follows_any_weight_between_and_beyond():
    weights = np.array([[-4.0, 1.0, 1.5, 2.0, 9.0]])
    steady = np.full((1, 5), 0.5)
    np.testing.assert_allclose(
        appearance.intensity(weights, steady, 1 / 8)[0], [0, 0, 0.125, 0.25, 1]
    )
    knots = np.array([[0.9, 0.1, 0.5, 0.3, 0.7]])
    seen = appearance.intensity(weights, knots, None)[0]
    np.testing.assert_allclose(seen, [0.1, 0.1, 0.2, 0.3, 0.9])


def test_one_block_has_an_intensity():
    one = appearance.intensity(np.array([[1.0]]), np.array([[0.75]]), 1 / 8)
    assert one[0, 0] == pytest.approx(1 / 16)


@pytest.mark.parametrize("colormap", ["Sets", "Pastels"])
def test_new_colours_weigh_their_index_and_a_half(colormap):
    colors, weights = appearance.entries(colormap)
    assert weights[:9].tolist() == list(range(9))
    assert weights[9:].tolist() == [j + 0.5 for j in range(len(NEW_QUALITATIVE[colormap]))]
    np.testing.assert_array_equal(colors[:9], QUALITATIVE[colormap])


@pytest.mark.parametrize("new", [1, 2, 3])
def test_few_shot_blocks_come_by_weight_unless_legacy(new):
    _, weights = appearance.entries("Sets")
    mended = appearance.candidates("Sets", new, seed=4, by_weight=True)
    legacy = appearance.candidates("Sets", new, seed=4, by_weight=False)
    assert len(mended) == 9 + new
    assert sorted(mended) == sorted(legacy)
    assert np.all(np.diff(weights[mended]) > 0)
    assert legacy[:9].tolist() == list(range(9))
    assert np.all(legacy[9:] >= 9)


def test_new_colours_are_fixed_by_their_seed_and_vary_with_it():
    picks = {tuple(appearance.candidates("Sets", 2, seed=s, by_weight=True)) for s in range(20)}
    assert len(picks) > 5
    again = appearance.candidates("Sets", 2, seed=3, by_weight=True)
    np.testing.assert_array_equal(again, appearance.candidates("Sets", 2, seed=3, by_weight=True))


def test_every_set_of_colours_is_equally_likely():
    chosen = appearance.choose(np.random.default_rng(0).random((84_000, 9)), 3)
    counts = Counter(map(tuple, chosen.tolist()))
    assert len(counts) == 84  # nine choose three
    assert all(a < b < c for a, b, c in counts)
    assert max(abs(count - 1000) for count in counts.values()) < 150
