"""Fitting the models of a row, all missing seeds together, so that a restart loses little."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from torch import Tensor

from interverse.benchmarks.causalmbrl.budgets import Budget
from interverse.benchmarks.causalmbrl.materials import Materials
from interverse.benchmarks.causalmbrl.rows import MbrlRow
from interverse.benchmarks.causalmbrl.settings import Settings
from interverse.benchmarks.driver import Clock, Record
from interverse.models.fit import Fit
from interverse.models.world_fit import Fitted, fit_world_model
from interverse.models.world_model import WorldModelConfig

SAVED_EVERY = 10  # epochs on a GPU, where writing each would cost more than the training


@final
class Trainer:
    """Gives the models of rows: from disk, or trained now."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings, self.clock = settings, clock

    def models(
        self, row: MbrlRow, materials: Materials, seeds: Sequence[int]
    ) -> Mapping[int, Fitted]:
        """Returns a row's model of every seed asked for."""
        folder = (
            self.settings.out / "work" / (row.name + ("" if self.settings.finetune else ".plain"))
        )
        Record(folder / "asked.json", asked(self.settings, row)).write()
        missing = [seed for seed in seeds if not _saved(folder, seed).exists()]
        if missing:
            with self.clock.timed(f"{row.name}: training seeds {_joined_numbers(missing)}"):
                self._train(row, materials, folder, missing)
        return {seed: Fitted.load(folder / f"seed-{seed}") for seed in seeds}

    def _train(
        self, row: MbrlRow, materials: Materials, folder: Path, seeds: Sequence[int]
    ) -> None:
        settings, budget = self.settings, self.settings.budget_of(row)
        how = Fit(
            epochs=budget.epochs,
            pretrain_epochs=budget.pretrain_epochs,
            batch_size=budget.batch_size,
            seeds=tuple(seeds),
            device=settings.device,
            precision=settings.training_precision,
            compile=settings.compile,
            finetune=settings.finetune,
            out=folder,
            checkpoint_every=1 if settings.device == "cpu" else SAVED_EVERY,
            progress=sys.stderr.isatty(),
        )
        self.clock.check()
        watch = self.clock.watch(row.name, budget.epochs, saved_every=how.checkpoint_every)
        fit_world_model(
            config_of(row, budget, materials),
            how,
            materials.train,
            materials.valid,
            listeners=[watch],
        )


def config_of(row: MbrlRow, budget: Budget, materials: Materials) -> WorldModelConfig:
    """Returns the model of a row, as the published tables had it."""
    return WorldModelConfig.named(
        "reference",
        model=row.model,
        loss=row.loss,
        objects=materials.objects,
        actions_per_object=materials.actions_per_object,
        encoder=budget.encoder,
        embedding=budget.embedding,
    )


def asked(settings: Settings, row: MbrlRow) -> dict[str, Any]:
    """Returns what decides the numbers of a row."""
    return {
        "world": row.world,
        "model": row.model,
        "loss": row.loss,
        "budget": settings.budget,
        "sizes": settings.budget_of(row).record(),
        "precision": settings.training_precision,
        **row.options,
    }


def training_record(fitted: Fitted) -> dict[str, Any]:
    """Returns what training was like: per stage the time, the best epoch and its loss."""
    out: dict[str, Any] = {}
    for stage in fitted.weights:
        rows = [row for row in fitted.history if row["stage"] == stage]
        best = min(rows, key=lambda row: row["valid"])
        out[stage] = {
            "epochs": len(rows),
            "seconds": round(sum(row["seconds"] for row in rows), 1),
            "best_epoch": best["epoch"],
            "best_valid": best["valid"],
            "last_valid": rows[-1]["valid"],
            "weights": weights_digest(fitted.weights[stage]),
        }
    return out


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """Returns a short fingerprint of weights, by which scores of two trainings are told apart."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode() + weights[name].detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _saved(folder: Path, seed: int) -> Path:
    return folder / f"seed-{seed}" / "model.json"


def _joined_numbers(seeds: Sequence[int]) -> str:
    return ", ".join(str(seed) for seed in seeds)
