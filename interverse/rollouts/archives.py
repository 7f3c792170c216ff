"""Policies that Stable-Baselines saved as one zip file, of version 2 and of version 3.

Version 2 ran on TensorFlow 1; the policies released with CausalWorld are such files. Their networks
are plain perceptrons, so they are read with NumPy. Of a file of version 3 the JSON and the weights
are read, see `interverse.rollouts.sb3_archive`. Nothing in either is unpickled.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, explain
from interverse.core.files.json_text import parse_json
from interverse.core.files.zip_archive import open_zip, read_npz
from interverse.rollouts.policy_card import check_seen, printed_numbers

_CARD, _SECOND, _THIRD = "data", "parameter_list", "policy.pth"
_NO_CARD: dict[str, Any] = {}


@final
class Perceptron:
    """The mean action of a tanh network, clipped to the bounds it was trained with."""

    def __init__(
        self,
        layers: list[tuple[NDArray[np.float32], NDArray[np.float32]]],
        low: NDArray[np.float32],
        high: NDArray[np.float32],
    ) -> None:
        self.layers = layers
        self.low = low
        self.high = high

    def __call__(self, observations: Any) -> NDArray[np.float32]:
        """Returns one action per world."""
        x = np.asarray(observations)
        x = x.astype(np.float32) if x.dtype.kind in "biuf" else np.zeros((0, 0, 0), np.float32)
        check_seen(x.shape, self.layers[0][0].shape[0])
        for weight, bias in self.layers[:-1]:
            x = np.tanh(x @ weight + bias)
        weight, bias = self.layers[-1]
        return np.clip(x @ weight + bias, self.low, self.high)


def load_archive(path: Path) -> Any:
    """Returns the policy in a zip file that Stable-Baselines (2 or 3) saved."""
    try:
        with open_zip(path) as archive:
            names = set(archive.namelist())
            card = parse_json(archive.read(_CARD), _CARD) if _CARD in names else _NO_CARD
            if not isinstance(card, dict):
                raise ValueError(f"its {_CARD} is no table")
            if _SECOND in names:
                return _second_version(archive, card)
            if _THIRD in names:
                from interverse.rollouts.sb3_archive import third_version  # loads Torch

                return third_version(archive.read(_THIRD), card)
        raise ValueError(f"it holds {', '.join(sorted(names)) or 'nothing'}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise FileFormatError(
            explain(
                f"{path.name} is no policy that can be read here: {error}",
                allowed="a zip saved by Stable-Baselines3 (A2C, PPO, DQN, SAC, TD3 on flat "
                "observations) or by Stable-Baselines 2 (PPO with tanh)",
            )
        ) from error


def _second_version(archive: zipfile.ZipFile, card: dict[str, Any]) -> Perceptron:
    weights = read_npz(archive.read("parameters"), "parameters")
    found = {name.removeprefix("model/").removesuffix(":0"): weights[name] for name in weights}
    names = [f"{part}_fc{i}" for part in ("shared", "pi") for i in range(len(found))] + ["pi"]
    names = [name for name in names if f"{name}/w" in found]
    activation = str(card.get("policy_kwargs", {}).get("act_fun", "tanh"))
    if names[-1:] != ["pi"] or "tanh" not in activation:
        raise ValueError(f"parameters {', '.join(found)}, activation {activation}")
    low, high = (printed_numbers(card["action_space"][side]) for side in ("low", "high"))
    layers = [(found[f"{name}/w"], found[f"{name}/b"]) for name in names]
    _check_layers(layers, len(low), len(high))
    return Perceptron(layers, low, high)


def _check_layers(layers: list[tuple[Any, Any]], *ends: int) -> None:
    """Raises ValueError unless matrices and biases form a chain that ends in the actions."""
    width = layers[0][0].shape[:1]
    for weight, bias in layers:
        fits = weight.ndim == 2 and bias.shape == weight.shape[1:] and weight.shape[:1] == width
        if not fits or weight.dtype.kind != "f" or bias.dtype.kind != "f":
            raise ValueError(f"a layer of {weight.dtype} {weight.shape} and {bias.shape}")
        width = weight.shape[1:]
    if any(width != (end,) for end in ends):
        raise ValueError(f"{width[0]} actions with bounds of {ends}")
