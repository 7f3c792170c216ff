"""Tileable fields and their statistics, against SciPy and Pillow; the cache on disk."""

from __future__ import annotations

import colorsys
import logging
import multiprocessing
import os

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage, spatial, stats

from interverse.art import textures
from interverse.art.pictures.folder import cache_folder, cached, is_cached
from interverse.art.textures import BlobShape
from interverse.core.errors import InvalidValueError
from tools.painters import measure

SIZE = 128


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERVERSE_CACHE", str(tmp_path / "cache"))


def seam(field: np.ndarray, axis: int) -> float:
    """Returns the step across the seam over the mean step inside: about 1 if the field wraps."""
    steps = np.abs(np.diff(np.concatenate([field, field.take([0], axis)], axis), axis=axis))
    return float(steps.take([-1], axis).mean() / steps.mean())


@pytest.mark.parametrize("beta", [0.5, 2.0, 3.0])
def test_spectral_noise_has_the_power_law_it_is_asked_for(rng, beta):
    field = textures.spectral(rng, 256, beta)
    assert abs(field.mean()) < 1e-12
    assert field.std() == pytest.approx(1.0)
    power = np.abs(np.fft.fft2(field)) ** 2
    y, x = np.meshgrid(*[np.fft.fftfreq(256, 1 / 256)] * 2, indexing="ij")
    k = np.arange(4, 101)
    ring = ndimage.mean(power, np.rint(np.hypot(y, x)), k)
    assert -stats.linregress(np.log(k), np.log(ring)).slope == pytest.approx(beta, abs=0.1)
    assert seam(field, 0) < 1.3
    assert seam(field, 1) < 1.3


def test_a_band_holds_no_other_frequencies(rng):
    field = textures.spectral(rng, SIZE, 1.0, band=(10.0, 20.0))
    power = np.abs(np.fft.fft2(field)) ** 2
    y, x = np.meshgrid(*[np.fft.fftfreq(SIZE, 1 / SIZE)] * 2, indexing="ij")
    outside = (np.hypot(y, x) < 9.9) | (np.hypot(y, x) > 20.1)
    assert power[outside].sum() < 1e-12 * power.sum()


def test_stretched_noise_is_longer_that_way(rng):
    field = textures.spectral(rng, SIZE, 2.0, stretch=(1.0, 6.0))
    assert np.abs(np.diff(field, axis=1)).mean() < 0.5 * np.abs(np.diff(field, axis=0)).mean()


def test_cells_are_the_nearest_centres_on_a_torus():
    side, jitter = 6, 0.7
    found = textures.cells(np.random.default_rng(3), SIZE, side * side, jitter=jitter)
    centres = 0.5 + jitter * (np.random.default_rng(3).random((2, side, side)) - 0.5)
    y, x = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    points = np.stack([(centres[0] + y).ravel(), (centres[1] + x).ravel()], axis=1)
    place = (np.arange(SIZE) + 0.5) * side / SIZE
    pixels = np.stack(np.meshgrid(place, place, indexing="ij"), axis=-1).reshape(-1, 2)
    distance, index = spatial.cKDTree(points, boxsize=side).query(pixels, k=2)
    np.testing.assert_allclose(found.nearest.ravel(), distance[:, 0], atol=1e-5)
    near = np.abs(found.second.ravel() - distance[:, 1]) < 1e-5
    assert near.mean() > 0.99  # the second may lie beyond the nine neighbours, far from any border
    clear = distance[:, 1] - distance[:, 0] > 1e-4
    np.testing.assert_array_equal(found.index.ravel()[clear], index[clear, 0])
    assert (found.border >= 0).all()


def test_a_hill_is_brighter_on_the_side_of_the_light():
    place = np.linspace(-3, 3, SIZE)
    hill = np.exp(-(place[:, None] ** 2) - place[None, :] ** 2) * 30
    right = textures.relief(hill, 1.0, 0.0)
    assert right[SIZE // 2, SIZE * 2 // 3] > 0.3
    assert right[SIZE // 2, SIZE // 3] < -0.3
    above = textures.relief(hill, 1.0, np.pi / 2)
    np.testing.assert_allclose(above, np.rot90(right), atol=1e-12)


def test_warping_by_whole_pixels_is_rolling(rng):
    field = rng.random((SIZE, SIZE))
    still = np.zeros((SIZE, SIZE))
    np.testing.assert_allclose(
        textures.warp(field, still - 3, still + 5), np.roll(field, (3, -5), (0, 1))
    )


def test_blur_agrees_with_scipy(rng):
    field = rng.random((SIZE, SIZE))
    expected = ndimage.gaussian_filter(field, 3.0, mode="wrap", truncate=8.0)
    np.testing.assert_allclose(textures.blur(field, 3.0), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("layout", "pieces"),
    [
        (lambda rng: textures.bricks(SIZE, 4, 2), 8),
        (lambda rng: textures.planks(rng, SIZE, 4, 3), 12),
        (lambda rng: textures.tiles(SIZE, 4), 16),
        (lambda rng: textures.tiles(SIZE, 4, pattern="diamond"), 32),
        (lambda rng: textures.tiles(SIZE, 4, pattern="hexagon"), 16),
    ],
)
def test_laid_pieces_are_equal_and_wrap(rng, layout, pieces):
    laid = layout(rng)
    area = np.bincount(laid.index.ravel())
    assert len(area) == pieces
    assert area.min() > 0.8 * area.mean()
    assert laid.edge.min() >= 0
    # What the seam cuts goes on at the other side: each piece is whole in some roll.
    rolls = [
        np.roll(laid.index, (dy, dx), (0, 1)) for dy in (0, SIZE // 2) for dx in (0, SIZE // 2)
    ]
    for piece in range(pieces):
        assert min(ndimage.label(rolled == piece)[1] for rolled in rolls) == 1


def test_a_diamond_has_neighbours_of_the_other_colour():
    laid = textures.tiles(SIZE, 4, pattern="diamond")
    change = (laid.index[:, 1:] != laid.index[:, :-1]).mean()
    assert (laid.parity[:, 1:] != laid.parity[:, :-1]).mean() == pytest.approx(change)


def test_strewn_things_cross_the_seam(rng):
    leaves = textures.blobs(rng, SIZE, 25, BlobShape(radius=0.9, aspect=2.0, pointed=True))
    assert set(np.unique(leaves.index)) <= set(range(-1, 25))
    crossing = (leaves.index[:, 0] == leaves.index[:, -1]) & (leaves.index[:, 0] >= 0)
    assert crossing.mean() > 0.4
    assert ((leaves.height > 0) == (leaves.index >= 0)).all()
    blades = textures.strokes(rng, SIZE, 300, length=0.2)
    assert (blades.index >= 0).mean() > 0.2
    assert ndimage.label(np.roll(blades.index == 299, SIZE // 2, (0, 1)), np.ones((3, 3)))[1] <= 4


def test_fewer_cells_have_a_thing_when_the_share_is_less(rng):
    few = textures.blobs(rng, SIZE, 100, BlobShape(share=0.2))
    assert 5 <= len(np.unique(few.index)) - 1 <= 40


def test_statistics_agree_with_other_tools(rng):
    image = rng.integers(0, 256, (16, 16, 3)).astype(np.uint8)
    found = measure.statistics(image)
    grey = np.asarray(Image.fromarray(image).convert("L")) / 255
    assert found.luminance == pytest.approx(grey.mean(), abs=0.003)
    assert found.contrast == pytest.approx(grey.std(), abs=0.003)
    pixels = image.reshape(-1, 3) / 255
    saturation = np.mean([colorsys.rgb_to_hsv(*pixel)[1] for pixel in pixels])
    assert found.saturation == pytest.approx(saturation, abs=1e-6)
    assert (found.red, found.green, found.blue) == pytest.approx(tuple(pixels.mean(axis=0)))


def test_resize_agrees_with_pillow(rng):
    image = rng.integers(0, 256, (64, 64, 3)).astype(np.uint8)
    box = np.asarray(Image.fromarray(image).resize((16, 16), Image.Resampling.BOX)).astype(int)
    assert np.abs(textures.resize(image, 16).astype(int) - box).max() <= 1
    fine = image.repeat(27, axis=0).repeat(27, axis=1).astype(float)  # each box a whole number
    odd = fine.reshape(27, 64, 27, 64, 3).mean(axis=(1, 3))
    assert np.abs(textures.resize(image, 27) - odd).max() <= 0.5 + 1e-9
    up = np.asarray(Image.fromarray(image).resize((128, 128), Image.Resampling.BILINEAR))
    found = textures.resize(image, 128, wraps=False).astype(int)
    assert np.abs(found - up.astype(int)).max() <= 1
    assert textures.resize(image, 64) is image
    flat = np.full((64, 64, 3), 77, dtype=np.uint8)
    assert (textures.resize(flat, 27) == 77).all()
    assert (textures.resize(flat, 200) == 77).all()


def picture() -> np.ndarray:
    return np.arange(48, dtype=np.uint8).reshape(4, 4, 3)


def test_a_cached_picture_is_made_once():
    calls = []
    for _ in range(2):
        image = cached("a/b", lambda: calls.append(1) or picture())
        np.testing.assert_array_equal(image, picture())
        assert not image.flags.writeable
    assert len(calls) == 1
    assert is_cached("a/b")
    assert not is_cached("a/c")


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_is_made_again_with_a_line_in_the_log(damage, caplog):
    cached("a/b", picture)
    path = cache_folder() / "a" / "b.pic"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"?" if damage is None else damage)
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(cached("a/b", picture), picture())
    assert "b.pic is damaged" in caplog.text
    assert path.read_bytes() == data


def test_a_named_cache_that_is_no_folder_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INTERVERSE_CACHE", str(tmp_path / "file"))
    with pytest.raises(InvalidValueError, match=r"INTERVERSE_CACHE=.*file cannot hold pictures"):
        cached("a/b", picture)


def test_without_a_named_cache_an_unusable_folder_costs_a_log_line(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("INTERVERSE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    if cache_folder().parent.parent != tmp_path / "file":
        pytest.skip("this platform has another cache folder")
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(cached("a/b", picture), picture())
    assert "not kept on disk" in caplog.text


def hammer(folder: str) -> bool:
    os.environ["INTERVERSE_CACHE"] = folder
    return all((cached(f"x/{i % 3}", picture) == picture()).all() for i in range(60))


def test_processes_may_share_the_folder(tmp_path):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert all(pool.map(hammer, [str(tmp_path)] * 4))
    names = [p.name for p in (tmp_path / "pictures" / "x").iterdir()]
    assert sorted(names) == ["0.pic", "1.pic", "2.pic"]
