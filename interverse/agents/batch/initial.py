"""The check of a policy that a training on a device begins with: its own network can be it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from interverse.agents.batch.network import ACTIVATION, observation_clip
from interverse.core.errors import InvalidValueError, explain
from interverse.rollouts.exported import ExportedPolicy
from interverse.rollouts.policy_world import INTERFACE, policy_world
from interverse.worlds import trifinger

_SHOWN = 3  # numbers of a list that a message names


def check_initial(policy: ExportedPolicy, options: trifinger.TriFingerOptions) -> None:
    """Raises unless a network that learns with these options of the world can be this policy.

    Layers are compared where the network is known, in `ActorCritic.adopt`.
    """
    for name, given, wanted in (*_interface(policy, options), *_form(policy, options)):
        if not _same(given, wanted):
            raise InvalidValueError(
                explain(
                    f"the initial policy has {name} {_short(given)}",
                    allowed=f"{_short(wanted)} in this run",
                    fix="Begin with a policy that PPO on a device exported for the same options",
                )
            )


def _interface(
    policy: ExportedPolicy, options: trifinger.TriFingerOptions
) -> Iterator[tuple[str, Any, Any]]:
    """Yields what the card says of observations, actions and steps, beside the run's own."""
    known = policy_world(policy)
    trained = {**known.defaults, **known.options}
    for name in INTERFACE:
        if name in trained and hasattr(options, name):
            yield name, trained[name], getattr(options, name)


def _form(
    policy: ExportedPolicy, options: trifinger.TriFingerOptions
) -> Iterator[tuple[str, Any, Any]]:
    """Yields what decides how weights become actions, beside what the learner's network has."""
    card, weights = policy.card, policy.weights
    low, high = trifinger.DeviceArena.action_limits(options)
    width = len(weights["obs.mean"])
    yield "activation", card.activation, ACTIVATION
    yield "squash", card.squash, False
    yield "clip", card.clip, observation_clip(options.normalize_observations)
    yield "inputs", card.inputs, []
    yield "low", card.low, low
    yield "high", card.high, high
    yield "obs.mean", weights["obs.mean"].tolist(), [0.0] * width
    yield "obs.std", weights["obs.std"].tolist(), [1.0] * width


def _same(given: Any, wanted: Any) -> bool:
    """Returns whether these are equal; numbers of a list within what float32 keeps of them."""
    if isinstance(wanted, list) and wanted:
        return len(given) == len(wanted) and bool(np.allclose(given, wanted, atol=1e-6))
    return bool(given == wanted)


def _short(value: Any) -> str:
    """Returns a value as it is shown: of a long list the first numbers."""
    if isinstance(value, list) and len(value) > _SHOWN:
        return f"[{', '.join(f'{v:.4g}' for v in value[:_SHOWN])}, ...]"
    return repr(value)
