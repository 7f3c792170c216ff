"""Policies that Stable-Baselines saved as one zip file, of version 2 and of version 3.

Version 2 ran on TensorFlow 1; the policies released with CausalWorld are such files. Their networks
are plain perceptrons, so they are read with NumPy and nothing in them is unpickled. A file of
version 3 is opened by Stable-Baselines3 itself, which unpickles: open only those you trust.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.errors import FileFormatError, explain, missing_extra

# where Stable-Baselines3 keeps a policy's class, and who can load it
_ALGORITHMS = {
    "stable_baselines3.common.policies": "PPO",
    "stable_baselines3.dqn.policies": "DQN",
    "stable_baselines3.sac.policies": "SAC",
    "stable_baselines3.td3.policies": "TD3",
}
_SECOND, _THIRD = "parameter_list", "policy.pth"


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
        x = np.asarray(observations, dtype=np.float32)
        wanted = self.layers[0][0].shape[0]
        if x.ndim != 2 or x.shape[1] != wanted:
            raise FileFormatError(
                explain(
                    f"the saved policy cannot see observations of shape {x.shape[1:]}",
                    allowed=f"flat observations of {wanted} numbers",
                    fix="Make the world with the options the policy was trained with",
                )
            )
        for weight, bias in self.layers[:-1]:
            x = np.tanh(x @ weight + bias)
        weight, bias = self.layers[-1]
        return np.clip(x @ weight + bias, self.low, self.high)


def load_archive(path: Path) -> Any:
    """Returns the policy in a zip file that Stable-Baselines (2 or 3) saved."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            card = json.loads(archive.read("data")) if "data" in names else {}
            if _SECOND in names:
                return _second_version(path, archive, card)
    except (OSError, zipfile.BadZipFile, ValueError, KeyError) as error:
        raise FileFormatError(_unreadable(path, str(error))) from error
    if _THIRD in names:
        return _third_version(path, card)
    raise FileFormatError(_unreadable(path, f"it holds {', '.join(sorted(names)) or 'nothing'}"))


def _second_version(path: Path, archive: zipfile.ZipFile, card: dict[str, Any]) -> Perceptron:
    with archive.open("parameters") as file:
        weights = np.load(file)
        found = {name.removeprefix("model/").removesuffix(":0"): weights[name] for name in weights}
    names = [f"{part}_fc{i}" for part in ("shared", "pi") for i in range(len(found))] + ["pi"]
    names = [name for name in names if f"{name}/w" in found]
    activation = str(card.get("policy_kwargs", {}).get("act_fun", "tanh"))
    if names[-1:] != ["pi"] or "tanh" not in activation:
        raise FileFormatError(
            _unreadable(path, f"parameters {', '.join(found)}, activation {activation}")
        )
    low, high = (_bounds(card["action_space"][side]) for side in ("low", "high"))
    return Perceptron([(found[f"{name}/w"], found[f"{name}/b"]) for name in names], low, high)


def _bounds(text: str) -> NDArray[np.float32]:
    """Returns the numbers that NumPy printed: version 2 keeps the bounds as text."""
    return np.array([float(word) for word in text.strip("[]").split()], dtype=np.float32)


def _third_version(path: Path, card: dict[str, Any]) -> Any:
    home = card.get("policy_class", {}).get("__module__")
    if home not in _ALGORITHMS:
        raise FileFormatError(_unreadable(path, f"its policy is of {home}"))
    try:
        import stable_baselines3
    except ImportError as error:
        raise missing_extra("stable_baselines3", "rl") from error
    return getattr(stable_baselines3, _ALGORITHMS[home]).load(path, device="cpu")


def _unreadable(path: Path, found: str) -> str:
    return explain(
        f"{path.name} is no policy that can be read here: {found}",
        allowed="a zip saved by Stable-Baselines3 (PPO, DQN, SAC, TD3) or by Stable-Baselines 2 "
        "(PPO with tanh)",
    )
