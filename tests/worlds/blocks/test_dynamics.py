"""Placing and pushing: a plain reference, Torch, batches, and the distribution of start cells."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from interverse.worlds.blocks import dynamics
from interverse.worlds.grid import place


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
