"""Export to Minari, Farama's store of offline reinforcement-learning data (extra `minari`)."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from interverse.core.errors import missing_extra
from interverse.data.dataset import Dataset


def to_minari(data: Dataset, name: str, **about: Any) -> Any:
    """Returns the data set as a new `minari.MinariDataset`, stored under a name, pixels lossless.

    Args:
        data: what to export.
        name: Minari's id, such as "interverse/blocks-observed-3/train-v0".
        **about: what else `minari.create_dataset_from_buffers` takes: author, code_permalink, ...
    """
    try:
        minari = importlib.import_module("minari")
        buffers = importlib.import_module("minari.data_collector")
    except ImportError as error:
        raise missing_extra("minari", "minari") from error
    header = data.header
    spec = copy.deepcopy(gym.spec(header.id))
    spec.kwargs.update(header.options)
    told = {
        "algorithm_name": "random",
        "description": f"{header.id}, seed {header.seed}, interverse {header.version}",
        "jpeg_encoding": False,
    } | about
    return minari.create_dataset_from_buffers(
        name, _episodes(data, buffers.EpisodeBuffer), env=spec, **told
    )


def _episodes(data: Dataset, buffer: Any) -> Iterator[Any]:
    """Yields one episode at a time, so that the pixels of one are in memory, not of all."""
    for e in range(len(data)):
        frames = data.images(e)[0]
        seen = {"image": frames, "state": data.states[e]}
        if data.header.targets:
            seen["target"] = np.broadcast_to(data.target_images(e)[0], frames.shape)
        never = np.zeros(data.header.steps, dtype=bool)
        yield buffer(
            id=e,
            seed=int(data.seeds[e]),
            options={"episode": int(data.episodes[e])},
            observations=seen,
            actions=data.actions[e],
            rewards=data.rewards[e],
            terminations=never,
            truncations=np.arange(1, data.header.steps + 1) == data.header.steps,
        )
