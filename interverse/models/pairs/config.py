"""Settings of a recognition model and of its training, and the published models by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, final, get_args

from interverse.core.errors import InvalidValueError, check_name
from interverse.core.type_checks import Positive, number, validated, whole
from interverse.models.steps import Precision

EncoderName = Literal["lite0", "rooms", "resnet18", "resnet50", "clip", "groupvit", "slots"]
Source = Literal["code", "paper"]
Count = Annotated[int, whole(10**9)]
Weight = Annotated[float, number()]
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
                f"weights {self.weights!r} do not fit scale='tiny'", fix="Use scale='full'"
            )
        if self.slots < 1 or self.iterations < 1:
            raise InvalidValueError(
                f"slots {self.slots}, iterations {self.iterations}", allowed="at least 1"
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
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
    min_mask: Annotated[float, number(most=1.0, above=True)] = 1.0
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
    independence: Weight = 0.0
    """ICM's weight: the action embedding must not tell the object class to a critic."""
    state_independence: Weight = 0.0
    """The same for the features of each picture, with a critic of their own; off in the paper."""
    sparsity: Weight = 0.0
    """SMS's weight: blocks of features that the action does not concern must not change."""
    sparsity_form: Literal["mse", "norm"] = "mse"
    """mse: mean square over all features (the code). norm: sum of block norms (the paper)."""
    translation: Annotated[float, number(most=1.0, below=True)] = 0.0
    """Training pictures are cut to a part of their area, drawn from 1 - translation to 1, each at a
    place of its own, and brought back to size."""

    def __post_init__(self) -> None:
        if self.min_mask != 1.0 and self.pairing != "mask":
            raise InvalidValueError(
                f"min_mask is {self.min_mask}, but pairing {self.pairing!r} looks at no mask",
                fix="Leave it out, or take pairing 'mask' (oracle-mask, lite0-mask)",
            )
        if self.translation and self.frozen:
            raise InvalidValueError(
                f"translation is {self.translation}, but a frozen encoder sees a picture once",
                fix="Leave it out, or take a model that trains its encoder, such as vanilla",
            )
        if self.pairing == "mask" and not self.encoder.name.startswith(("resnet", "lite", "rooms")):
            raise InvalidValueError(
                f"pairing 'mask' needs a feature map, {self.encoder.name} has none",
                allowed="lite0, rooms, resnet18, resnet50",
            )
        if self.match == "similarity" and not self.frozen:
            raise InvalidValueError(
                "match='similarity' reorders kept features", fix="Set frozen=True"
            )

    def record(self) -> dict[str, Any]:
        """Returns the fields as JSON values; those that are off by default stand there when on."""
        optional = ("state_independence", "translation")
        return {k: v for k, v in asdict(self).items() if v or k not in optional}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class PairFit:
    """How to train."""

    epochs: Count = 50
    batch_size: Annotated[int, whole(10**9, least=2)] = 128
    """At least 2, for batch norm."""
    learning_rate: Positive = 2e-4
    device: str = "cpu"
    precision: Precision = "float32"
    """tf32 and bf16 concern a GPU."""
    out: Path | None = None
    """Folder for progress, curves and weights; without it nothing is written and resumed."""
    checkpoint_every: Count = 1
    """Epochs between progress records: what a kill can cost."""
    features: Path | None = None
    """Folder for a frozen encoder's features, so that other heads and seeds find them."""
    keep_weights: bool = True
    """Whether the last epoch's weights stay in `out` when training is done."""

    def decides(self) -> dict[str, Any]:
        """Returns the fields that decide the result."""
        names = ("epochs", "batch_size", "learning_rate", "precision")
        return {name: getattr(self, name) for name in names}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A model and how it trains."""

    model: PairModelConfig
    fit: PairFit


def _config(encoder: EncoderName, frozen: bool, **fields: Any) -> PairModelConfig:
    return PairModelConfig(encoder=EncoderConfig(name=encoder), frozen=frozen, **fields)


_MODELS: Mapping[str, PairModelConfig] = MappingProxyType(
    {
        "clip": _config("clip", True),
        "group-avg": _config("groupvit", True),
        "group-dense": _config("groupvit", True, pairing="dense"),
        "group-token": _config("groupvit", True, pairing="match-max"),
        "group-token-mean": _config("groupvit", True, pairing="match-mean"),
        "icm": _config("resnet18", False, independence=0.05),
        "lite0": _config("lite0", True),
        "lite0-icm": _config("lite0", True, independence=0.05),
        "lite0-mask": _config("lite0", True, pairing="mask", min_mask=0.01),
        "lite0-sms": _config("lite0", True, sparsity=10.0),
        "oracle-mask": _config("resnet18", False, pairing="mask", min_mask=0.01),
        "resnet-frozen": _config("resnet18", True),
        "slot-avg": _config("slots", True),
        "slot-dense": _config("slots", True, pairing="dense"),
        "slot-match": _config("slots", True, pairing="match-max"),
        "slot-match-mean": _config("slots", True, pairing="match-mean"),
        "sms": _config("resnet18", False, sparsity=0.1),
        "vanilla": _config("resnet18", False),
    }
)
RECIPES = tuple(_MODELS)
INDEPENDENCE = (0.0, 0.01, 0.05, 0.1, 0.5)
SPARSITY = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
MIN_MASK = (1.0, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001)


def recipe(name: str, source: Source = "code") -> Recipe:
    """Returns a published model with its hyper-parameters.

    Args:
        name: one of RECIPES; "vanilla" is also Table 3's resnet.
        source: "code": what the authors' code does. "paper": what the paper says; the two differ
            in projection, pair input, sparsity norm, slot pairing, learning rate and batch.

    >>> recipe("sms", "paper").model.sparsity_form, recipe("sms").model.sparsity_form
    ('norm', 'mse')
    """
    check_name("recipe", name, _MODELS)
    model = _MODELS[name]
    slots = model.encoder.name == "slots"
    epochs = 200 if model.frozen and not slots else 50
    if source == "paper":
        matched = slots and model.pairing.startswith("match")
        told = replace(
            model,
            encoder=replace(model.encoder, start="noise") if slots else model.encoder,
            match="similarity" if matched else "index",
            projection="mlp",
            join="concat",
            final_relu=False,
            sparsity_form="norm",
        )
        batch = 128 if model.frozen else 32
        return Recipe(model=told, fit=PairFit(epochs=epochs, batch_size=batch, learning_rate=1e-3))
    if slots:
        model = replace(model, encoder=replace(model.encoder, implicit=False), head_norm=True)
        return Recipe(model=model, fit=PairFit(epochs=50, batch_size=200, learning_rate=2e-3))
    rate = 1e-3 if model.frozen else 2e-4
    return Recipe(model=model, fit=PairFit(epochs=epochs, batch_size=128, learning_rate=rate))
