"""Moving pictures: an episode as an MP4."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import (
    InvalidValueError,
    check_number,
    check_whole,
    missing_extra,
)
from interverse.core.files.atomic import atomic
from interverse.core.type_checks import blames_types
from interverse.envs import make
from interverse.rollouts.counterfactual import played
from interverse.rollouts.episode import Episode
from interverse.worlds.own_code import check_trusted

try:
    import imageio_ffmpeg
except ImportError as error:
    raise missing_extra("imageio-ffmpeg", "report") from error

Frame = NDArray[np.uint8]  # (height, width, 3)
_EVEN = 2  # the codec needs sides that are multiples of this


def episode_frames(episode: Episode, *, every: int = 1) -> Iterator[Frame]:
    """Yields pictures of an episode as it replays: its start, then after every so many actions."""
    check_trusted("the episode", episode.id, episode.options)
    env = make(episode.id, render_mode="rgb_array", **episode.options)
    try:
        env.world.use_film_size()
        for step in played(env, episode):
            if step % every == 0:
                yield env.render()
    finally:
        env.close()


@blames_types
def record_episode(
    episode: Episode, path: str | os.PathLike[str], *, fps: float = 25.0, every: int = 1
) -> Path:
    """Writes a video of an episode; returns its path.

    Args:
        episode: what to show; it is replayed.
        path: of the video, `*.mp4`.
        fps: pictures a second.
        every: actions between two pictures.
    """
    check_whole(every, "every", 10**9)
    return write_video(episode_frames(episode, every=every), path, fps=fps)


@blames_types
def write_video(frames: Iterable[Frame], path: str | os.PathLike[str], *, fps: float) -> Path:
    """Writes pictures to an MP4 as they come, whole or not at all; returns its path."""
    target = Path(path)
    if target.suffix.lower() != ".mp4":
        raise InvalidValueError(f"the video is named {target.name!r}", allowed="*.mp4")
    check_number(fps, "fps", above=True)
    with atomic(target) as partial:
        writer = None
        try:
            for frame in frames:
                height, width = (side - side % _EVEN for side in frame.shape[:2])
                if writer is None:
                    writer = imageio_ffmpeg.write_frames(
                        str(partial), (width, height), fps=fps, quality=7, macro_block_size=_EVEN
                    )
                    writer.send(None)
                writer.send(np.ascontiguousarray(frame[:height, :width]))
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise InvalidValueError("there are no pictures to write")
    return target
