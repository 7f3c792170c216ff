"""The agents' arithmetic written out in NumPy, in double precision, from their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

Weights = dict[str, Any]


def weights(agent) -> Weights:
    """Returns an agent's parameters by name, as float64."""
    held = {**agent.networks.state_dict(), **agent.extra.state_dict()}
    return {name: value.detach().numpy().astype(np.float64) for name, value in held.items()}


def convolve(x, w: Weights, name: str, stride: int):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride]
    out = np.einsum("nchwij,ocij->nohw", windows, w[f"{name}.weight"])
    return out + w[f"{name}.bias"][None, :, None, None]


def flat_maps(x, w: Weights, name: str):
    x = np.asarray(x, dtype=np.float64) / 255.0
    count = len({key for key in w if key.startswith(f"{name}.convolutions") and "weight" in key})
    for i in range(count):
        x = np.maximum(convolve(x, w, f"{name}.convolutions.{i}", 1 if i else 2), 0.0)
    return x.reshape(len(x), -1)


def trunk(flat, w: Weights, name: str, *, squash: bool = True):
    x = flat @ w[f"{name}.linear.weight"].T + w[f"{name}.linear.bias"]
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    x = x * w[f"{name}.norm.weight"] + w[f"{name}.norm.bias"]
    return np.tanh(x) if squash else x


def encode(x, w: Weights, name: str = "encoder", *, squash: bool = True):
    return trunk(flat_maps(x, w, name), w, f"{name}.trunk", squash=squash)


def perceptron(x, w: Weights, name: str):
    for layer in (0, 2, 4):
        x = x @ w[f"{name}.{layer}.weight"].T + w[f"{name}.{layer}.bias"]
        x = np.maximum(x, 0.0) if layer < 4 else x
    return x


def values(features, actions, w: Weights, name: str = "critics"):
    x = np.concatenate([features, actions], axis=1)
    return [perceptron(x, w, f"{name}.{which}") for which in ("first", "second")]


def choose(read, noise, w: Weights):
    """Returns actions and log densities of the squashed Gaussian, by the change of variables."""
    mean, raw = np.split(perceptron(read, w, "actor.layers"), 2, axis=1)
    spread = np.exp(-10.0 + 6.0 * (np.tanh(raw) + 1.0))
    x = mean + spread * np.asarray(noise, dtype=np.float64)
    density = stats.norm.logpdf(x, mean, spread) - np.log(1.0 - np.tanh(x) ** 2)
    return np.tanh(x), density.sum(1, keepdims=True)


def target(batch, successors, noise, w: Weights, *, own_trunk: bool, squash: bool = True):
    features = encode(successors, w, "target_encoder", squash=squash)
    read = features
    if own_trunk:
        read = trunk(flat_maps(successors, w, "encoder"), w, "actor_trunk", squash=squash)
    actions, density = choose(read, noise, w)
    value = np.minimum(*values(features, actions, w, "target_critics"))
    soft = value - np.exp(w["log_alpha"]) * density
    return batch.rewards.numpy() + 0.99 * (1.0 - batch.ends.numpy()) * soft


def critic_loss(observations, actions, wanted, w: Weights, *, squash: bool = True):
    pair = values(encode(observations, w, squash=squash), actions, w)
    return sum(0.5 * np.mean((value - wanted) ** 2) for value in pair)
