"""The published models by name, each as the paper tells it and as its code does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, final

from interverse.core.errors import check_name
from interverse.models.pairs.config import EncoderConfig, EncoderName, PairFit, PairModelConfig

Source = Literal["code", "paper"]


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
    if source == "paper":
        return Recipe(model=_as_paper(model), fit=_paper_fit(model))
    return Recipe(model=_as_code(model), fit=_code_fit(model))


def _as_code(model: PairModelConfig) -> PairModelConfig:
    slots = model.encoder.name == "slots"
    encoder = replace(model.encoder, implicit=False) if slots else model.encoder
    return replace(model, encoder=encoder, head_norm=slots)


def _as_paper(model: PairModelConfig) -> PairModelConfig:
    slots = model.encoder.name == "slots"
    matched = slots and model.pairing.startswith("match")
    encoder = replace(model.encoder, start="noise") if slots else model.encoder
    return replace(
        model,
        encoder=encoder,
        match="similarity" if matched else "index",
        projection="mlp",
        join="concat",
        final_relu=False,
        sparsity_form="norm",
    )


def _paper_fit(model: PairModelConfig) -> PairFit:
    return PairFit(
        epochs=_epochs(model), batch_size=128 if model.frozen else 32, learning_rate=1e-3
    )


def _code_fit(model: PairModelConfig) -> PairFit:
    if model.encoder.name == "slots":
        return PairFit(epochs=50, batch_size=200, learning_rate=2e-3)
    rate = 1e-3 if model.frozen else 2e-4
    return PairFit(epochs=_epochs(model), batch_size=128, learning_rate=rate)


def _epochs(model: PairModelConfig) -> int:
    return 200 if model.frozen and model.encoder.name != "slots" else 50
