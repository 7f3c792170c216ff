"""A trained pixel policy as two plain files: weights in safetensors, everything else in JSON.

`PixelPolicy` is the encoder and the actor of the DMCR paper: convolutions, linear, norm, tanh
(not in CURL and RAD), perceptron, tanh. Loading runs no code from the files: nothing is unpickled.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, final

import numpy as np

from interverse.core.errors import InvalidValueError, explain, missing_extra
from interverse.core.files.json_text import read_json_object
from interverse.rollouts.policy_card import (
    CARD,
    check_bounds,
    check_layers,
    read_policy,
    write_policy,
)

try:
    import torch
    from torch.nn import functional
except ImportError as error:
    raise missing_extra("torch", "torch") from error

FORMAT = "interverse-pixel-policy-1"
_MOST_PIXELS = 512  # along a side
_SCALE, _LARGE = ".scale", 2**16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PixelCard:
    """What the weights are.

    Attributes:
        observation: shape (C, S, S) of what the world gives, uint8.
        image_size: the middle of it that the encoder sees.
        convolutions: how many; the first has stride 2, the others 1.
        layers: linear layers of the actor.
        low: least action; `high`: greatest.
        trained: what trained it, for the record.
        squash: whether features pass tanh; those of files that do not say so do.
    """

    observation: list[int]
    image_size: int
    convolutions: int
    layers: int
    low: list[float]
    high: list[float]
    trained: dict[str, Any]
    squash: bool = True
    format: str = FORMAT


class PicturePolicy(ABC):
    """The action of two files, as a callable on batched pictures.

    Attributes:
        card: what the files say; of the class's `card_type`.
        weights: tensors by name.
        at_once: pictures that are computed together.
    """

    card: Any
    card_type: ClassVar[type[Any]]
    file_format: ClassVar[str]
    at_once: ClassVar[int] = 64  # the first maps of more would fill the memory

    def __init__(self, card: Any, weights: dict[str, Any]) -> None:
        self.card = card
        self.weights = weights

    @abstractmethod
    def forward(self, pictures: Any) -> Any:
        """Returns actions for a tensor of pictures."""

    @abstractmethod
    def check(self) -> None:
        """Raises ValueError unless card and weights are one network."""

    def __call__(self, observations: Any) -> Any:
        """Returns one action per world."""
        seen = np.asarray(observations)
        if list(seen.shape[1:]) != self.card.observation or seen.dtype != np.uint8:
            raise InvalidValueError(
                explain(
                    f"the policy sees {seen.dtype} {seen.shape[1:]}",
                    allowed=f"uint8 {tuple(self.card.observation)}, as it was trained with",
                    fix=f"Give the world the options of its training: {self._options()}",
                )
            )
        with torch.no_grad():
            starts = range(0, len(seen), self.at_once)
            parts = [seen[i : i + self.at_once] for i in starts]
            return torch.cat([self.forward(torch.as_tensor(p)) for p in parts]).numpy()

    def _options(self) -> str:
        options = self.card.trained.get("options", {})
        return ", ".join(f"{name}={json.dumps(value)}" for name, value in options.items())

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the two files into a folder, each whole or not at all; returns the folder."""
        return write_policy(folder, self.card, self.weights)

    def save_small(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the same with large matrices as whole numbers of one byte: half of half precision.

        A row of a matrix has its own scale; the rest is in half precision. Actions change a little.
        """
        small: dict[str, Any] = {}
        for name, value in self.weights.items():
            if value.numel() < _LARGE:
                small[name] = value.half()
                continue
            scale = value.float().abs().amax(1, keepdim=True).clamp(min=1e-12) / 127.0
            small[name] = (value.float() / scale).round().to(torch.int8)
            small[name + _SCALE] = scale
        return type(self)(self.card, small).save(folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Returns the policy in a folder; a torn or foreign one raises FileFormatError."""

        def make(told: dict[str, Any], weights: dict[str, Any]) -> Any:
            policy = cls(cls.card_type(**told), _widened(weights))
            policy.check()
            return policy

        return read_policy(folder, make, what="pixel policy", format=cls.file_format)


@final
class PixelPolicy(PicturePolicy):
    """The mean action of encoder and actor."""

    card: PixelCard
    card_type, file_format = PixelCard, FORMAT

    def features(self, pictures: Any) -> Any:
        """Returns the encoder's output, as the actor reads it, (N, features)."""
        x = self.maps(pictures)[-1].flatten(1)
        weights = self.weights
        x = functional.linear(x, weights["trunk.weight"], weights["trunk.bias"])
        norm, bias = weights["norm.weight"], weights["norm.bias"]
        x = functional.layer_norm(x, [len(norm)], norm, bias)  # a constant, as ONNX needs it
        return torch.tanh(x) if self.card.squash else x

    def maps(self, pictures: Any) -> list[Any]:
        """Returns the activations of every convolution, (N, filters, h, w) each."""
        size = self.card.image_size
        start = (pictures.shape[-1] - size) // 2
        x = pictures[..., start : start + size, start : start + size] / 255.0
        maps = []
        for i in range(self.card.convolutions):
            weight, bias = self.weights[f"conv.{i}.weight"], self.weights[f"conv.{i}.bias"]
            x = torch.relu(functional.conv2d(x, weight, bias, stride=1 if i else 2))
            maps.append(x)
        return maps

    def forward(self, pictures: Any) -> Any:
        """Returns actions for a tensor of pictures."""
        x = self.features(pictures)
        for i in range(self.card.layers):
            x = functional.linear(
                x, self.weights[f"actor.{i}.weight"], self.weights[f"actor.{i}.bias"]
            )
            if i < self.card.layers - 1:
                x = torch.relu(x)
        low, high = (torch.tensor(b, dtype=torch.float32) for b in (self.card.low, self.card.high))
        mean = torch.tanh(x[:, : len(self.card.low)])  # the rest is the spread
        return torch.clamp(low + 0.5 * (mean + 1.0) * (high - low), low, high)

    def check(self) -> None:
        """Raises ValueError unless card and weights are one network."""
        _check(self.card, self.weights)


def _widened(held: Mapping[str, Any]) -> dict[str, Any]:
    """Returns weights in single precision; small files have half precision, or bytes and scales."""
    scales = {name.removesuffix(_SCALE): v for name, v in held.items() if name.endswith(_SCALE)}
    rest = {name: value.float() for name, value in held.items() if not name.endswith(_SCALE)}
    return {name: value * scales.get(name, 1.0) for name, value in rest.items()}


def policy_format(folder: Path) -> Any:
    """Returns the format that the card in a folder names, if there is one."""
    try:
        return read_json_object(folder / CARD).get("format")
    except (OSError, ValueError):
        return None


def _check(card: PixelCard, weights: Mapping[str, Any]) -> None:
    """Raises ValueError unless card and weights are one network."""
    if card.format != FORMAT:
        raise ValueError(f"format {card.format!r}")
    shape, size = card.observation, card.image_size
    whole = isinstance(shape, list) and all(type(n) is int for n in shape)
    if not whole or len(shape) != 3 or not all(1 <= n <= _MOST_PIXELS for n in shape):
        raise ValueError(f"observation {shape!r}")
    if type(size) is not int or not 1 <= size <= min(shape[1:]):
        raise ValueError(f"image_size {size!r}")
    if not isinstance(card.trained, dict):
        raise ValueError("trained is no table")
    if not isinstance(card.squash, bool):
        raise ValueError(f"squash {card.squash!r}")
    check_layers("convolutions", card.convolutions)
    check_layers("layers", card.layers)
    check_bounds(card.low, card.high)
    absent = sorted(_names(card) - weights.keys())
    if absent:
        raise ValueError(f"no {absent[0]}")
    with torch.no_grad():  # layers fit together, or Torch says which does not
        picture = torch.zeros(1, *shape, dtype=torch.uint8)
        try:
            acted = PixelPolicy(card, dict(weights)).forward(picture)
        except (RuntimeError, IndexError) as error:
            raise ValueError(str(error).splitlines()[0]) from error
    if acted.shape != (1, len(card.low)):
        raise ValueError(f"actions of shape {tuple(acted.shape)}")


def _names(card: PixelCard) -> set[str]:
    parts = [f"conv.{i}" for i in range(card.convolutions)]
    parts += ["trunk", "norm", *(f"actor.{i}" for i in range(card.layers))]
    return {f"{part}.{kind}" for part in parts for kind in ("weight", "bias")}
