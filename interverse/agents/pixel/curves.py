"""Curves of a run: episodes, evaluations and losses, as JSON and for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from torch import Tensor

from interverse.core.errors import missing_extra
from interverse.models.checkpoint import write_json

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError as error:
    raise missing_extra("tensorboard", "torch") from error

CURVES = "curves.json"


@final
class Curves:
    """Rows of three kinds, each with the step it belongs to."""

    def __init__(self, folder: Path) -> None:
        kinds = ("episodes", "evaluations", "losses")
        self.rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
        self._folder = folder
        self._writer: SummaryWriter | None = None

    def open(self, step: int) -> None:
        """Starts writing for TensorBoard; what an earlier try wrote after `step` is dropped."""
        folder = str(self._folder / "tensorboard")
        self._writer = SummaryWriter(folder, purge_step=step + 1 if step else None)

    def episode(self, step: int, total: float, length: int) -> None:
        """Adds an episode that exploration finished."""
        self.rows["episodes"].append({"step": step, "return": total, "length": length})
        self._write(step, {"episode/return": total, "episode/length": length})

    def evaluation(self, step: int, returns: list[float]) -> None:
        """Adds an evaluation."""
        mean = sum(returns) / len(returns)
        self.rows["evaluations"].append({"step": step, "mean": mean, "returns": returns})
        self._write(step, {"evaluation/return": mean})

    def losses(self, step: int, losses: Mapping[str, Tensor]) -> None:
        """Adds losses; this waits for the device."""
        values = {name: float(value) for name, value in losses.items()}
        self.rows["losses"].append({"step": step, **values})
        self._write(step, {f"loss/{name}": value for name, value in values.items()})

    def save(self) -> None:
        """Writes all rows to `curves.json`."""
        write_json(self._folder / CURVES, self.rows)
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Ends the log."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)
