"""Draws the moving pictures of the front page into docs/images: a fact and its twin, side by side.

python docs/make_movies.py [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

import interverse as iv
from interverse.agents.policies import trained_policy
from interverse.rollouts.video import episode_frames
from interverse.worlds.rooms.actions import CLASS_NAMES

SIDE, GAP = 220, 8  # of a picture, between the two, pixels
QUALITY = 72
Frame = np.ndarray


class Movie(NamedTuple):
    """An episode, and the intervention that makes its twin."""

    id: str
    policy: Any
    do: Mapping[str, Any]
    options: Mapping[str, Any] = {}
    seed: int = 0
    at: int = 0
    steps: int | None = None
    every: int = 1
    duration: int = 80  # of a picture, ms


MOVIES = {
    "trifinger": Movie(
        "trifinger/pushing-v1",
        trained_policy("pushing_2"),
        {"block_0/mass": 0.1, "floor/friction": 0.8},
        {"skip_frame": 3},
        steps=240,
        every=6,
    ),
    "control": Movie(
        "control/cartpole_balance-v1",
        trained_policy("cartpole_balance_small"),
        {"visual_seed": 12},
        {"frame_skip": 8, "frame_stack": 3, "image_size": 64},
        steps=60,
    ),
    "blocks": Movie(
        "blocks/observed-5-v1", "random", {"block_0/weight": 1.0}, seed=45, steps=24, duration=300
    ),
    "chemistry": Movie(
        "chemistry/chain-v1", "random", {"edge_1_2": 0}, seed=1, at=0, steps=16, duration=500
    ),
}


def pair(movie: Movie) -> Iterator[tuple[Frame, Frame]]:
    """Yields pictures of the fact and of its twin."""
    fact = iv.rollout(
        iv.make(movie.id, **movie.options), movie.policy, seed=movie.seed, max_steps=movie.steps
    )
    twin = iv.counterfactual(fact, movie.do, at=movie.at)
    both = [episode_frames(episode, every=movie.every) for episode in (fact, twin)]
    yield from zip(*both, strict=False)


def rooms() -> Iterator[tuple[Frame, Frame]]:
    """Yields a fridge that opens at noon and in the evening."""
    fridge = CLASS_NAMES.index("Fridge")
    lights = (
        {"light/time_of_day": 13.0},
        {"light/time_of_day": 22.5, "light/color": [1, 0.7, 0.4]},
    )
    envs = [iv.make("rooms/single-v1", render_mode="rgb_array", image_size=SIDE) for _ in lights]
    for env, light in zip(envs, lights, strict=True):
        env.reset(seed=8, options={"do": {"object/class": fridge, **light}})
    for opening in [*np.linspace(0, 0.9, 14), *np.linspace(0.9, 0, 14)]:
        for env in envs:
            env.do({"object/state": [opening, *env.values["object/state"][1:]]}, check=False)
        yield envs[0].render(), envs[1].render()


def sized(picture: Frame) -> Frame:
    """Returns the middle of a picture, in the size of the page."""
    rows, columns = picture.shape[:2]
    start = max(columns - rows, 0) // 2
    if columns > 2 * rows:  # chemistry: the present scene; the target stands beside it
        start = 0
    middle = Image.fromarray(picture[:, start : start + rows])
    return np.asarray(middle.resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def write(pairs: Iterator[tuple[Frame, Frame]], file: Path, duration: int) -> None:
    """Writes the pairs as one moving picture."""
    gap = np.full((SIDE, GAP, 3), 255, dtype=np.uint8)
    frames = [Image.fromarray(np.hstack([sized(a), gap, sized(b)])) for a, b in pairs]
    frames[0].save(
        file, save_all=True, append_images=frames[1:], duration=duration, loop=0, quality=QUALITY
    )
    print(file.name, len(frames), file.stat().st_size)


def main(arguments: Sequence[str]) -> None:
    """Draws everything."""
    folder = Path(arguments[0]) if arguments else Path(__file__).parent / "images"
    folder.mkdir(parents=True, exist_ok=True)
    for name, movie in MOVIES.items():
        write(pair(movie), folder / f"moving_{name}.webp", movie.duration)
    write(rooms(), folder / "moving_rooms.webp", 90)


if __name__ == "__main__":
    main(sys.argv[1:])
