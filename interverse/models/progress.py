"""Progress of a training run: a bar on the terminal, curves for TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from interverse.core.errors import missing_extra
from interverse.models.fit import Epoch, Listener


@contextmanager
def bar(*, epochs: int, stages: Sequence[str]) -> Iterator[Listener]:
    """Yields a listener that advances one bar per stage, on standard error."""
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[losses]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as shown:
        tasks = {
            name: shown.add_task(name, total=epochs, losses="", start=False) for name in stages
        }

        def listener(epoch: Epoch) -> None:
            task = tasks[epoch.stage]
            shown.start_task(task)
            valid = " ".join(f"{value:.4g}" for value in epoch.valid)
            shown.update(task, completed=epoch.epoch, losses=f"valid {valid}")

        yield listener


@contextmanager
def curves(folder: Path, seeds: Sequence[int]) -> Iterator[Listener]:
    """Yields a listener that writes one scalar per seed and loss for TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise missing_extra("tensorboard", "torch") from error
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
