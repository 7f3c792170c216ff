"""A trained policy as two plain files: weights in safetensors, everything else in JSON.

An exported policy is a multilayer perceptron with its observation normalisation and its action
bounds. Loading runs no code from the files: nothing is unpickled.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, final

import numpy as np

from interverse.errors import FileFormatError, explain, missing_extra

try:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file
except ImportError as error:
    raise missing_extra("torch", "torch") from error

_FORMAT = "interverse-policy-1"
WEIGHTS, CARD = "policy.safetensors", "policy.json"
Activation = Literal["tanh", "relu", "elu"]
_ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "elu": torch.nn.functional.elu}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What the weights are: shape, activation, how actions leave.

    Attributes:
        layers: how many linear layers.
        activation: between them.
        squash: whether the last layer's output passes tanh and is stretched to the bounds.
        low: least action; `high`: greatest.
        trained: what trained it, for the record.
        inputs: parts of the observation dict that it sees, side by side; empty for a flat one.
        clip: observations are limited to [-clip, clip]; None leaves them.
    """

    layers: int
    activation: Activation
    squash: bool
    low: list[float]
    high: list[float]
    trained: dict[str, Any]
    inputs: list[str] = field(default_factory=list)
    clip: float | None = None
    format: str = _FORMAT


@final
class ExportedPolicy:
    """The deterministic policy of two files, as a callable on batched observations."""

    def __init__(self, card: Card, weights: dict[str, Any]) -> None:
        self.card = card
        self.weights = weights

    def __call__(self, observations: Any) -> Any:
        """Returns one action per world."""
        seen = observations
        if self.card.inputs:
            parts = [np.asarray(observations[name]) for name in self.card.inputs]
            seen = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
        with torch.no_grad():
            x = torch.as_tensor(np.asarray(seen), dtype=torch.float32)
            if self.card.clip is not None:
                x = torch.nan_to_num(x).clip(-self.card.clip, self.card.clip)
            x = (x - self.weights["obs.mean"]) / self.weights["obs.std"]
            return self.forward(x).numpy()

    def forward(self, x: Any) -> Any:
        """Returns actions for normalised observations."""
        activate = _ACTIVATIONS[self.card.activation]
        for i in range(self.card.layers):
            x = torch.nn.functional.linear(
                x, self.weights[f"{i}.weight"], self.weights[f"{i}.bias"]
            )
            if i < self.card.layers - 1:
                x = activate(x)
        low, high = (torch.tensor(b, dtype=torch.float32) for b in (self.card.low, self.card.high))
        if self.card.squash:
            return low + 0.5 * (torch.tanh(x) + 1.0) * (high - low)
        return torch.clamp(x, low, high)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the two files into a folder; returns the folder."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        save_file({k: v.contiguous() for k, v in self.weights.items()}, target / WEIGHTS)
        (target / CARD).write_text(json.dumps(asdict(self.card), indent=1))
        return target

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> ExportedPolicy:
        """Returns the policy in a folder; a torn or foreign one raises FileFormatError."""
        source = Path(folder)
        absent = [name for name in (CARD, WEIGHTS) if not (source / name).is_file()]
        if absent:
            raise FileFormatError(explain(f"{source} holds no policy: {absent[0]} is missing"))
        try:
            card = Card(**json.loads((source / CARD).read_text()))
            if card.format != _FORMAT:
                raise ValueError(f"format {card.format!r}")
            weights = load_file(source / WEIGHTS)
            missing = [f"{i}.weight" for i in range(card.layers) if f"{i}.weight" not in weights]
            if missing:
                raise ValueError(f"no {missing[0]}")
        except (ValueError, TypeError, OSError, SafetensorError) as error:
            raise FileFormatError(
                explain(
                    f"{source} holds no policy: {error}",
                    allowed=f"{WEIGHTS} and {CARD} of format {_FORMAT}",
                    fix="Export it with `interverse train`",
                )
            ) from error
        return cls(card, weights)
