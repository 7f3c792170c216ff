"""Pictures of episodes for the page: a contact sheet and a short video from frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain, missing_extra
from interverse.core.files.atomic import make_folder

try:
    import imageio.v3 as iio
except ImportError as error:
    raise missing_extra("imageio", "report") from error

Frames = NDArray[np.uint8]  # (frame, height, width, 3)
_GAP = 4  # pixels of white between the pictures of a sheet


def contact_sheet(frames: Frames, path: str | Path, *, count: int = 8, columns: int = 4) -> Path:
    """Writes evenly spaced frames, the first and the last among them, side by side as one picture.

    Args:
        frames: (frame, height, width, 3) uint8.
        path: of the picture, with a suffix such as .png.
        count: how many frames to show; all, if there are fewer.
        columns: how many stand in a row.
    """
    given = _checked(frames)
    if count < 1 or columns < 1:
        raise InvalidValueError(
            explain(f"count is {count} and columns {columns}", allowed="whole numbers from 1")
        )
    chosen = given[np.unique(np.linspace(0, len(given) - 1, count).round().astype(int))]
    columns = min(columns, len(chosen))
    rows = -(-len(chosen) // columns)
    height, width = chosen.shape[1:3]
    sheet = np.full(
        (rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3), 255, np.uint8
    )
    for i, frame in enumerate(chosen):
        top, left = (i // columns) * (height + _GAP), (i % columns) * (width + _GAP)
        sheet[top : top + height, left : left + width] = frame
    return _write(sheet, Path(path))


def video(frames: Frames, path: str | Path, *, fps: float = 25.0) -> Path:
    """Writes frames as an MP4 that every browser plays.

    Sides are cut to even numbers of pixels, which the codec needs.
    """
    given = _checked(frames)
    if not fps > 0:
        raise InvalidValueError(explain(f"fps must be > 0, got {fps}"))
    target = Path(path)
    if target.suffix.lower() != ".mp4":
        raise InvalidValueError(explain(f"the video is named {target.name!r}", allowed="*.mp4"))
    height, width = (side - side % 2 for side in given.shape[1:3])
    make_folder(target.parent)
    options: Any = {"codec": "libx264", "macro_block_size": 2, "output_params": ["-crf", "23"]}
    iio.imwrite(target, given[:, :height, :width], fps=fps, plugin="FFMPEG", **options)
    return target


def _checked(frames: Frames) -> Frames:
    given = np.asarray(frames)
    if given.ndim != 4 or given.shape[-1] != 3 or given.dtype != np.uint8 or not len(given):
        raise InvalidValueError(
            explain(
                f"frames have shape {given.shape} and dtype {given.dtype}",
                allowed="(frame, height, width, 3) uint8, at least one frame",
            )
        )
    return given


def _write(picture: Frames, path: Path) -> Path:
    make_folder(path.parent)
    iio.imwrite(path, picture)
    return path
