"""Models of several seeds, from disk or trained now, so that a restart loses little."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from interverse.fit.materials import Materials
from interverse.fit.work import Clock
from interverse.models.fit import Fit
from interverse.models.steps import Precision
from interverse.models.world_fit import Fitted, fit_world_model
from interverse.models.world_model import Loss, WorldModelConfig

_RATE = 5e-4  # the published one
_SAVED_EVERY = 10  # epochs on a GPU, where writing each would cost more than the training


def fitted_models(
    config: WorldModelConfig,
    materials: Materials,
    folder: Path,
    seeds: Iterable[int],
    clock: Clock,
    *,
    name: str,
    precision: Precision,
    finetune: bool = True,
    compile: bool = False,
    learning_rate: float | None = None,
) -> dict[int, Fitted]:
    """Returns the model of every seed; all that a folder lacks are trained together."""
    seeds = tuple(seeds)
    missing = tuple(s for s in seeds if not (folder / f"seed-{s}" / "model.json").exists())
    if missing:
        sizes, device = materials.budget, materials.device
        how = Fit(
            epochs=sizes.epochs,
            pretrain_epochs=sizes.pretrain_epochs,
            finetune=finetune,
            batch_size=sizes.batch_size,
            seeds=missing,
            device=device,
            precision=precision,
            compile=compile,
            learning_rate=_RATE if learning_rate is None else learning_rate,
            out=folder,
            checkpoint_every=1 if device == "cpu" else _SAVED_EVERY,
            progress=sys.stderr.isatty(),
        )
        clock.check()
        with clock.timed(f"data of {materials.world}"):
            train, valid = materials.train, materials.valid
        told = f"{name}: seeds {', '.join(map(str, missing))}"
        watch = clock.watch(told, sizes.epochs, saved_every=how.checkpoint_every)
        with clock.timed(f"{told} trained"):
            fit_world_model(config, how, train, valid, listeners=[watch])
    return {seed: Fitted.load(folder / f"seed-{seed}") for seed in seeds}


def model_config(
    materials: Materials, model: str, loss: Loss, *, hidden: int = 512
) -> WorldModelConfig:
    """Returns a model as the published tables had it, 512 wide, for a world and its sizes."""
    return WorldModelConfig.named(
        "reference",
        model=model,
        loss=loss,
        objects=materials.objects,
        actions_per_object=materials.actions_per_object,
        encoder=materials.budget.encoder,
        embedding=materials.budget.embedding,
        hidden=hidden,
    )


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
