"""Settings of training, and the records of a stage and an epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final, get_args

from torch import nn

from interverse.core.errors import InvalidValueError, check_name, check_whole, explain
from interverse.core.rng import check_seed
from interverse.core.type_checks import blames_fields
from interverse.models.draws import Needs
from interverse.models.feeds import Feed
from interverse.models.learner import Learner
from interverse.models.steps import Precision

_MOST = 10**9  # epochs, samples


@blames_fields
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How to train."""

    epochs: int = 100
    """Per stage."""
    pretrain_epochs: int | None = None
    """nll: epochs of its first stage, by far the dearest, if not as many."""
    batch_size: int = 512
    learning_rate: float = 5e-4
    seeds: tuple[int, ...] = (0,)
    """One model per seed. A seed decides weights, noise and the order of the samples."""
    order_seed: int | None = None
    """None: each seed visits the samples in an order of its own. A number: all seeds share the
    order that it gives."""
    episodes_per_batch: int = 5
    """Recurrent models train on whole episodes after pretraining."""
    validation_order: Literal["file", "shuffled"] = "file"
    """In file order, a validation batch holds few episodes and its negatives are hard: the
    contrastive loss is then several times the training loss. The reference does so."""
    finetune: bool = True
    """nll: whether the third stage follows, which trains encoder, decoder and transition on."""
    sample_latents: bool = False
    """vae, transition stage: train on sampled states as the reference does, not on means."""
    device: str = "cpu"
    precision: Precision = "float32"
    """tf32 and bf16 concern a GPU; bf16 the convolutions alone."""
    compile: bool = False
    """Fuses kernels with torch.compile: a minute per stage first, so for long runs."""
    cuda_graphs: bool = True
    """On a GPU, records an update once and replays it; turn it off to find a failing kernel."""
    at_once: Literal["auto", "always", "never"] = "auto"
    """Whether seeds train together as stacked weights; auto: on a GPU, but not with a decoder in
    bf16, where one seed fills it."""
    out: Path | None = None
    """Folder for progress and results; without it nothing is written and nothing resumed."""
    checkpoint_every: int = 1
    """Epochs between progress records."""
    progress: bool = False
    """Shows a bar on the terminal."""
    tensorboard: bool = False
    """Writes curves under `out`."""

    def __post_init__(self) -> None:
        for name in ("epochs", "pretrain_epochs", "batch_size", "episodes_per_batch"):
            if getattr(self, name) is not None:
                check_whole(getattr(self, name), name, _MOST)
        check_whole(self.checkpoint_every, "checkpoint_every", _MOST)
        if not self.learning_rate > 0:
            raise InvalidValueError(explain(f"learning_rate must be > 0, got {self.learning_rate}"))
        for seed in (*self.seeds, 0 if self.order_seed is None else self.order_seed):
            check_seed(seed)
        for name, words in (
            ("precision", get_args(Precision)),
            ("at_once", ("auto", "always", "never")),
            ("validation_order", ("file", "shuffled")),
        ):
            check_name(name, getattr(self, name), words)
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise InvalidValueError(explain(f"seeds must be distinct, at least one: {self.seeds}"))
        if self.tensorboard and self.out is None:
            raise InvalidValueError(
                explain("tensorboard=True needs a folder", fix="Pass out='runs/name'")
            )

    def epochs_of(self, stage: str) -> int:
        """Returns the epochs of a stage by name."""
        fewer = self.pretrain_epochs if stage == "pretrain" else None
        return self.epochs if fewer is None else fewer

    def decides(self) -> dict[str, Any]:
        """Returns the fields that decide the result, for comparison with a saved run."""
        names = (
            "epochs",
            "batch_size",
            "learning_rate",
            "order_seed",
            "episodes_per_batch",
            "validation_order",
            "finetune",
            "sample_latents",
            "precision",
        )
        own = {} if self.pretrain_epochs is None else {"pretrain_epochs": self.pretrain_epochs}
        return {name: getattr(self, name) for name in names} | own


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStage:
    """One stage of training, over a learner's module.

    Attributes:
        name: for records and noise addresses.
        objective: wraps the module so that it maps (batch, draw) to a loss.
        parts: first name components of the parameters it trains.
        feeds: training and validation samples, made when the stage begins.
        needs: the random numbers it uses.
        batch_size: samples per update.
    """

    name: str
    objective: Callable[[nn.Module], nn.Module]
    parts: tuple[str, ...]
    feeds: Callable[[Learner], tuple[Feed, Feed]]
    needs: Needs
    batch_size: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What one epoch gave, per member."""

    stage: str
    epoch: int
    train: tuple[float, ...]
    valid: tuple[float, ...]
    best: tuple[float, ...]
    seconds: float

    def row(self) -> dict[str, Any]:
        """Returns the fields as JSON values."""
        return {
            "stage": self.stage,
            "epoch": self.epoch,
            "train": list(self.train),
            "valid": list(self.valid),
            "seconds": round(self.seconds, 3),
        }


Listener = Callable[[Epoch], None]
