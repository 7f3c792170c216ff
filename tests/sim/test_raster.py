"""Grid scenes to pixels: recorded masks, cells, colours, Torch, batches and single worlds."""

import json
from pathlib import Path

import numpy as np
import pytest

from interverse.sim import raster

DATA = Path(__file__).parents[1] / "parity" / "data" / "gridworlds.json"


def scenes(count, objects, seed=0):
    rng = np.random.default_rng(seed)
    cells = np.stack([rng.permutation(raster.GRID**2)[:objects] for _ in range(count)])
    positions = np.stack([cells // raster.GRID, cells % raster.GRID], axis=-1)
    shapes = rng.integers(0, len(raster.SHAPES), (count, objects))
    colors = rng.integers(0, 256, (count, objects, 3)).astype(np.uint8)
    return positions, shapes, colors


def painted_pixel_by_pixel(positions, shapes, colors):
    """The plain reference: one pixel at a time."""
    image = np.zeros((len(positions), raster.SIZE, raster.SIZE, 3), dtype=np.uint8)
    for world, objects in enumerate(positions):
        for i, (row, column) in enumerate(objects):
            for y, x in np.argwhere(raster.MASKS[shapes[world, i]]):
                image[world, 10 * row + y, 10 * column + x] = colors[world, i]
    return image


def test_masks_are_the_recorded_ones():
    recorded = json.loads(DATA.read_text())["shape_masks"]["masks"]
    assert len(recorded) == len(raster.SHAPES) == 8
    for i, (name, rows) in enumerate(recorded.items()):
        assert name.startswith(raster.SHAPES[i])
        assert ["".join(str(int(bit)) for bit in row) for row in raster.MASKS[i]] == rows


def test_masks_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        raster.MASKS[0, 0, 0] = True


@pytest.mark.parametrize("objects", [1, 5, 25])
def test_draw_equals_painting_pixel_by_pixel(objects):
    scene = scenes(16, objects)
    image = raster.draw(*scene)
    assert image.dtype == np.uint8
    np.testing.assert_array_equal(image, painted_pixel_by_pixel(*scene))


def test_a_batch_equals_its_worlds_one_by_one():
    positions, shapes, colors = scenes(8, 5)
    together = raster.draw(positions, shapes, colors)
    for i in range(8):
        alone = raster.draw(positions[i : i + 1], shapes[i : i + 1], colors[i : i + 1])
        np.testing.assert_array_equal(together[i], alone[0])


def test_no_objects_and_no_worlds_give_black_and_nothing():
    nothing = raster.draw(*scenes(3, 0))
    assert nothing.shape == (3, 50, 50, 3)
    assert not nothing.any()
    assert raster.draw(*(part[:0] for part in scenes(2, 4))).shape == (0, 50, 50, 3)


def test_torch_draws_the_same_bytes():
    torch = pytest.importorskip("torch")
    scene = scenes(32, 5)
    image = raster.draw(*(torch.as_tensor(part) for part in scene))
    assert image.dtype == torch.uint8
    np.testing.assert_array_equal(image.numpy(), raster.draw(*scene))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_canvas_shows_what_draw_would_after_any_change(kind):
    as_kind = np.asarray if kind == "numpy" else pytest.importorskip("torch").as_tensor
    canvas, rng = raster.Canvas(), np.random.default_rng(1)
    positions, shapes, colors = scenes(6, 5)
    given = []
    for turn in range(6):
        seen = canvas.draw(*(as_kind(part) for part in (positions, shapes, colors)))
        seen = seen if kind == "numpy" else seen.numpy()
        given.append((seen, seen.copy()))
        np.testing.assert_array_equal(given[-1][1], raster.draw(positions, shapes, colors))
        colors = np.where(rng.random((6, 5, 1)) < 0.3, rng.integers(0, 256, (6, 5, 3)), colors)
        colors = colors.astype(np.uint8)
        if turn == 1:
            positions = positions[:, ::-1].copy()  # objects swap cells
        if turn == 2:
            positions = scenes(6, 5, seed=9)[0]
        if turn == 3:
            shapes = rng.integers(0, 8, shapes.shape)
    for picture, as_it_was in given:  # earlier pictures are the caller's own
        np.testing.assert_array_equal(picture, as_it_was)


def test_a_canvas_takes_another_number_of_objects():
    canvas = raster.Canvas()
    canvas.draw(*scenes(4, 5))
    np.testing.assert_array_equal(canvas.draw(*scenes(4, 2)), raster.draw(*scenes(4, 2)))
    np.testing.assert_array_equal(canvas.draw(*scenes(3, 2)), raster.draw(*scenes(3, 2)))


def test_people_see_the_same_scene_with_smooth_edges():
    positions, shapes, colors = (part[0] for part in scenes(1, 5))
    image = raster.draw(positions[None], shapes[None], colors[None])[0]
    big = raster.portrait(positions, shapes, colors)
    assert big.shape == (250, 250, 3)
    for cell, color in zip(positions, colors, strict=True):  # every shape covers its middle
        small, large = 10 * cell + 5, 50 * cell + 25
        assert image[tuple(small)].tolist() == color.tolist() == big[tuple(large)].tolist()
    free = {(r, c) for r in range(5) for c in range(5)} - {tuple(cell) for cell in positions}
    for row, column in free:
        assert not big[50 * row + 1 : 50 * row + 50, 50 * column + 1 : 50 * column + 50].any()
    assert len(np.unique(big)) > len(np.unique(image)), "edges are smooth"


@pytest.mark.parametrize("shape", range(len(raster.SHAPES)))
def test_a_shape_for_people_covers_what_the_observed_one_does(shape):
    one = np.zeros((1, 2), dtype=np.int64), np.array([shape]), np.full((1, 3), 255, np.uint8)
    share = raster.portrait(*one)[:50, :50, 0].reshape(10, 5, 10, 5).mean(axis=(1, 3)) / 255
    assert np.abs(share - raster.MASKS[shape]).mean() < 0.16


def test_numbers_and_arrows_are_drawn():
    positions, shapes, colors = (part[0] for part in scenes(1, 2))
    bare = raster.portrait(positions, shapes, colors)
    assert (raster.portrait(positions, shapes, colors, numbers=np.array([7, 10])) != bare).any()
    shown = raster.portrait(positions, shapes, colors, arrows=[(0, 1)])
    assert (shown != bare).any()
    assert (shown != raster.portrait(positions, shapes, colors, arrows=[(1, 0)])).any()
