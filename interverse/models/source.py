"""Sources of training transitions: frames on the device, cut out by index.

A source numbers its frames and its transitions; transition i joins two frames by an action. A
frame is kept once, as uint8 (or as the state it is drawn from), and becomes float32 in [0, 1]
only inside a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, final

import numpy as np
import torch
from torch import Tensor

from interverse.core.errors import InvalidValueError, explain


class ModelBatch(NamedTuple):
    """Transitions, channel-first and in [0, 1], on the source's device.

    Frames are (B, 3, H, W) float32, or `patches.Patches` of them.
    """

    obs: Any
    action: Tensor  # (B,) int64
    next_obs: Any


class Places(NamedTuple):
    """Transitions by the numbers of their frames."""

    frame: Tensor  # (B,) int64
    action: Tensor  # (B,) int64
    next_frame: Tensor  # (B,) int64


class TransitionSource(Protocol):
    """What `fit` trains on."""

    num_episodes: int
    num_steps: int
    """Transitions per episode; an episode has one frame more."""

    @property
    def device(self) -> torch.device:
        """Where batches come out."""
        ...

    def frames(self, indices: Tensor) -> Tensor:
        """Returns frames (B, 3, H, W) float32; frame e * (num_steps + 1) + t is step t of e."""
        ...

    def actions(self, indices: Tensor) -> Tensor:
        """Returns the actions (B,) of transitions; number e * num_steps + t is step t of e."""
        ...


def num_transitions(source: TransitionSource) -> int:
    """Returns how many transitions a source has."""
    return source.num_episodes * source.num_steps


def num_frames(source: TransitionSource) -> int:
    """Returns how many frames a source has."""
    return source.num_episodes * (source.num_steps + 1)


def places(source: TransitionSource, indices: Tensor) -> Places:
    """Returns the frames and actions of transitions."""
    frame = indices + torch.div(indices, source.num_steps, rounding_mode="floor")
    return Places(frame, source.actions(indices), frame + 1)


def batch(source: TransitionSource, indices: Tensor) -> ModelBatch:
    """Returns transitions as images."""
    where = places(source, indices)
    return ModelBatch(source.frames(where.frame), where.action, source.frames(where.next_frame))


@final
class ArraySource:
    """Images held as uint8 on the device.

    Args:
        images: (episodes, steps + 1, H, W, 3) uint8.
        actions: (episodes, steps) whole numbers.
        device: where to keep them; a GPU holds a full training set (0.76 GB) with ease.
    """

    def __init__(
        self, images: np.ndarray | Tensor, actions: np.ndarray | Tensor, device: str = "cpu"
    ) -> None:
        images, actions = torch.as_tensor(images), torch.as_tensor(actions)
        _check(images, actions)
        self.num_episodes, self.num_steps = actions.shape
        self._frames = images.to(device).flatten(0, 1)
        self._actions = actions.to(device, torch.int64).flatten()

    @property
    def device(self) -> torch.device:
        """Where batches come out."""
        return self._frames.device

    def frames(self, indices: Tensor) -> Tensor:
        """Returns frames (B, 3, H, W) float32 in [0, 1], in channels-last memory order."""
        return to_float(self._frames[indices])

    def actions(self, indices: Tensor) -> Tensor:
        """Returns the actions of transitions."""
        return self._actions[indices]


@final
class RenderedSource:
    """States held on the device and drawn when asked for.

    Args:
        states: arrays with leading axes (episodes, steps + 1).
        actions: (episodes, steps) whole numbers.
        render: draws the rows of such arrays as uint8 (B, H, W, 3), on their device.
        device: where to keep the states.
    """

    def __init__(
        self,
        states: Mapping[str, np.ndarray | Tensor],
        actions: np.ndarray | Tensor,
        render: Callable[[Mapping[str, Tensor]], Any],
        device: str = "cpu",
    ) -> None:
        actions = torch.as_tensor(actions)
        self.num_episodes, self.num_steps = actions.shape
        for name, values in states.items():
            if tuple(values.shape[:2]) != (self.num_episodes, self.num_steps + 1):
                raise InvalidValueError(
                    explain(
                        f"states[{name!r}] has shape {tuple(values.shape)}",
                        allowed=f"({self.num_episodes}, {self.num_steps + 1}, ...)",
                        fix="Pass one state more than actions per episode",
                    )
                )
        self._states = {
            name: torch.as_tensor(values).to(device).flatten(0, 1)
            for name, values in states.items()
        }
        self._actions = actions.to(device, torch.int64).flatten()
        self._render = render

    @property
    def device(self) -> torch.device:
        """Where batches come out."""
        return self._actions.device

    def frames(self, indices: Tensor) -> Tensor:
        """Returns frames (B, 3, H, W) float32 in [0, 1], drawn now."""
        drawn = self._render({name: values[indices] for name, values in self._states.items()})
        return to_float(torch.as_tensor(drawn, device=self.device))

    def actions(self, indices: Tensor) -> Tensor:
        """Returns the actions of transitions."""
        return self._actions[indices]


def to_float(images: Tensor) -> Tensor:
    """Returns uint8 images (B, H, W, 3) as float32 (B, 3, H, W) in [0, 1], without a transpose."""
    return images.movedim(-1, 1).to(torch.float32) / 255.0


def _check(images: Tensor, actions: Tensor) -> None:
    if images.dtype != torch.uint8 or images.ndim != 5 or images.shape[-1] != 3:
        raise InvalidValueError(
            explain(
                f"images are {images.dtype} of shape {tuple(images.shape)}",
                allowed="uint8 (episodes, steps + 1, height, width, 3)",
            )
        )
    if tuple(actions.shape) != (images.shape[0], images.shape[1] - 1):
        raise InvalidValueError(
            explain(
                f"actions have shape {tuple(actions.shape)} for images of {tuple(images.shape)}",
                allowed=f"({images.shape[0]}, {images.shape[1] - 1})",
                fix="Pass one frame more than actions per episode",
            )
        )
