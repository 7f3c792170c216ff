"""Trained policies as two plain files: weights in safetensors, everything else in JSON.

`ExportedPolicy` is a perceptron with its observation normalisation and its action bounds.
`PixelPolicy` is the encoder and the actor of the DMCR paper: convolutions, linear, norm, tanh
(not in CURL and RAD), perceptron, tanh. Loading runs no code from the files: nothing is unpickled.
Both go into one file for machines without Python, too: TorchScript or ONNX.
"""

from __future__ import annotations

import json
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, final

import numpy as np

from interverse.core.errors import InvalidValueError, missing_extra
from interverse.core.files.atomic import atomic
from interverse.rollouts.saved import (
    check_bounds,
    check_chain,
    check_layers,
    check_seen,
    read_policy,
    write_policy,
)

try:
    import torch
    from torch.nn import functional
except ImportError as error:
    raise missing_extra("torch", "torch") from error


FORMAT, PIXEL_FORMAT = "interverse-policy-1", "interverse-pixel-policy-1"
Activation = Literal["tanh", "relu", "elu"]
_ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "elu": functional.elu}
_MOST_PIXELS = 512  # along a side
_SCALE, _LARGE = ".scale", 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCard:
    """What the files of any policy say: the least and greatest action, and what trained it."""

    low: list[float]
    high: list[float]
    trained: dict[str, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Card(PolicyCard):
    """The shape of a perceptron, and how actions leave it.

    Attributes:
        layers: how many linear layers; `activation`: between them.
        squash: whether the last layer's output passes tanh and is stretched to the bounds.
        inputs: parts of the observation dict that it sees, side by side; empty for a flat one.
        clip: observations are limited to [-clip, clip]; None leaves them.
    """

    layers: int
    activation: Activation
    squash: bool
    inputs: list[str] = field(default_factory=list)
    clip: float | None = None
    format: str = FORMAT


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PixelCard(PolicyCard):
    """The shapes of an encoder and an actor.

    Attributes:
        observation: shape (C, S, S) of what the world gives, uint8.
        image_size: the middle of it that the encoder sees.
        convolutions: how many; the first has stride 2, the others 1.
        layers: linear layers of the actor.
        squash: whether features pass tanh; those of files that do not say so do.
    """

    observation: list[int]
    image_size: int
    convolutions: int
    layers: int
    squash: bool = True
    format: str = PIXEL_FORMAT


class SavedPolicy(ABC):
    """The deterministic policy of two files, as a callable on batched observations.

    Attributes:
        card: what the files say; of the class's `card_type`.
        weights: tensors by name.
    """

    card: Any
    card_type: ClassVar[type[Any]]
    file_format: ClassVar[str]
    what: ClassVar[str] = "policy"

    def __init__(self, card: Any, weights: dict[str, Any]) -> None:
        self.card = card
        self.weights = weights

    @abstractmethod
    def __call__(self, observations: Any) -> Any:
        """Returns one action per world."""

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Returns actions for a tensor of observations, as the network takes them."""

    @abstractmethod
    def check(self) -> None:
        """Raises ValueError unless card and weights are one network."""

    def bounded(self, actions: Any) -> Any:
        """Returns numbers in (-1, 1) as actions from the least to the greatest."""
        ends = (self.card.low, self.card.high)
        low, high = (torch.tensor(end, dtype=torch.float32, device=actions.device) for end in ends)
        return torch.clamp(low + 0.5 * (actions + 1.0) * (high - low), low, high)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the two files into a folder, each whole or not at all; returns the folder."""
        return write_policy(folder, self.card, self.weights)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Returns the policy in a folder; a torn or foreign one raises FileFormatError."""

        def make(told: dict[str, Any], held: dict[str, Any]) -> Any:
            # Small files have weights in half precision, or as bytes with scales. The product below
            # copies: an action of one world rounds by where weights lie, in a mapped file anywhere.
            scales = {n.removesuffix(_SCALE): v for n, v in held.items() if n.endswith(_SCALE)}
            rest = {name: v.float() for name, v in held.items() if not name.endswith(_SCALE)}
            card = cls.card_type(**told)
            if card.format != cls.file_format:
                raise ValueError(f"format {card.format!r}")
            if not isinstance(card.trained, dict):
                raise ValueError("trained is no table")
            check_bounds(card.low, card.high)
            policy = cls(card, {name: v * scales.get(name, 1.0) for name, v in rest.items()})
            policy.check()
            return policy

        return read_policy(folder, make, what=cls.what, format=cls.file_format)


@final
class ExportedPolicy(SavedPolicy):
    """A perceptron with its observation normalisation and its action bounds."""

    card: Card
    card_type, file_format = Card, FORMAT

    def __call__(self, observations: Any) -> Any:
        """Returns one action per world, of a flat observation or the card's parts of a dict."""
        if not self.card.inputs:
            given = np.asarray(observations)
            seen = given if given.dtype.kind in "biuf" else np.zeros((0, 0, 0))
        elif isinstance(observations, Mapping) and set(self.card.inputs) <= set(observations):
            parts = [np.asarray(observations[name]) for name in self.card.inputs]
            seen = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
        else:
            raise InvalidValueError(
                "the saved policy cannot see these observations",
                allowed=f"a dict with {', '.join(self.card.inputs)}",
                fix="Make the world with the id and the options the policy was trained with",
            )
        check_seen(seen.shape, len(self.weights["obs.mean"]))
        with torch.no_grad():
            return self.forward(self.prepare(torch.as_tensor(seen, dtype=torch.float32))).numpy()

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
        return _layers(x, self.weights, "", self.card.layers, _ACTIVATIONS[self.card.activation])

    def check(self) -> None:
        """Raises ValueError unless card and weights are one perceptron."""
        card, weights = self.card, self.weights
        if card.activation not in _ACTIVATIONS:
            raise ValueError(f"activation {card.activation!r}")
        if not (isinstance(card.inputs, list) and all(isinstance(n, str) for n in card.inputs)):
            raise ValueError("inputs is no list of names")
        check_layers("layers", card.layers)
        mean, std = weights.get("obs.mean"), weights.get("obs.std")
        if mean is None or std is None or mean.ndim != 1 or mean.shape != std.shape:
            raise ValueError("no obs.mean and obs.std of one shape")
        check_chain(weights, [str(i) for i in range(card.layers)], len(mean), len(card.low))


class PicturePolicy(SavedPolicy):
    """A policy that sees pictures; `at_once` of them are computed together."""

    what = "pixel policy"
    at_once: ClassVar[int] = 64  # the first maps of more would fill the memory

    def __call__(self, observations: Any) -> Any:
        """Returns one action per world."""
        seen = np.asarray(observations)
        if list(seen.shape[1:]) != self.card.observation or seen.dtype != np.uint8:
            trained = self.card.trained.get("options", {}).items()
            options = ", ".join(f"{name}={json.dumps(value)}" for name, value in trained)
            raise InvalidValueError(
                f"the policy sees {seen.dtype} {seen.shape[1:]}",
                allowed=f"uint8 {tuple(self.card.observation)}, as it was trained with",
                fix=f"Give the world the options of its training: {options}",
            )
        with torch.no_grad():
            starts = range(0, len(seen), self.at_once)
            parts = [seen[i : i + self.at_once] for i in starts]
            return torch.cat([self.forward(torch.as_tensor(p)) for p in parts]).numpy()

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


@final
class PixelPolicy(PicturePolicy):
    """The mean action of encoder and actor."""

    card: PixelCard
    card_type, file_format = PixelCard, PIXEL_FORMAT

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
        x, maps = middle(pictures, self.card.image_size) / 255.0, []
        for i in range(self.card.convolutions):
            weight, bias = self.weights[f"conv.{i}.weight"], self.weights[f"conv.{i}.bias"]
            x = torch.relu(functional.conv2d(x, weight, bias, stride=1 if i else 2))
            maps.append(x)
        return maps

    def forward(self, pictures: Any) -> Any:
        """Returns actions for a tensor of pictures."""
        features = self.features(pictures)
        x = _layers(features, self.weights, "actor.", self.card.layers, torch.relu)
        return self.bounded(torch.tanh(x[:, : len(self.card.low)]))  # the rest is the spread

    def check(self) -> None:
        """Raises ValueError unless card and weights are one network."""
        card, shape, size = self.card, self.card.observation, self.card.image_size
        whole = isinstance(shape, list) and all(type(n) is int for n in shape)
        if not whole or len(shape) != 3 or not all(1 <= n <= _MOST_PIXELS for n in shape):
            raise ValueError(f"observation {shape!r}")
        if type(size) is not int or not 1 <= size <= min(shape[1:]):
            raise ValueError(f"image_size {size!r}")
        if not isinstance(card.squash, bool):
            raise ValueError(f"squash {card.squash!r}")
        check_layers("convolutions", card.convolutions)
        check_layers("layers", card.layers)
        parts = [f"conv.{i}" for i in range(card.convolutions)]
        parts += ["trunk", "norm", *(f"actor.{i}" for i in range(card.layers))]
        names = {f"{part}.{kind}" for part in parts for kind in ("weight", "bias")}
        if absent := sorted(names - self.weights.keys()):
            raise ValueError(f"no {absent[0]}")
        with torch.no_grad():  # layers fit together, or Torch says which does not
            try:
                acted = self.forward(torch.zeros(1, *shape, dtype=torch.uint8))
            except (RuntimeError, IndexError) as error:
                raise ValueError(str(error).splitlines()[0]) from error
        if acted.shape != (1, len(card.low)):
            raise ValueError(f"actions of shape {tuple(acted.shape)}")


def middle(pictures: Any, size: int) -> Any:
    """Returns the middle of square pictures."""
    start = (pictures.shape[-1] - size) // 2
    return pictures[..., start : start + size, start : start + size]


def _layers(x: Any, weights: Mapping[str, Any], prefix: str, count: int, activate: Any) -> Any:
    """Returns what linear layers give, with an activation between them."""
    for i in range(count):
        part = f"{prefix}{i}"
        x = functional.linear(x, weights[f"{part}.weight"], weights[f"{part}.bias"])
        x = activate(x) if i < count - 1 else x
    return x


class _Deployed(torch.nn.Module):
    """Observations in, actions out: the normalisation and the bounds are inside."""

    def __init__(self, policy: SavedPolicy) -> None:
        super().__init__()
        self._policy = policy
        for name, tensor in policy.weights.items():
            self.register_buffer(name.replace(".", "_"), tensor)

    def forward(self, observations: Any) -> Any:
        if isinstance(self._policy, ExportedPolicy):
            observations = self._policy.prepare(observations)
        return self._policy.forward(observations)


def save_torchscript(policy: SavedPolicy, path: str | os.PathLike[str]) -> Path:
    """Writes a policy as TorchScript; returns its path.

    It takes float32 (N, observation), or uint8 (N, C, S, S) of a pixel policy, and gives (N,
    action). Read it with `torch.jit.load` in Python or C++; interverse is not needed there.
    """
    with _deploying(policy, path, ".pt") as (module, example, partial):
        torch.jit.save(torch.jit.trace(module, example), str(partial))
    return Path(path)


def save_onnx(policy: SavedPolicy, path: str | os.PathLike[str]) -> Path:
    """Writes a policy as ONNX, input `observation`, output `action`; returns its path.

    Raises `MissingExtraError` without the package onnx.
    """
    try:
        import onnx  # noqa: F401 - Torch needs it, and would say so in many lines
    except ImportError as error:
        raise missing_extra("onnx", "onnx") from error
    with _deploying(policy, path, ".onnx") as (module, example, partial):
        torch.onnx.export(
            module.eval(),
            (example,),
            str(partial),
            input_names=["observation"],
            output_names=["action"],
            dynamic_axes={"observation": {0: "worlds"}, "action": {0: "worlds"}},
            dynamo=False,  # the other way needs a compiler's worth of packages
        )
    return Path(path)


@contextmanager
def _deploying(
    policy: SavedPolicy, path: str | os.PathLike[str], suffix: str
) -> Iterator[tuple[_Deployed, Any, Path]]:
    """Yields a policy as a module, observations of two worlds, and the file to write."""
    target = Path(path)
    if target.suffix != suffix:
        raise InvalidValueError(f"the policy is named {target.name!r}", allowed=f"*{suffix}")
    if isinstance(policy, PicturePolicy):
        example = torch.zeros(2, *policy.card.observation, dtype=torch.uint8)
    else:
        example = torch.zeros(2, policy.weights["obs.mean"].shape[0])
    with warnings.catch_warnings(), torch.no_grad(), atomic(target) as partial:
        # Torch would like its own compiler used instead, which a robot without Python cannot run.
        warnings.simplefilter("ignore", DeprecationWarning)
        # The bounds shall be constants.
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        yield _Deployed(policy), example, partial
