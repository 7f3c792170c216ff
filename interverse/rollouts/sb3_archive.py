"""The policy in a zip file of Stable-Baselines3, from its JSON and its weights alone.

Stable-Baselines3 itself unpickles what the JSON holds besides; here the network is rebuilt from the
names and the shapes of its weights, which Torch reads with `weights_only`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import missing_extra
from interverse.core.files.tensor_files import read_torch
from interverse.rollouts.exported import Activation, Card, ExportedPolicy
from interverse.rollouts.policy_card import check_bounds, check_chain, check_seen, printed_numbers

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


def third_version(weights: bytes, card: Mapping[str, Any]) -> ExportedPolicy | GreedyPolicy:
    """Returns the policy of a saved model, or raises ValueError, KeyError or TypeError.

    Args:
        weights: the member `policy.pth`.
        card: the member `data`.
    """
    home = card["policy_class"]["__module__"]
    if home not in _KINDS or card.get("use_sde"):
        raise ValueError(f"its policy is of {home}, use_sde {card.get('use_sde')}")
    hidden, last, squash, usual = _KINDS[home]
    found = read_torch(weights, "policy.pth")
    tensors = {str(name): part for name, part in found.items() if isinstance(part, torch.Tensor)}
    names = [hidden.format(i) for i in range(_DEEPEST) if f"{hidden.format(i)}.weight" in tensors]
    names += [last] if last else []
    kept: dict[str, Any] = {}
    for i, name in enumerate(names):
        kept |= {f"{i}.{part}": tensors[f"{name}.{part}"] for part in ("weight", "bias")}
    width = int(kept["0.weight"].shape[1])
    kept |= {"obs.mean": torch.zeros(width), "obs.std": torch.ones(width)}
    low, high, start = _actions(card["action_space"], len(kept[f"{len(names) - 1}.bias"]))
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


def _actions(space: Mapping[str, Any], width: int) -> tuple[list[float], list[float], int | None]:
    """Returns the bounds of an action and, if it is a number of a choice, the first number."""
    kind = str(space.get(":type:"))
    if "Box" in kind:
        low, high = (printed_numbers(space[side]).tolist() for side in ("low", "high"))
        return low, high, None
    if "Discrete" in kind and "Multi" not in kind:
        return [0.0] * width, [0.0] * width, int(space.get("start", 0))
    raise ValueError(f"actions of {kind}")


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
