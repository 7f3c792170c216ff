"""Levels of distraction: those of Distracting Control and the scales of DMC-GB.

At scale s, colours lie within s of their defaults, camera angles within s quarter turns, and the
number of videos grows; what moves during an episode walks at random with the deviations below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from interverse.core.errors import InvalidValueError, check_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """One level; everything but the number of videos follows from the scale."""

    scale: float
    videos: int | None
    """How many videos are played; None for all there are."""
    clear_floor: bool = True
    """Whether the floor lets the video behind it through, as far as Distracting Control has it."""
    any_frame: bool = True
    """Whether a video starts at any of its frames, as there, or at its first, as in DMC-GB."""
    by_decision: bool = False
    """Whether a video goes on by a frame at every decision, as in DMC-GB, which plays it above the
    action repeat, or at every control step, as all of Distracting Control does below it."""

    @property
    def color_range(self) -> float:
        """Largest change of a colour channel."""
        return self.scale

    @property
    def color_step(self) -> float:
        """Deviation of a colour channel's walk at each control step."""
        return 0.03 * self.scale

    @property
    def camera_angle(self) -> float:
        """Largest turn of the camera about its target, and of its roll, radians."""
        return math.pi / 2 * self.scale

    @property
    def camera_radius(self) -> tuple[float, float]:
        """Least and largest distance of the camera, of the default one."""
        return 1 - 0.5 * self.scale, 1 + 1.5 * self.scale

    @property
    def camera_step(self) -> float:
        """Deviation of the camera's velocity at each control step, at a radius of 4 m."""
        return 0.1 * self.scale

    @property
    def camera_speed(self) -> float:
        """Largest velocity of the camera, at a radius of 4 m."""
        return 0.4 * self.scale

    @property
    def roll_step(self) -> float:
        """Deviation of the roll's velocity at each control step, radians."""
        return math.pi / 300 * self.scale

    @property
    def roll_speed(self) -> float:
        """Largest velocity of the roll, radians a control step."""
        return math.pi / 50 * self.scale


LEVELS: dict[str, Difficulty] = {
    "easy": Difficulty(scale=0.1, videos=4),
    "hard": Difficulty(scale=0.3, videos=None),
    "medium": Difficulty(scale=0.2, videos=8),
}


def _played(videos: int | None) -> Difficulty:
    """Returns a level at which nothing moves but a video, as in DMC-GB."""
    return Difficulty(
        scale=0.0, videos=videos, clear_floor=False, any_frame=False, by_decision=True
    )


# DMC-GB's modes by name: how many videos, and where they play. Its colour modes have none.
VIDEO_MODES: dict[str, Difficulty] = {
    "video_easy": _played(videos=10),
    "video_hard": _played(videos=None),
}
VIDEO_PLACES: dict[str, tuple[str, ...]] = {
    "video_easy": ("video",),
    "video_hard": ("video", "floor"),
}
COLOR_MODES = ("color_easy", "color_hard")
NOTHING_PLAYS = _played(videos=0)

# What DMC-GB evaluates on: scale -> how many videos, None for all.
SCALES: dict[float, int | None] = {
    0.025: 2,
    0.05: 2,
    0.1: 4,
    0.15: 6,
    0.2: 8,
    0.3: None,
    0.4: None,
    0.5: None,
}


def difficulty(given: str | float) -> Difficulty:
    """Returns a level by name, or one of any scale; its videos are those of the next scale listed.

    >>> difficulty("easy").videos, difficulty(0.12).videos, difficulty(0.6).videos
    (4, 6, None)
    """
    if isinstance(given, str):
        named = LEVELS | VIDEO_MODES | {mode: NOTHING_PLAYS for mode in COLOR_MODES}
        check_name("difficulty", given, named)
        return named[given]
    number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
    if not number or not 0.0 < given <= 1.0:
        allowed = f"{', '.join(LEVELS)}, or a scale above 0 and up to 1"
        raise InvalidValueError(f"difficulty is {given!r}", allowed=allowed)
    videos = next((SCALES[scale] for scale in sorted(SCALES) if scale >= given), None)
    return Difficulty(scale=float(given), videos=videos)
