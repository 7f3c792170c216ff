"""Torch loaders over a data set (extra `torch`).

Pictures are drawn a batch at a time, in the loader, from the scenes behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from interverse.core.errors import InvalidValueError, explain, missing_extra
from interverse.data.dataset import Dataset
from interverse.data.schema import GridScene

try:
    import torch
    from torch.utils.data import DataLoader
    from torch.utils.data import Dataset as TorchDataset
except ImportError as error:  # pragma: no cover - the suite has torch
    raise missing_extra("torch", "torch") from error

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TransitionBatch(NamedTuple):
    """Transitions: pictures uint8 (B, 50, 50, 3), actions (B,), rewards (B,)."""

    image: torch.Tensor
    action: torch.Tensor
    next_image: torch.Tensor
    reward: torch.Tensor


@final
class TransitionDataset(TorchDataset[TransitionBatch]):
    """Every transition of a data set by number: e * steps + t is step t of episode e."""

    def __init__(self, data: Dataset) -> None:
        self.data = data
        steps = data.header.steps
        lead = (len(data) * (steps + 1),)
        # Frames by number; pixels are read once where there are no scenes to draw from.
        if data.scene is None:
            self._images: NDArray[np.uint8] | None = data.images().reshape(*lead, 50, 50, 3)
            self._scene = None
        else:
            self._images = None
            self._scene = GridScene(*(p.reshape(*lead, *p.shape[2:]) for p in data.scene))

    def __len__(self) -> int:
        """How many transitions there are."""
        return self.data.actions.size

    def __getitem__(self, index: int) -> TransitionBatch:
        """Returns one transition, without a batch axis."""
        return TransitionBatch(*(part[0] for part in self.__getitems__([index])))

    def __getitems__(self, indices: list[int]) -> TransitionBatch:
        """Returns a batch of transitions; the loader calls this."""
        chosen = np.asarray(indices)
        if chosen.size and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise InvalidValueError(
                explain(f"transition {chosen.max()}", allowed=f"0 to {len(self) - 1}")
            )
        frame = chosen + chosen // self.data.header.steps
        both = self._frames(np.concatenate([frame, frame + 1]))
        return TransitionBatch(
            torch.from_numpy(both[: len(chosen)]),
            torch.from_numpy(self.data.actions.reshape(-1)[chosen]),
            torch.from_numpy(both[len(chosen) :]),
            torch.from_numpy(self.data.rewards.reshape(-1)[chosen]),
        )

    def _frames(self, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        if self._images is not None:
            return self._images[numbers]
        assert self._scene is not None  # one of the two is there
        return np.asarray(GridScene(*(part[numbers] for part in self._scene)).draw())


def transition_loader(
    data: Dataset, *, batch_size: int = 512, shuffle: bool = True, seed: int = 0, workers: int = 0
) -> DataLoader[TransitionBatch]:
    """Returns a Torch loader of `TransitionBatch`es; the seed fixes the order of every epoch.

    Args:
        data: where from.
        batch_size: transitions a batch; the last one of an epoch may be smaller.
        shuffle: in a new order each epoch, or by number.
        seed: of the order.
        workers: processes that draw; 0 draws in this one.
    """
    generator = torch.Generator().manual_seed(seed)
    return DataLoader(
        TransitionDataset(data),
        batch_size=batch_size,
        shuffle=shuffle,
        generator=generator,
        num_workers=workers,
        collate_fn=_as_is,
    )


def _as_is(batch: Any) -> Any:
    return batch
