"""Moving backgrounds: a user's frames, played forward and backward, or painted drifting ones."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from interverse.art.pictures.folder import ImageFile, image_file, images_in, joined
from interverse.art.pictures.procedural import (
    PAINTED,
    Picture,
    Procedural,
    Videos,
    check_index,
    check_number,
    check_size,
    procedural_backgrounds,
)
from interverse.art.textures import quantise, resize, smoothstep, spectral
from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import generator

PAINTED_VIDEOS = 60  # as many as the DAVIS videos that Distracting Control plays
_STEP = "step must be a whole number"
_STILL = ("city", "interior")  # built places make no videos: landscapes turn


@final
@dataclass(frozen=True, slots=True)
class FrameVideos:
    """Videos given as frames in files, one tuple of files each."""

    videos: tuple[tuple[ImageFile, ...], ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.videos)

    @property
    def digest(self) -> str:
        """The videos' digests, in order, in one word."""
        return joined(joined(file.digest for file in video) for video in self.videos)

    def frame(self, video: int, step: int, size: int) -> Picture:
        """Returns what a video shows at a step: one frame a step, to the end and back."""
        frames = self.videos[check_index(video, self.count, "video")]
        return _frame(frames[bounce(check_number(step, _STEP, 0), len(frames))], check_size(size))


@final
@dataclass(frozen=True, slots=True)
class Drifting:
    """Painted landscapes that turn slowly, below clouds that pass faster."""

    pictures: Procedural

    @property
    def count(self) -> int:
        """How many there are."""
        return PAINTED_VIDEOS

    @property
    def digest(self) -> str:
        """The pictures' digest and the number of videos in one word."""
        return joined(["drifting", self.pictures.digest, str(self.count)])

    def frame(self, video: int, step: int, size: int) -> Picture:
        """Returns what a video shows at a step; turns and clouds come round without a seam."""
        video = check_index(video, self.count, "video")
        step, size = check_number(step, _STEP, 0), check_size(size)
        number = _turning(self.pictures)[video]
        picture = self.pictures.picture(number, size)
        white = min(235, 40 + round(170 * sum(self.pictures.mean_color(number))))  # dim at night
        turn, pass_by = _speeds(video)
        base = np.roll(picture, round(turn * step * size), axis=1).astype(np.uint16)
        veil = np.roll(_veil(video, size), round(pass_by * step * size), axis=1)[..., None]
        # Whole numbers only: the same bits on every machine.
        return ((base * (256 - veil) + white * veil) >> 8).astype(np.uint8)


@final
@dataclass(frozen=True, slots=True)
class FirstVideos:
    """The first few of some videos."""

    videos: Videos
    count: int

    @property
    def digest(self) -> str:
        """The whole set's digest and how many are used, in one word."""
        return joined([self.videos.digest, str(self.count)])

    def frame(self, video: int, step: int, size: int) -> Picture:
        """Returns what a video shows at a step of the world."""
        return self.videos.frame(check_index(video, self.count, "video"), step, size)


def procedural_videos() -> Drifting:
    """Returns the painted moving backgrounds.

    >>> procedural_videos().count
    60
    """
    return Drifting(procedural_backgrounds())


def folder_videos(path: str | Path) -> FrameVideos:
    """Returns the videos of a folder: its sub-folders' frames, or its own if it has images.

    Frames are played in the natural order of their names (2 before 10); videos are ordered by the
    digests of their frames.

    Raises:
        InvalidValueError: if there is no such folder, or no frame in it.
        FileFormatError: if a frame cannot be decoded; the text names it.
    """
    own = images_in(path)
    subfolders = [p for p in Path(path).iterdir() if p.is_dir() and not p.name.startswith(".")]
    lists = [own] if own else [images_in(p) for p in subfolders]
    videos = [tuple(image_file(p) for p in sorted(frames, key=_natural)) for frames in lists]
    videos = [video for video in videos if video]
    if not videos:
        raise InvalidValueError(
            f"{path} holds no frames", allowed="a folder of images, or a folder of such folders"
        )
    return FrameVideos(tuple(sorted(videos, key=lambda v: joined(f.digest for f in v))))


def first(videos: Videos, count: int | None) -> Videos:
    """Returns the first `count` of the videos; all of them if None or if there are fewer."""
    if count is None or count >= videos.count:
        return videos
    if count < 1:
        raise InvalidValueError(explain(f"count must be at least 1, got {count}"))
    return FirstVideos(videos, count)


def bounce(step: int, length: int) -> int:
    """Returns which of `length` frames is shown when they run to the end and back.

    >>> [bounce(step, 3) for step in range(6)]
    [0, 1, 2, 1, 0, 1]
    """
    period = max(2 * (length - 1), 1)
    place = step % period
    return min(place, period - place) if length > 1 else 0


def _natural(path: Path) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", path.name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]


@functools.cache
def _turning(pictures: Procedural) -> tuple[int, ...]:
    """Returns the pictures that turn, far apart first, so that few videos show several kinds."""
    whole = [i for i in range(pictures.count) if pictures.kind(i) not in _STILL]
    stride = 37  # has no divisor in common with the number of pictures below
    return tuple(whole[video * stride % len(whole)] for video in range(PAINTED_VIDEOS))


@functools.lru_cache(maxsize=256)
def _frame(file: ImageFile, size: int) -> Picture:
    return file.picture(size)


@functools.lru_cache(maxsize=256)
def _speeds(video: int) -> tuple[float, float]:
    """Returns how far landscape and clouds move in a step, in pictures."""
    rng = generator(seed=video, name="pictures/drift/1")
    way = 1 if rng.random() < 0.5 else -1
    return way * rng.uniform(0.001, 0.004), way * rng.uniform(0.006, 0.015)


@functools.lru_cache(maxsize=64)
def _veil(video: int, size: int) -> np.ndarray:
    """Returns how much of the clouds covers each pixel, (size, size) in 0..256, dense on top."""
    rng = generator(seed=video, name="pictures/veil/1")
    field = smoothstep(spectral(rng, PAINTED, 2.6, stretch=(1.0, 2.0)), 0.2, 2.0)
    height = np.linspace(1.0, 0.0, PAINTED)[:, None]
    veil = quantise(0.75 * field * smoothstep(height, 0.45, 0.8))
    return resize(veil[..., None].repeat(3, axis=2), size)[..., 0].astype(np.uint16)
