"""Coloured squares that walk on a 5 x 5 grid and ignore each other: the smallest world to learn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from interverse.models.source import ArraySource, ModelBatch, places
from interverse.models.world_model import WorldModelConfig

_MOVES = np.array([(0, 0), (-1, 0), (0, 1), (1, 0), (0, -1)])
Squares = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]


@pytest.fixture(autouse=True)
def one_thread():
    """Exactness across runs is promised on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def walk(episodes: int, steps: int, seed: int, objects: int = 3):
    """Returns images (E, T + 1, 50, 50, 3), actions (E, T), cells (E, T + 1, objects)."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 5, (episodes, objects, 2))
    actions = rng.integers(0, 5 * objects, (episodes, steps))
    images = np.zeros((episodes, steps + 1, 5, 10, 5, 10, 3), np.uint8)
    cells = np.zeros((episodes, steps + 1, objects), np.int64)
    every = np.arange(episodes)
    for t in range(steps + 1):
        for o in range(objects):
            row, column = place[:, o].T
            images[every, t, row, :, column, :, o % 3] = 255
        cells[:, t] = place[..., 0] * 5 + place[..., 1]
        if t < steps:
            acted, move = actions[:, t] // 5, _MOVES[actions[:, t] % 5]
            place[every, acted] = np.clip(place[every, acted] + move, 0, 4)
    return images.reshape(episodes, steps + 1, 50, 50, 3), actions, cells


def batch(source, indices) -> ModelBatch:
    """Returns transitions as images."""
    where = places(source, indices)
    return ModelBatch(source.frames(where.frame), where.action, source.frames(where.next_frame))


@pytest.fixture(scope="session")
def squares() -> Squares:
    return walk


@pytest.fixture(scope="session")
def train() -> ArraySource:
    return ArraySource(*walk(8, 10, seed=0)[:2])


@pytest.fixture(scope="session")
def valid() -> ArraySource:
    return ArraySource(*walk(3, 10, seed=1)[:2])


def tiny_config(model: str = "modular", loss: str = "contrastive", **choices) -> WorldModelConfig:
    shape = {
        "objects": 3,
        "encoder": "small",
        "embedding": 4,
        "hidden": 32,
        "encoder_channels": 8,
    } | ({"decoder_width": 16} if loss == "nll" else {})
    return WorldModelConfig(model=model, loss=loss, **{**shape, **choices})


@pytest.fixture(scope="session")
def tiny() -> Callable[..., WorldModelConfig]:
    return tiny_config
