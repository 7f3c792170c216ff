"""Training a recognition model on pairs: epochs, accuracies, progress that survives a kill."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from interverse.core.errors import InvalidValueError
from interverse.core.files.atomic import write_json
from interverse.core.files.checkpoints import Checkpoint, Checkpoints
from interverse.core.files.tensor_files import write_safetensors
from interverse.core.rng import check_seed, generator
from interverse.core.run import CHECKPOINTS, Run
from interverse.models.pairs.config import PairFit, PairModelConfig
from interverse.models.pairs.tensors import PairTensors
from interverse.models.pairs.work import PairWork
from interverse.models.pairs.yardsticks import select
from interverse.models.steps import matmul_precision

SETS = ("train", "valid", "test_id", "test_ood")
Listener = Callable[[Mapping[str, Any]], None]
"""Called after every epoch with its row of the history."""


class Sets(Protocol):
    """Row numbers of the four sets, as a split of the data gives them."""

    @property
    def train(self) -> NDArray[Any]:
        """To train on."""

    @property
    def valid(self) -> NDArray[Any]:
        """To choose an epoch by."""

    @property
    def test_id(self) -> NDArray[Any]:
        """Tests in distribution."""

    @property
    def test_ood(self) -> NDArray[Any]:
        """Tests out of it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairRun:
    """A trained model, how its accuracies went, and what each rule of selection reports.

    Attributes:
        work: the networks on their data, after the last epoch.
        sets: row numbers by set, on the device.
        history: one row per epoch: loss, and accuracy on train, valid, test_id and test_ood.
        selection: by rule, ID and OOD accuracy.
        weights: where the encoder's weights came from.
    """

    work: PairWork
    sets: Mapping[str, Tensor]
    history: tuple[Mapping[str, Any], ...]
    selection: Mapping[str, Mapping[str, float]]
    weights: str

    @classmethod
    def of(
        cls, work: PairWork, sets: Mapping[str, Tensor], history: Sequence[Mapping[str, Any]]
    ) -> PairRun:
        """Returns a run that has ended, with what each rule selects of its history."""
        told = {"selection": select(history), "weights": work.encoder.source}
        return cls(work=work, sets=sets, history=tuple(history), **told)  # type: ignore[arg-type]

    def record(self) -> dict[str, Any]:
        """Returns all but the networks as JSON values."""
        return {
            "model": self.work.config.record(),
            "fit": self.work.fit.decides(),
            "seed": self.work.seed,
            "weights": self.weights,
            "sizes": {name: len(rows) for name, rows in self.sets.items()},
            "selection": {rule: dict(row) for rule, row in self.selection.items()},
            "history": [dict(row) for row in self.history],
        }


def fit_pairs(
    config: PairModelConfig,
    data: PairTensors,
    split: Sets,
    *,
    fit: PairFit,
    seed: int = 0,
    listeners: Sequence[Listener] = (),
) -> PairRun:
    """Returns a model trained on `split.train`, with its accuracy after every epoch.

    Accuracy on the training set is that met while training. A run whose `fit.out` holds progress
    goes on from it, and equals an unbroken run to the last bit on a CPU.

    Args:
        config: the model; `recipe` has the published ones.
        data: all pairs.
        split: which rows are for what.
        fit: how to train.
        seed: of weights and order.
        listeners: called after every epoch.
    """
    check_seed(seed)
    device = torch.device(fit.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InvalidValueError("device is 'cuda', but torch finds no GPU", fix="Pass device='cpu'")
    if config.pairing == "mask" and data.masks is None:
        raise InvalidValueError(
            "pairing 'mask' needs masks, and these pairs have none", fix="Use 'avg'"
        )
    sets = rows_of(split, len(data), device)
    work = PairWork(config, data.to(device), fit, seed)
    asked = {"model": config.record(), "fit": fit.decides(), "seed": seed}
    asked["data"] = fingerprint(data, sets)
    if work.encoder.source != "random":  # the seed tells those
        asked["encoder"] = work.begun_with
    history: list[dict[str, Any]] = []

    def reached() -> Checkpoint:
        return Checkpoint(step=len(history), record={"history": history}, tensors=work.state())

    run = Run(fit.out, asked, title="epochs", total=fit.epochs, every=fit.checkpoint_every)
    # Every seed's sets have sizes of their own: kernels tried for each cost a minute a seed.
    with run, matmul_precision(fit.precision, tune=False):
        if (held := run.resume()) is not None:
            work.restore(held.tensors)
            history += held.record["history"]
        work.keep_features()
        for epoch in range(len(history), fit.epochs):
            row = {"epoch": epoch + 1, **work.epoch(epoch_rows(sets, seed, epoch), epoch)}
            row |= {name: round(work.accuracy(sets[name]), 6) for name in SETS[1:]}
            history.append(row)
            run.keep(epoch + 1, reached)
            for listener in listeners:
                listener(row)
    found = PairRun.of(work, sets, history)
    if fit.out is not None:
        write_json(fit.out / "run.json", found.record())
        if fit.keep_weights:
            write_safetensors(fit.out / "weights.safetensors", work.weights())
        else:
            Checkpoints(fit.out / CHECKPOINTS).clear()
    return found


def epoch_rows(sets: Mapping[str, Tensor], seed: int, epoch: int) -> Tensor:
    """Returns the training rows in an epoch's order."""
    order = generator(seed=seed, name="pairs/order", episode=epoch)
    return sets["train"][torch.as_tensor(order.permutation(len(sets["train"])))]


def fingerprint(data: PairTensors, sets: Mapping[str, Tensor]) -> str:
    """Returns a short text that changes with labels, split or (some of the) pictures."""
    digest = hashlib.blake2b(digest_size=8)
    step = max(1, len(data) // 64)
    for part in (data.verb, data.noun, data.images[::step], *(sets[name] for name in SETS)):
        digest.update(np.ascontiguousarray(part.cpu().numpy()).tobytes())
    return f"{len(data)} pairs of {data.size} px, {data.crop}, {digest.hexdigest()}"


def rows_of(split: Sets, count: int, device: torch.device) -> dict[str, Tensor]:
    """Returns the row numbers of each set on a device; a set that is too small raises."""
    found = {}
    for name in SETS:
        rows = np.asarray(getattr(split, name))
        least = 2 if name == "train" else 1
        if len(rows) < least:
            raise InvalidValueError(
                f"the split's {name} set has {len(rows)} pairs",
                allowed=f"at least {least}",
                fix="Collect more pairs, or choose another shift or seed",
            )
        if rows.min() < 0 or rows.max() >= count:
            raise InvalidValueError(f"the split's {name} set names pair {rows.max()} of {count}")
        found[name] = torch.as_tensor(rows.astype(np.int64), device=device)
    return found
