"""Policies that Stable-Baselines saved as one zip file, of version 2 and of version 3.

Version 2 ran on TensorFlow 1; the policies released with CausalWorld are such files. Their networks
are plain perceptrons, so they are read with NumPy. Stable-Baselines3 itself unpickles what the JSON
of version 3 holds; here the network is rebuilt from the names and shapes of its weights, which
Torch reads with `weights_only`. Nothing in either is unpickled.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, missing_extra
from interverse.core.files.json_text import parse_json
from interverse.core.files.tensor_files import read_torch
from interverse.core.files.zip_archive import open_zip, read_npz
from interverse.rollouts.exported import Activation, Card, ExportedPolicy
from interverse.rollouts.saved import (
    ReleasedCard,
    check_bounds,
    check_chain,
    check_seen,
    printed_numbers,
    released_card,
)

try:
    import torch
except ImportError as error:
    raise missing_extra("torch", "torch") from error

# where a policy's class lives -> the names of its hidden layers and its last one, whether tanh
# squashes the actions, the activation unless another is told
_KINDS: Mapping[str, tuple[str, str, bool, Activation]] = {
    "stable_baselines3.common.policies": (
        "mlp_extractor.policy_net.{}",
        "action_net",
        False,
        "tanh",
    ),
    "stable_baselines3.sac.policies": ("actor.latent_pi.{}", "actor.mu", True, "relu"),
    "stable_baselines3.td3.policies": ("actor.mu.{}", "", True, "relu"),
    "stable_baselines3.dqn.policies": ("q_net.q_net.{}", "", False, "relu"),
}
_ACTIVATION = re.compile(r"activation\.(\w+)'")
_PART = re.compile(r"'(\w+)': (\w+)\(")
_DEEPEST = 64
_CARD, _SECOND, _THIRD = "data", "parameter_list", "policy.pth"
_NO_CARD: dict[str, Any] = {}


def load_archive(path: Path) -> Any:
    """Returns the policy in a zip file that Stable-Baselines (2 or 3) saved."""
    try:
        with open_zip(path) as archive:
            names = set(archive.namelist())
            card = parse_json(archive.read(_CARD), _CARD) if _CARD in names else _NO_CARD
            if not isinstance(card, dict):
                raise ValueError(f"its {_CARD} is no table")
            if _SECOND in names:
                return _second_version(archive, card, released_card(path))
            if _THIRD in names:
                return _third_version(archive.read(_THIRD), card)
        raise ValueError(f"it holds {', '.join(sorted(names)) or 'nothing'}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise FileFormatError(
            f"{path.name} is no policy that can be read here: {error}",
            allowed="a zip saved by Stable-Baselines3 (A2C, PPO, DQN, SAC, TD3 on flat "
            "observations) or by Stable-Baselines 2 (PPO with tanh)",
        ) from error


def _second_version(
    archive: zipfile.ZipFile, card: dict[str, Any], known: ReleasedCard | None
) -> Perceptron:
    weights = read_npz(archive.read("parameters"), "parameters")
    found = {name.removeprefix("model/").removesuffix(":0"): weights[name] for name in weights}
    names = [f"{part}_fc{i}" for part in ("shared", "pi") for i in range(len(found))] + ["pi"]
    names = [name for name in names if f"{name}/w" in found]
    activation = str(card.get("policy_kwargs", {}).get("act_fun", "tanh"))
    if names[-1:] != ["pi"] or "tanh" not in activation:
        raise ValueError(f"parameters {', '.join(found)}, activation {activation}")
    low, high = (printed_numbers(card["action_space"][side]) for side in ("low", "high"))
    layers = [(found[f"{name}/w"], found[f"{name}/b"]) for name in names]
    check_bounds(low.tolist(), high.tolist())
    tensors: dict[str, Any] = {}
    for i, (weight, bias) in enumerate(layers):
        if weight.dtype.kind != "f" or bias.dtype.kind != "f":
            raise ValueError(f"a layer of {weight.dtype} and {bias.dtype}")
        tensors |= {f"{names[i]}.weight": weight.T, f"{names[i]}.bias": bias}
    check_chain(tensors, names, len(layers[0][0]), len(low))
    return Perceptron(layers, low, high, known)


def _third_version(weights: bytes, card: Mapping[str, Any]) -> ExportedPolicy | GreedyPolicy:
    home = card["policy_class"]["__module__"]
    if home not in _KINDS or card.get("use_sde"):
        raise ValueError(f"its policy is of {home}, use_sde {card.get('use_sde')}")
    hidden, last, squash, usual = _KINDS[home]
    found = read_torch(weights, _THIRD)
    tensors = {str(name): part for name, part in found.items() if isinstance(part, torch.Tensor)}
    names = [hidden.format(i) for i in range(_DEEPEST) if f"{hidden.format(i)}.weight" in tensors]
    names += [last] if last else []
    kept: dict[str, Any] = {}
    for i, name in enumerate(names):
        kept |= {f"{i}.{part}": tensors[f"{name}.{part}"] for part in ("weight", "bias")}
    width = int(kept["0.weight"].shape[1])
    kept |= {"obs.mean": torch.zeros(width), "obs.std": torch.ones(width)}
    space, start = card["action_space"], None  # the first of a choice, if it is one
    kind = str(space.get(":type:"))
    if "Box" in kind:
        low, high = (printed_numbers(space[side]).tolist() for side in ("low", "high"))
    elif "Discrete" in kind and "Multi" not in kind:
        low = high = [0.0] * len(kept[f"{len(names) - 1}.bias"])
        start = int(space.get("start", 0))
    else:
        raise ValueError(f"actions of {kind}")
    check_bounds(low, high)
    check_chain(kept, [str(i) for i in range(len(names))], width, len(low))
    policy = ExportedPolicy(
        Card(
            layers=len(names),
            activation=_activation(card, usual),
            squash=squash,
            low=low,
            high=high,
            trained={},
            inputs=_inputs(card["observation_space"]),
        ),
        kept,
    )
    return policy if start is None else GreedyPolicy(policy, start)


@final
class Perceptron:
    """The mean action of a tanh network, clipped to the bounds it was trained with.

    Its card is that of a policy that CausalWorld released; None for others.
    """

    def __init__(
        self,
        layers: list[tuple[NDArray[np.float32], NDArray[np.float32]]],
        low: NDArray[np.float32],
        high: NDArray[np.float32],
        card: ReleasedCard | None = None,
    ) -> None:
        self.card = card
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


@final
class GreedyPolicy:
    """The action of the greatest output of a network: of values, or of probabilities."""

    def __init__(self, scores: ExportedPolicy, start: int) -> None:
        self.scores = scores
        self.start = start

    def __call__(self, observations: Any) -> NDArray[np.int64]:
        """Returns one action per world."""
        seen = np.asarray(observations)
        check_seen(seen.shape, len(self.scores.weights["obs.mean"]))
        with torch.no_grad():
            found = self.scores.output(torch.as_tensor(seen, dtype=torch.float32))
        return found.argmax(dim=1).numpy().astype(np.int64) + self.start


def _inputs(space: Mapping[str, Any]) -> list[str]:
    """Returns the parts of a dict that the policy sees, none for a flat observation."""
    kind = str(space.get(":type:"))
    if "Box" in kind:
        return []
    found = _PART.findall(str(space.get("spaces")))
    if "Dict" in kind and found and all(part == "Box" for _, part in found):
        return [name for name, _ in found]
    raise ValueError(f"observations of {kind}")


def _activation(card: Mapping[str, Any], usual: Activation) -> Activation:
    told = card.get("policy_kwargs") or {}
    given = _ACTIVATION.search(str(told.get("activation_fn", "")))
    if given is None and "activation_fn" not in told:
        return usual
    if given is not None and given[1] in ("Tanh", "ReLU"):
        return "tanh" if given[1] == "Tanh" else "relu"
    raise ValueError(f"activation {told['activation_fn']}")
