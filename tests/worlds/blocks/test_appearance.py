"""Intensities of every mode, palettes with and without new colours, and what `legacy` has."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from interverse.worlds.blocks import BlocksOptions, appearance
from interverse.worlds.palette import NEW_QUALITATIVE, QUALITATIVE

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
