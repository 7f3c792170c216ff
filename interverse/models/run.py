"""The training loop over stages: one for every model here.

Stages follow each other on the same weights. After each epoch the validation loss decides whether
the weights are the best so far; a stage starts from the last weights of the one before, not from
its best. Progress is written after epochs, and a run started again goes on where it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from interverse.core.errors import InvalidValueError, explain
from interverse.models import checkpoint
from interverse.models.fit import Fit, Listener, ModelStage
from interverse.models.learner import Learner
from interverse.models.stage_work import StageWork, State, under
from interverse.models.steps import matmul_precision


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressFolder:
    """Where a run's progress is kept.

    Attributes:
        folder: its own.
        record: what was asked for; progress of another run is refused.
    """

    folder: Path
    record: Mapping[str, Any]

    def load(self) -> checkpoint.Progress | None:
        """Returns how far the run had come."""
        return checkpoint.load(self.folder, self.record)

    def best(self, stage: ModelStage) -> Path:
        """Returns the file of a finished stage's best weights."""
        return self.folder / f"best-{stage.name}.safetensors"


@final
class Run:
    """Stages in work on one learner.

    Args:
        learner: the weights.
        stages: what to do, in order.
        how: the settings.
        seeds: of the learner's members.
        progress_folder: where progress is kept, or None.
        listeners: called after every epoch.
    """

    def __init__(
        self,
        learner: Learner,
        stages: Sequence[ModelStage],
        how: Fit,
        *,
        seeds: Sequence[int],
        progress_folder: ProgressFolder | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.learner, self.stages, self.how = learner, tuple(stages), how
        self.seeds, self.progress_folder = tuple(seeds), progress_folder
        self.listeners = tuple(listeners)
        self.history: list[dict[str, Any]] = []

    def __call__(self) -> dict[str, State]:
        """Trains; returns each stage's best weights, with a leading member axis."""
        found = None if self.progress_folder is None else self.progress_folder.load()
        if found is not None:
            self.learner.load(under(found.tensors, "weights"))
            self.history = [dict(row) for row in found.history]
        begun = -1 if found is None else found.stage
        results = {}
        with matmul_precision(self.how.precision):
            for number, stage in enumerate(self.stages):
                if number < begun and self.progress_folder is not None:
                    results[stage.name] = checkpoint.read_tensors(self.progress_folder.best(stage))
                    continue
                results[stage.name] = self._stage(number, found if number == begun else None)
        return results

    def _stage(self, number: int, found: checkpoint.Progress | None) -> State:
        stage = self.stages[number]
        work = StageWork(self.learner, stage, self.how, self.seeds)
        if found is not None and found.epoch > 0:
            work.restore(found)
        epochs = self.how.epochs_of(stage.name)
        for epoch in range(work.epoch, epochs):
            report = work.run_epoch()
            self.history.append(report.row())
            last = epoch + 1 == epochs
            if self.progress_folder is not None and (
                last or (epoch + 1) % self.how.checkpoint_every == 0
            ):
                self._save(self.progress_folder, number, work)
            for listener in self.listeners:
                listener(report)
        if any(math.isinf(value) for value in work.lowest):
            raise InvalidValueError(
                explain(
                    f"the validation loss of stage {stage.name!r} was never a number",
                    fix="Lower learning_rate, or use precision='float32'",
                )
            )
        if self.progress_folder is not None:
            checkpoint.write_tensors(self.progress_folder.best(stage), work.best)
            self._save(self.progress_folder, number + 1, None)
        return work.best

    def _save(self, progress_folder: ProgressFolder, number: int, work: StageWork | None) -> None:
        """Writes progress: inside a stage (with its best and optimiser) or between two."""
        tensors = {f"weights/{k}": v for k, v in self.learner.state().items()}
        progress = checkpoint.Progress(
            run=progress_folder.record,
            stage=number,
            epoch=0 if work is None else work.epoch,
            best=() if work is None else work.lowest,
            history=tuple(self.history),
            tensors=tensors if work is None else tensors | work.tensors(),
        )
        checkpoint.save(progress_folder.folder, progress)
