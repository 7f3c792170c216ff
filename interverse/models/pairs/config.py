"""Settings of a recognition model and of its training, checked together."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, final, get_args

from interverse.core.errors import InvalidValueError, check_name, check_number, explain
from interverse.models.steps import Precision

EncoderName = Literal["lite0", "rooms", "resnet18", "resnet50", "clip", "groupvit", "slots"]
Pairing = Literal["avg", "mask", "dense", "match-max", "match-mean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """The network that turns one picture into tokens."""

    name: EncoderName = "resnet18"
    weights: str | None = None
    """A folder or a hub's name for transformers, a file of `train_slots` for slots; None: random,
    but lite0 has the ImageNet weights of its installed package, rooms those that are shipped.
    Random weights are recorded as such: frozen ones make the numbers incomparable."""
    scale: Literal["full", "tiny"] = "full"
    """tiny: the same wiring with few channels and layers, random weights; for trying things out."""
    slots: int = 15
    iterations: int = 5
    resolution: Literal[32, 64, 128] = 128
    """Of pictures in the slot encoder; every step down is four times faster."""
    implicit: bool = True
    """Slots: only the last iteration is differentiated (the paper's variant); the reference's
    classifier has it off."""
    start: Literal["noise", "shared"] = "shared"
    """Slots of the second picture: from the same noise, or from the first picture's slots and
    then both again from their average (the reference), so that slot i goes with slot i."""

    def __post_init__(self) -> None:
        check_name("encoder", self.name, get_args(EncoderName))
        if self.weights is not None and self.scale == "tiny" and self.name != "slots":
            raise InvalidValueError(
                explain(f"weights {self.weights!r} do not fit scale='tiny'", fix="Use scale='full'")
            )
        if self.slots < 1 or self.iterations < 1:
            raise InvalidValueError(
                explain(f"slots {self.slots}, iterations {self.iterations}", allowed="at least 1")
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairModelConfig:
    """Encoder, head and regularisers; `recipe` has the published ones by name."""

    encoder: EncoderConfig = EncoderConfig()
    frozen: bool = False
    """Whether the encoder keeps its weights; its features are then computed once."""
    frozen_norm: Literal["fixed", "drift"] = "fixed"
    """Batch norm of a frozen encoder: fixed, or (as the reference) normalising by each batch with
    drifting averages, so that no feature can be kept."""
    pairing: Pairing = "avg"
    """avg: one vector per picture. mask: likewise, over the object's mask. dense: every token with
    every token, mean. match-max, match-mean: token i with token i."""
    match: Literal["index", "similarity"] = "index"
    """similarity: tokens of the second picture are first reordered to fit the first's best."""
    min_mask: float = 1.0
    """mask: weight of what is not the object; 1 is a plain average."""
    width: int = 64
    projection: Literal["linear", "mlp"] = "linear"
    """linear: Linear and ReLU (the code). mlp: two layers (the paper)."""
    join: Literal["difference", "concat", "sum_difference"] = "difference"
    """What the action encoder sees: (p1, p2 - p1), (p1, p2), or (p1 + p2, p2 - p1)."""
    action: Literal["mlp", "linear"] = "mlp"
    """linear: one layer on p2 - p1."""
    final_relu: bool = True
    """Whether the action embedding ends in ReLU (the code) or in a linear layer (the paper)."""
    head_norm: bool = False
    """Batch norm after every layer of the head but the classifier; the code has it for slots."""
    independence: float = 0.0
    """ICM's weight: the action embedding must not tell the object class to a critic."""
    state_independence: float = 0.0
    """The same for the features of each picture, with a critic of their own; off in the paper."""
    sparsity: float = 0.0
    """SMS's weight: blocks of features that the action does not concern must not change."""
    sparsity_form: Literal["mse", "norm"] = "mse"
    """mse: mean square over all features (the code). norm: sum of block norms (the paper)."""
    translation: float = 0.0
    """Training pictures are cut to a part of their area, drawn from 1 - translation to 1, each at a
    place of its own, and brought back to size."""

    def __post_init__(self) -> None:
        check_name("pairing", self.pairing, get_args(Pairing))
        check_number(self.min_mask, "min_mask", most=1.0, above=True)
        if self.min_mask != 1.0 and self.pairing != "mask":
            raise InvalidValueError(
                explain(
                    f"min_mask is {self.min_mask}, but pairing {self.pairing!r} looks at no mask",
                    fix="Leave it out, or take pairing 'mask' (oracle-mask, lite0-mask)",
                )
            )
        for name in ("independence", "state_independence", "sparsity"):
            check_number(getattr(self, name), name)
        check_number(self.translation, "translation", most=1.0, below=True)
        if self.translation and self.frozen:
            raise InvalidValueError(
                explain(
                    f"translation is {self.translation}, but a frozen encoder sees a picture once",
                    fix="Leave it out, or take a model that trains its encoder, such as vanilla",
                )
            )
        if self.pairing == "mask" and not self.encoder.name.startswith(("resnet", "lite", "rooms")):
            raise InvalidValueError(
                explain(
                    f"pairing 'mask' needs a feature map, {self.encoder.name} has none",
                    allowed="lite0, rooms, resnet18, resnet50",
                )
            )
        if self.match == "similarity" and not self.frozen:
            raise InvalidValueError(
                explain("match='similarity' reorders kept features", fix="Set frozen=True")
            )

    def record(self) -> dict[str, Any]:
        """Returns the fields as JSON values; those that are off by default stand there when on."""
        optional = ("state_independence", "translation")
        return {k: v for k, v in asdict(self).items() if v or k not in optional}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairFit:
    """How to train."""

    epochs: int = 50
    batch_size: int = 128
    learning_rate: float = 2e-4
    device: str = "cpu"
    precision: Precision = "float32"
    """tf32 and bf16 concern a GPU."""
    out: Path | None = None
    """Folder for progress, curves and weights; without it nothing is written and resumed."""
    checkpoint_every: int = 1
    """Epochs between progress records: what a kill can cost."""
    features: Path | None = None
    """Folder for a frozen encoder's features, so that other heads and seeds find them."""
    keep_weights: bool = True
    """Whether the last epoch's weights stay in `out` when training is done."""

    def __post_init__(self) -> None:
        for name in ("epochs", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise InvalidValueError(
                    explain(f"{name} must be at least 1, got {getattr(self, name)}")
                )
        if self.batch_size < 2:
            raise InvalidValueError(
                explain(f"batch_size is {self.batch_size}", allowed="at least 2, for batch norm")
            )
        if not self.learning_rate > 0:
            raise InvalidValueError(explain(f"learning_rate must be > 0, got {self.learning_rate}"))

    def decides(self) -> dict[str, Any]:
        """Returns the fields that decide the result."""
        names = ("epochs", "batch_size", "learning_rate", "precision")
        return {name: getattr(self, name) for name in names}
