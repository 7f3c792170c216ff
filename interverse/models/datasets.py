"""From a data set at rest to what training and evaluation take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.data.dataset import Dataset, draw_frames
from interverse.models.heads import RewardData
from interverse.models.source import (
    ArraySource,
    DataWorld,
    RenderedSource,
    TransitionSource,
    check_same_world,
)

_GRID = 5


class Labels(np.ndarray):
    """Whole numbers that tell which world they are of, as their data set did."""

    world: DataWorld | None = None

    def __array_finalize__(self, made_of: Any) -> None:
        self.world = getattr(made_of, "world", None)


def dataset_world(data: Dataset) -> DataWorld:
    """Returns the world that a data set was collected in."""
    return DataWorld(data.header.id, data.header.options)


def dataset_source(data: Dataset, *, device: str = "cpu", drawn: bool = False) -> TransitionSource:
    """Returns the transitions of a data set.

    Args:
        data: from `interverse.load_dataset` or `open_dataset`.
        device: where frames are kept.
        drawn: keep the scenes (a few MB) and draw frames in each batch, instead of keeping every
            frame as uint8 (0.76 GB for the published training set), which is faster.
    """
    world = dataset_world(data)
    if drawn:
        return RenderedSource(data.scene_arrays(), data.actions, draw_frames, device, world)
    return ArraySource(*data.transitions(), device=device, world=world)


def dataset_rewards(data: Dataset, source: TransitionSource) -> RewardData:
    """Returns what the reward predictor trains on; `source` is the data set's own."""
    check_same_world(
        "rewards", dataset_world(data), "frames", source.world, fix="Pass one data set's"
    )
    return RewardData(source=source, rewards=data.rewards, targets=data.target_images())


def dataset_labels(data: Dataset) -> tuple[NDArray[np.int64], int]:
    """Returns the objects' values (E, T + 1, objects) for a probe, and how many values there are.

    In blocks a value is a cell, in chemistry a colour.
    """
    states: NDArray[Any] = np.asarray(data.states)
    if data.header.id.startswith("blocks/"):
        found, values = states[..., 0].astype(np.int64) * _GRID + states[..., 1], _GRID**2
    else:
        found, values = states.astype(np.int64), int(states.max()) + 1
    labels = found.view(Labels)
    labels.world = dataset_world(data)
    return labels, values
