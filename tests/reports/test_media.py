"""Contact sheets and videos from frames."""

from __future__ import annotations

import imageio.v3 as iio
import numpy as np
import pytest

from interverse.core.errors import InvalidValueError
from interverse.reports.episodes import contact_sheet, video


def ramp(count: int, height: int = 20, width: int = 30) -> np.ndarray:
    """Returns frames of one grey each, from dark to bright."""
    greys = np.linspace(0, 250, count).astype(np.uint8)
    return np.broadcast_to(greys[:, None, None, None], (count, height, width, 3)).copy()


def test_a_sheet_shows_first_to_last_in_reading_order(tmp_path):
    sheet = iio.imread(contact_sheet(ramp(100), tmp_path / "a" / "sheet.png", count=8, columns=4))
    assert sheet.shape == (2 * 20 + 4, 4 * 30 + 3 * 4, 3)
    greys = [int(sheet[10 + 24 * r, 15 + 34 * c, 0]) for r in range(2) for c in range(4)]
    assert greys == sorted(greys)
    assert (greys[0], greys[-1]) == (0, 250)


def test_few_frames_make_a_small_sheet(tmp_path):
    sheet = iio.imread(contact_sheet(ramp(3), tmp_path / "sheet.png"))
    assert sheet.shape == (20, 3 * 30 + 2 * 4, 3)


def test_a_video_plays_back(tmp_path):
    path = video(ramp(10, 33, 47), tmp_path / "film.mp4", fps=5)
    frames = iio.imread(path, plugin="FFMPEG")
    assert frames.shape == (10, 32, 46, 3)
    greys = frames.mean(axis=(1, 2, 3))
    np.testing.assert_allclose(greys, np.linspace(0, 250, 10), atol=12)


def test_bad_frames_are_refused(tmp_path):
    with pytest.raises(InvalidValueError, match="dtype float64"):
        contact_sheet(np.zeros((2, 4, 4, 3)), tmp_path / "x.png")
    with pytest.raises(InvalidValueError, match="at least one frame"):
        video(np.zeros((0, 4, 4, 3), np.uint8), tmp_path / "x.mp4")
    with pytest.raises(InvalidValueError, match="fps must be > 0"):
        video(ramp(2), tmp_path / "x.mp4", fps=0)
    with pytest.raises(InvalidValueError, match=r"named 'x\.avi'.*\.mp4"):
        video(ramp(2), tmp_path / "x.avi")
    with pytest.raises(InvalidValueError, match="count is 0"):
        contact_sheet(ramp(2), tmp_path / "x.png", count=0)
