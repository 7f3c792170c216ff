"""Training curves for TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from interverse.core.errors import missing_extra
from interverse.models.fit import Epoch, Listener

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError as error:
    raise missing_extra("tensorboard", "torch") from error


@contextmanager
def curves(folder: Path, seeds: Sequence[int]) -> Iterator[Listener]:
    """Yields a listener that writes one scalar per seed and loss."""
    with SummaryWriter(str(folder)) as writer:

        def listener(epoch: Epoch) -> None:
            for index, seed in enumerate(seeds):
                writer.add_scalar(
                    f"{epoch.stage}/train/seed-{seed}", epoch.train[index], epoch.epoch
                )
                writer.add_scalar(
                    f"{epoch.stage}/valid/seed-{seed}", epoch.valid[index], epoch.epoch
                )

        yield listener
