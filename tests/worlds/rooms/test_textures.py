"""Textures: every kind draws, the same each time, and dirt and cracks cover what they should."""

import numpy as np
import pytest

from interverse.art.rooms.item import RoomTexture, Surface
from interverse.art.rooms.kit import VARIANTS, cracked, soiled
from interverse.art.rooms.textures import BUILDING, KINDS, OVERLAYS, pixels
from interverse.core.errors import UnknownNameError

FOUR = ((0.2, 0.3, 0.7), (0.7, 0.8, 0.9), (0.1, 0.4, 0.1), (0.5, 0.5, 0.4))
PERIODIC = ("brushed", "iron", "leather", "plain", "wood")


@pytest.mark.parametrize("kind", [*KINDS, *BUILDING])
def test_every_kind_draws_a_picture_that_is_not_of_one_colour(kind):
    picture = pixels(RoomTexture(kind=kind, colours=FOUR, seed=1), 64)
    assert picture.shape == ((256, 256, 3) if kind in BUILDING else (64, 64, 3))
    assert picture.dtype == np.uint8
    assert not picture.flags.writeable
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 2


@pytest.mark.parametrize("kind", [*KINDS, *BUILDING])
def test_a_texture_is_the_same_each_time_and_follows_its_colours(kind):
    texture = RoomTexture(kind=kind, colours=FOUR, seed=2)
    first = pixels(texture, 64)
    pixels.cache_clear()
    np.testing.assert_array_equal(first, pixels(texture, 64))
    other = RoomTexture(kind=kind, colours=FOUR[::-1], seed=2)
    if kind != "broadcast":  # a test card has colours of its own
        assert (pixels(other, 64) != first).any()


@pytest.mark.parametrize("kind", PERIODIC)
def test_patterns_of_materials_join_at_their_borders(kind):
    picture = pixels(RoomTexture(kind=kind, colours=FOUR[:2], seed=3), 128).astype(float)
    for axis in (0, 1):
        inside = np.abs(np.diff(picture, axis=axis)).mean()
        seam = np.abs(picture.take(0, axis=axis) - picture.take(-1, axis=axis)).mean()
        assert seam < 2 * inside + 2


@pytest.mark.parametrize("seed", range(VARIANTS))
def test_dirt_covers_much_and_cracks_cover_some(seed):
    clean = Surface(texture=RoomTexture(kind="plain", colours=((0.9, 0.9, 0.9),) * 2, seed=seed))
    before = pixels(clean.texture).astype(float)
    dirty = np.abs(pixels(soiled(clean).texture) - before).max(axis=-1) > 20
    assert 0.3 < dirty.mean() < 0.95
    lines = np.abs(pixels(cracked(clean).texture) - before).max(axis=-1) > 20
    assert 0.08 < lines.mean() < 0.7


def test_surfaces_without_a_texture_get_dirty_and_crack_in_their_own_colour():
    plain = Surface(rgba=(0.2, 0.4, 0.6, 1.0), emission=0.5)
    for worn, overlay in ((soiled(plain), "dirt"), (cracked(plain), "cracks")):
        assert worn.rgba == (1.0, 1.0, 1.0, 1.0)
        assert worn.texture.overlays == (overlay,)
        assert (0.2, 0.4, 0.6) in worn.texture.colours


def test_unknown_kinds_and_overlays_are_refused():
    with pytest.raises(UnknownNameError, match=r"unknown texture 'woodd'.*'wood'"):
        pixels(RoomTexture(kind="woodd", colours=FOUR))
    with pytest.raises(UnknownNameError, match=r"unknown overlay 'rust'.*cracks, dirt"):
        pixels(RoomTexture(kind="wood", colours=FOUR, overlays=("rust",)))
    assert sorted(OVERLAYS) == ["cracks", "dirt", "wear"]
