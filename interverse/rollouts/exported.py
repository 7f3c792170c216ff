"""A trained policy as two plain files: weights in safetensors, everything else in JSON.

An exported policy is a multilayer perceptron with its observation normalisation and its action
bounds. Loading runs no code from the files: nothing is unpickled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, final

import numpy as np

from interverse.core.errors import InvalidValueError, explain, missing_extra
from interverse.rollouts.policy_card import (
    check_bounds,
    check_chain,
    check_layers,
    check_seen,
    read_policy,
    write_policy,
)

try:
    import torch
except ImportError as error:
    raise missing_extra("torch", "torch") from error

_FORMAT = "interverse-policy-1"
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
        seen = self._flat(observations)
        check_seen(seen.shape, len(self.weights["obs.mean"]))
        with torch.no_grad():
            x = torch.as_tensor(seen, dtype=torch.float32)
            return self.forward(self.prepare(x)).numpy()

    def _flat(self, observations: Any) -> np.ndarray[Any, Any]:
        """Returns what the first layer sees: a flat observation, or the card's parts of a dict."""
        if not self.card.inputs:
            given = np.asarray(observations)
            return given if given.dtype.kind in "biuf" else np.zeros((0, 0, 0))
        if not isinstance(observations, Mapping) or set(self.card.inputs) - set(observations):
            raise InvalidValueError(
                explain(
                    "the saved policy cannot see these observations",
                    allowed=f"a dict with {', '.join(self.card.inputs)}",
                    fix="Make the world with the id and the options the policy was trained with",
                )
            )
        parts = [np.asarray(observations[name]) for name in self.card.inputs]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    def on(self, device: Any) -> Callable[[Any], Any]:
        """Returns the policy as a function of tensors on a Torch device, without host copies."""
        moved = ExportedPolicy(self.card, {k: v.to(device) for k, v in self.weights.items()})

        def act(seen: Any) -> Any:
            with torch.no_grad():
                return moved.forward(moved.prepare(seen.to(torch.float32)))

        return act

    def prepare(self, x: Any) -> Any:
        """Returns observations limited and normalised."""
        if self.card.clip is not None:
            x = torch.nan_to_num(x).clip(-self.card.clip, self.card.clip)
        return (x - self.weights["obs.mean"]) / self.weights["obs.std"]

    def forward(self, x: Any) -> Any:
        """Returns actions for normalised observations."""
        x = self.output(x)
        low, high = (x.new_tensor(b) for b in (self.card.low, self.card.high))
        if self.card.squash:
            return low + 0.5 * (torch.tanh(x) + 1.0) * (high - low)
        return torch.clamp(x, low, high)

    def output(self, x: Any) -> Any:
        """Returns what the last layer gives for normalised observations."""
        activate = _ACTIVATIONS[self.card.activation]
        for i in range(self.card.layers):
            x = torch.nn.functional.linear(
                x, self.weights[f"{i}.weight"], self.weights[f"{i}.bias"]
            )
            if i < self.card.layers - 1:
                x = activate(x)
        return x

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the two files into a folder; returns the folder."""
        return write_policy(folder, self.card, self.weights)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> ExportedPolicy:
        """Returns the policy in a folder; a torn or foreign one raises FileFormatError."""

        def make(told: dict[str, Any], weights: dict[str, Any]) -> ExportedPolicy:
            card = Card(**told)
            _check(card, weights)
            return cls(card, weights)

        return read_policy(folder, make, what="policy", format=_FORMAT)


def _check(card: Card, weights: Mapping[str, Any]) -> None:
    """Raises ValueError unless card and weights are one perceptron."""
    if card.format != _FORMAT:
        raise ValueError(f"format {card.format!r}")
    if card.activation not in _ACTIVATIONS:
        raise ValueError(f"activation {card.activation!r}")
    if not isinstance(card.inputs, list) or not all(isinstance(name, str) for name in card.inputs):
        raise ValueError("inputs is no list of names")
    if not isinstance(card.trained, dict):
        raise ValueError("trained is no table")
    check_layers("layers", card.layers)
    check_bounds(card.low, card.high)
    mean, std = weights.get("obs.mean"), weights.get("obs.std")
    if mean is None or std is None or mean.ndim != 1 or mean.shape != std.shape:
        raise ValueError("no obs.mean and obs.std of one shape")
    check_chain(weights, [str(i) for i in range(card.layers)], len(mean), len(card.low))
