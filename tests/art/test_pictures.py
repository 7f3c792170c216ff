"""Painted pictures match the photographs' statistics; folders and videos mean what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from interverse.art import pictures
from interverse.art.pictures.video import bounce
from interverse.art.textures import resize
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from tools.painters import statistics

# Measured on the original's photographs: luminance, contrast, saturation, red, green, blue, beta.
PHOTOGRAPHS = {
    "floors": (0.514, 0.084, 0.29, 0.55, 0.52, 0.40, 2.17),
    "grass": (0.475, 0.077, 0.41, 0.50, 0.49, 0.32, 1.86),
    "sand": (0.556, 0.062, 0.23, 0.60, 0.55, 0.46, 2.37),
    "brick": (0.536, 0.080, 0.33, 0.61, 0.52, 0.41, 2.19),
    "concrete": (0.538, 0.072, 0.15, 0.56, 0.54, 0.48, 2.28),
    "frozen": (0.589, 0.124, 0.11, 0.60, 0.59, 0.57, 2.77),
    "soil": (0.464, 0.099, 0.22, 0.50, 0.46, 0.40, 2.04),
    "moss": (0.455, 0.146, 0.49, 0.48, 0.48, 0.28, 2.45),
    "lichen": (0.466, 0.143, 0.25, 0.49, 0.47, 0.40, 2.45),
    "backgrounds": (0.459, 0.194, 0.44, 0.44, 0.47, 0.44, 2.72),
}
SPREADS = {  # deviations over the set: luminance, contrast, saturation, beta
    "floors": (0.065, 0.038, 0.16, 0.43),
    "backgrounds": (0.135, 0.055, 0.17, 0.26),
}
FIELDS = ("luminance", "contrast", "saturation", "red", "green", "blue", "beta")
NEAR = (0.02, 0.01, 0.05, 0.03, 0.03, 0.04, 0.10)
SETS = {"backgrounds": pictures.procedural_backgrounds(), "floors": pictures.procedural_floors()}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("INTERVERSE_CACHE", str(tmp_path_factory.getbasetemp() / "pictures_cache"))


def values(name: str, numbers: range) -> np.ndarray:
    rows = []
    for index in numbers:
        found = statistics(SETS[name].picture(index, 256))
        rows.append([getattr(found, field) for field in FIELDS])
    return np.array(rows)


def test_there_are_enough_of_every_kind():
    floors, backgrounds = SETS["floors"], SETS["backgrounds"]
    assert floors.count >= 300
    assert backgrounds.count >= 100
    kinds = {floors.kind(i) for i in range(floors.count)}
    assert kinds >= {"rock", "grass", "soil", "sand", "frozen", "concrete", "brick", "wood", "tile"}
    assert floors.digest != backgrounds.digest


@pytest.mark.parametrize(("name", "step"), [("floors", 16), ("backgrounds", 8)])
def test_a_sample_is_distinct_and_looks_like_photographs(name, step):
    numbers = range(0, SETS[name].count, step)
    assert len({SETS[name].picture(i, 256).tobytes() for i in numbers}) == len(numbers)
    mean = values(name, numbers).mean(axis=0)
    for field, found, photo, near in zip(FIELDS, mean, PHOTOGRAPHS[name], NEAR, strict=True):
        assert abs(found - photo) < 2.5 * near, (field, found, photo)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["floors", "backgrounds"])
def test_the_whole_set_has_the_photographs_statistics(name):
    pool = SETS[name]
    all_values = values(name, range(pool.count))
    kinds = np.array([pool.kind(i) for i in range(pool.count)])
    assert len({pool.picture(i, 256).tobytes() for i in range(pool.count)}) == pool.count
    for kind, photo in PHOTOGRAPHS.items():
        rows = all_values if kind == name else all_values[kinds == kind]
        if len(rows):
            assert (np.abs(rows.mean(axis=0) - photo) < NEAR).all(), (kind, rows.mean(axis=0))
    spread = all_values.std(axis=0)[[0, 1, 2, 6]]
    assert (spread > 0.7 * np.array(SPREADS[name])).all()
    assert (spread < 1.2 * np.array(SPREADS[name])).all()


@pytest.mark.slow
def test_the_files_hold_what_the_painters_paint():
    script = Path(__file__).parents[2] / "tools" / "paint_pictures.py"
    subprocess.run([sys.executable, script, "--check"], check=True)


@pytest.mark.parametrize("name", ["floors", "backgrounds"])
def test_recorded_mean_colours_are_the_pictures(name):
    for index in range(3, SETS[name].count, 29):
        mean = SETS[name].picture(index, 256).mean(axis=(0, 1)) / 255
        assert SETS[name].mean_color(index) == pytest.approx(tuple(mean), abs=1.2 / 255)


def test_other_sizes_show_the_same_picture():
    floor = SETS["floors"].picture(120, 256)
    for size in (64, 84, 300):
        np.testing.assert_array_equal(SETS["floors"].picture(120, size), resize(floor, size))


@pytest.mark.parametrize("kind", sorted({SETS["floors"].kind(i) for i in range(384)}))
def test_floors_tile(kind):
    index = next(i for i in range(384) if SETS["floors"].kind(i) == kind)
    image = SETS["floors"].picture(index, 256).astype(float)
    for axis in (0, 1):
        steps = np.abs(np.roll(image, -1, axis) - image).mean(axis=(1 - axis, 2))
        # No seam is rougher than the roughest line inside; joints of bricks lie on seams.
        assert steps[-1] <= 1.3 * np.sort(steps)[-4]


@pytest.mark.parametrize("kind", ["city", "interior"])
def test_built_places_go_round_without_a_seam(kind):
    """The left edge is as like the right one as columns inside are like their neighbours."""
    backgrounds = SETS["backgrounds"]
    for index in [i for i in range(backgrounds.count) if backgrounds.kind(i) == kind]:
        image = backgrounds.picture(index, 256).astype(float)
        steps = np.abs(np.roll(image, -1, axis=1) - image).mean(axis=(0, 2))
        assert steps[-1] <= 2.0 * steps[:-1].mean(), index


def test_pictures_cannot_be_written_to_and_bad_numbers_are_refused():
    floors = SETS["floors"]
    with pytest.raises(ValueError, match="read-only"):
        floors.picture(0, 64)[0, 0] = 0
    with pytest.raises(InvalidValueError, match="index must be a whole number, got 384"):
        floors.picture(384, 64)
    with pytest.raises(InvalidValueError, match="index must be a whole number, got True"):
        floors.mean_color(True)
    with pytest.raises(InvalidValueError, match="size must be a whole number of pixels, got 4"):
        floors.picture(0, 4)


def save(path: Path, colour, size=(40, 30), mode="RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).convert(mode).save(path)
    return path


def test_a_folder_is_ordered_by_content_not_by_name(tmp_path):
    colours = [(200, 0, 0), (0, 200, 0), (0, 0, 200), (90, 90, 90)]
    for number, colour in enumerate(colours):
        save(tmp_path / "a" / f"{number}.png", colour)
        save(tmp_path / "b" / f"{9 - number}.png", colour)
    (tmp_path / "a" / "notes.txt").write_text("not a picture")
    (tmp_path / "a" / ".hidden.png").write_text("nor this")
    first, second = pictures.images(tmp_path / "a"), pictures.images(tmp_path / "b")
    assert first.count == 4
    assert first.digest == second.digest
    for index in range(4):
        np.testing.assert_array_equal(first.picture(index, 32), second.picture(index, 32))
    seen = {tuple(int(c) for c in first.picture(i, 32)[0, 0]) for i in range(4)}
    assert seen == set(colours)
    assert {tuple(round(255 * c) for c in first.mean_color(i)) for i in range(4)} == set(colours)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK"])
def test_every_mode_becomes_rgb_and_the_middle_square_is_kept(tmp_path, mode):
    image = Image.new("RGB", (90, 30), (10, 10, 10))
    image.paste((250, 250, 250), (30, 0, 60, 30))
    image = image.convert(mode)
    image.save(tmp_path / ("x.jpg" if mode == "CMYK" else "x.png"))
    found = pictures.images(tmp_path).picture(0, 30)
    assert found.shape == (30, 30, 3)
    assert found.min() > 200


@pytest.mark.parametrize("root", [".", "assets", "dmc_remastered/assets"])
@pytest.mark.parametrize("skies", ["skies", "backgrounds"])
def test_the_originals_layout_is_recognised(tmp_path, root, skies):
    save(tmp_path / root / "floors" / "f.png", (1, 2, 3))
    save(tmp_path / root / skies / "s.jpg", (200, 100, 50))
    floors, backgrounds = pictures.folder(tmp_path)
    assert (floors.count, backgrounds.count) == (1, 1)
    assert floors.picture(0, 16)[0, 0].tolist() == [1, 2, 3]
    assert backgrounds.picture(0, 16)[0, 0, 0] > 190


def test_what_a_folder_lacks_stays_painted_and_a_plain_one_serves_as_both(tmp_path):
    save(tmp_path / "half" / "floors" / "f.png", (1, 2, 3))
    floors, backgrounds = pictures.folder(tmp_path / "half")
    assert floors.count == 1
    assert backgrounds == pictures.procedural_backgrounds()
    save(tmp_path / "plain" / "f.png", (1, 2, 3))
    floors, backgrounds = pictures.folder(tmp_path / "plain")
    assert floors.digest == backgrounds.digest


def test_bad_folders_are_named(tmp_path):
    with pytest.raises(InvalidValueError, match="nowhere is not a folder"):
        pictures.folder(tmp_path / "nowhere")
    with pytest.raises(InvalidValueError, match="holds no images"):
        pictures.folder(tmp_path)
    save(tmp_path / "good.png", (9, 9, 9))
    (tmp_path / "broken.png").write_bytes(save(tmp_path / "good.png", (9, 9, 9)).read_bytes()[:60])
    with pytest.raises(FileFormatError, match=r"broken\.png is not an image"):
        pictures.folder(tmp_path)
    (tmp_path / "broken.png").write_text("text")
    with pytest.raises(FileFormatError, match=r"broken\.png is not an image"):
        pictures.folder(tmp_path)


def test_frames_run_to_the_end_and_back_in_natural_order(tmp_path):
    for number in (1, 2, 10):
        save(tmp_path / "clip" / f"frame{number}.png", (number * 20, 0, 0))
    save(tmp_path / "still" / "only.png", (0, 255, 0))
    videos = pictures.folder_videos(tmp_path)
    assert videos.count == 2
    clip = next(i for i in range(2) if videos.frame(i, 0, 16)[0, 0, 1] == 0)
    shown = [int(videos.frame(clip, step, 16)[0, 0, 0]) for step in range(6)]
    assert shown == [20, 40, 200, 40, 20, 40]
    assert pictures.folder_videos(tmp_path / "clip").count == 1
    assert [bounce(step, 1) for step in range(3)] == [0, 0, 0]


def test_folders_without_frames_and_bad_steps_are_refused(tmp_path):
    with pytest.raises(InvalidValueError, match="holds no frames"):
        pictures.folder_videos(tmp_path)
    with pytest.raises(InvalidValueError, match="step must be a whole number, got -1"):
        pictures.procedural_videos().frame(0, -1, 64)
    with pytest.raises(InvalidValueError, match="video must be a whole number, got 60"):
        pictures.procedural_videos().frame(60, 0, 64)


def test_painted_videos_move_a_little_and_depend_on_their_address_alone():
    videos = pictures.procedural_videos()
    frames = [videos.frame(7, step, 64).astype(int) for step in (0, 10, 20, 10)]
    np.testing.assert_array_equal(frames[1], frames[3])
    near, far = np.abs(frames[1] - frames[0]).mean(), np.abs(frames[2] - frames[0]).mean()
    assert 0 < near < far
    other = videos.frame(8, 0, 64).astype(int)
    assert np.abs(other - frames[0]).mean() > 5


def test_levels_limit_the_videos():
    videos = pictures.procedural_videos()
    counts = {
        name: pictures.first(videos, level.videos).count for name, level in pictures.LEVELS.items()
    }
    assert counts == {"easy": 4, "hard": 60, "medium": 8}
    easy = pictures.first(videos, 4)
    np.testing.assert_array_equal(easy.frame(3, 5, 64), videos.frame(3, 5, 64))
    assert easy.digest != videos.digest
    with pytest.raises(InvalidValueError, match="video must be a whole number, got 4"):
        easy.frame(4, 0, 64)
    with pytest.raises(InvalidValueError, match="count must be at least 1, got 0"):
        pictures.first(videos, 0)
    with pytest.raises(UnknownNameError, match="Did you mean 'hard'"):
        pictures.difficulty("hardd")


def test_levels_have_distracting_controls_figures():
    hard = pictures.difficulty("hard")
    assert hard.camera_angle == pytest.approx(0.3 * np.pi / 2)
    assert hard.camera_radius == pytest.approx((0.85, 1.45))
    assert (hard.color_range, hard.color_step) == pytest.approx((0.3, 0.009))
    assert pictures.SCALES == {
        0.025: 2,
        0.05: 2,
        0.1: 4,
        0.15: 6,
        0.2: 8,
        0.3: None,
        0.4: None,
        0.5: None,
    }
