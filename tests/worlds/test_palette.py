"""Colours as data: recorded values, matplotlib's tables, the entries a world takes of them."""

import json
from pathlib import Path

import numpy as np
import pytest

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.worlds import palette

DATA = Path(__file__).parents[1] / "parity" / "data" / "gridworlds.json"


def test_blues_are_the_recorded_ones():
    cases = json.loads(DATA.read_text())["blues_colormap"]["cases"]
    intensities = np.array([intensity for intensity, _ in cases])
    recorded = np.array([rgb for _, rgb in cases])
    np.testing.assert_allclose(palette.shade(intensities, "Blues"), recorded, atol=1e-6)


@pytest.mark.parametrize("name", ["Blues", "Reds", "Greens"])
def test_sequential_tables_are_matplotlibs(name):
    matplotlib = pytest.importorskip("matplotlib")
    theirs = matplotlib.colormaps[name](np.linspace(0.0, 1.0, 997))[:, :3]
    ours = palette.shade(np.linspace(0.0, 1.0, 997), name)
    np.testing.assert_allclose(ours, theirs, atol=1e-15)


@pytest.mark.parametrize("name", ["Set1", "Set3", "Pastel1", "Pastel2"])
def test_swatches_are_matplotlibs(name):
    matplotlib = pytest.importorskip("matplotlib")
    np.testing.assert_array_equal(palette.SWATCHES[name], matplotlib.colormaps[name].colors)


@pytest.mark.parametrize(
    ("count", "entries"),
    [
        (3, [8, 4, 0]),
        (4, [8, 6, 3, 0]),
        (5, [8, 6, 4, 2, 0]),
        (6, [8, 7, 5, 3, 1, 0]),
        (7, [8, 7, 6, 4, 3, 1, 0]),
        (8, [8, 7, 6, 5, 3, 2, 1, 0]),
        (9, [8, 7, 6, 5, 4, 3, 2, 1, 0]),
    ],
)
def test_a_palette_takes_the_most_frequent_entries_of_the_original(count, entries):
    assert palette.spread_entries(9, count).tolist() == entries
    np.testing.assert_array_equal(palette.spread("Sets", count), palette.SWATCHES["Set1"][entries])


def test_every_palette_has_distinct_colours_at_every_size_it_allows():
    for name in ("Sets", "Pastels", "Set3", "Pastel2", "Primary", "Blues"):
        for count in range(2, min(len(palette.named(name)), 12) + 1):
            seen = palette.to_bytes(palette.spread(name, count))
            assert len(np.unique(seen, axis=0)) == count


def test_painted_looks_up_each_worlds_own_palette():
    palettes = np.random.default_rng(0).random((3, 4, 3))
    color = np.array([[0, 3], [1, 1], [2, 0]])
    seen = palette.painted(color, palettes)
    assert seen.dtype == np.uint8
    np.testing.assert_array_equal(seen[2, 0], np.rint(255 * palettes[2, 2]))
    np.testing.assert_array_equal(seen[0, 1], np.rint(255 * palettes[0, 3]))


def test_tables_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        palette.SEQUENTIAL["Blues"][0] = 0.0


def test_bad_names_and_counts_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'Blues'"):
        palette.shade(np.zeros(1), "Blue")
    with pytest.raises(UnknownNameError, match="unknown cmap 'Sett'"):
        palette.spread("Sett", 3)
    with pytest.raises(InvalidValueError, match="colors is 10, but cmap 'Sets' has 9"):
        palette.spread("Sets", 10)
