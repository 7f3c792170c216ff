"""Analysis of encoders: spread over looks of one state, and where they are active."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from interverse.envs import make
from interverse.rollouts.exported import PixelPolicy

Pictures = NDArray[np.uint8]
_AT_ONCE = 64  # pictures: the first maps of more would fill the memory
START = 0  # the dynamics seed of the state that is shown; the paper does not say which it took


def looks_of_a_state(
    task: str, looks: Sequence[int], options: Mapping[str, Any], *, start: int = START
) -> Pictures:
    """Returns one state in several looks, (look, *observation); the first state of an episode."""
    env = make(task, **options)
    try:
        seen = []
        for look in looks:
            given = {"visual_seed": look, "dynamics_seed": start}
            seen.append(env.reset(seed=0, options={"do": given})[0])
        return np.stack(seen)
    finally:
        env.close()


def encoder_spread(features: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Returns the standard deviation of every output over (look, output), in ascending order.

    >>> encoder_spread(np.array([[0.0, 5.0], [2.0, 5.0]])).tolist()
    [0.0, 1.0]
    """
    return np.sort(np.asarray(features, dtype=np.float64).std(axis=0))


def features(policy: PixelPolicy, pictures: Pictures) -> NDArray[np.float32]:
    """Returns the encoder's outputs, (picture, output)."""
    with torch.no_grad():
        parts = torch.split(torch.as_tensor(pictures), _AT_ONCE)
        return torch.cat([policy.features(part) for part in parts]).numpy()


def attention(activations: Tensor, size: int) -> NDArray[np.float32]:
    """Returns attention maps (N, size, size) from 0 to 1 of activations (N, filters, h, w).

    The mean over filters of the absolute activation, enlarged bilinearly, each map divided by its
    greatest value. Layer, exponent and scale are not stated in the paper.
    """
    mean = activations.abs().mean(1, keepdim=True)
    large = functional.interpolate(mean, size=(size, size), mode="bilinear", align_corners=False)
    top = large.amax((2, 3), keepdim=True)
    return torch.where(top > 0, large / top, 0.0)[:, 0].numpy()


def attention_of(policy: PixelPolicy, pictures: Pictures, layer: int = -1) -> NDArray[np.float32]:
    """Returns where a policy's encoder is active in each picture, (N, size, size)."""
    with torch.no_grad():
        return attention(policy.maps(torch.as_tensor(pictures))[layer], policy.card.image_size)


def newest_frame(pictures: Pictures, size: int) -> Pictures:
    """Returns the last frame of stacks (N, C, S, S), its middle, as (N, size, size, 3)."""
    start = (pictures.shape[-1] - size) // 2
    middle = pictures[:, -3:, start : start + size, start : start + size]
    return middle.transpose(0, 2, 3, 1)
