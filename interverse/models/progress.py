"""A bar on the terminal for a training run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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
