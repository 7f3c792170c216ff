"""Sources of training transitions: frames on the device, cut out by index.

A source numbers its frames and its transitions; transition i joins two frames by an action. A
frame is kept once, as uint8 (or as the state it is drawn from), and becomes float32 in [0, 1]
only inside a batch.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from interverse.core.errors import InvalidValueError
from interverse.core.files.json_text import plain
from interverse.core.rng import generator
from interverse.worlds import WORLDS
from interverse.worlds.world import parse_options

_IMAGES = 512  # frames that are looked at together
# Options that change no mechanism: how long episodes are, which edits are allowed, where it runs.
_BESIDE = frozenset({"device", "max_steps", "space", "target_steps", "threads"})


@final
@dataclass(frozen=True, slots=True)
class DataWorld:
    """The world that data come from: an id and options, as `make` takes them."""

    id: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def mechanisms(self) -> tuple[str, Mapping[str, Any]]:
        """Returns the id and the options in force that decide what an action does.

        Not among them: where in the world data are collected (new colours of blocks, say).
        """
        name, found, beside = self.id.rpartition(":")[2], plain(self.options), _BESIDE
        if name in WORLDS:
            entry = WORLDS[name]
            world = entry.load()
            parsed = parse_options(world.options_type, {**entry.options, **self.options})
            found = plain(asdict(parsed))
            beside = _BESIDE | {*world.training_place}
        return name, {key: value for key, value in found.items() if key not in beside}

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in sorted(self.options.items()))
        return f"{self.id} with {told}" if told else self.id


def check_same_world(
    what: str, given: DataWorld | None, other: str, known: DataWorld | None, *, fix: str
) -> None:
    """Raises if two things come from different worlds; what has no world recorded is taken."""
    if given is None or known is None or given.mechanisms() == known.mechanisms():
        return
    raise InvalidValueError(
        f"{what} of {given}, {other} of {known}", allowed="one world for both", fix=fix
    )


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


class TransitionSource(ABC):
    """What `fit` trains on: actions on a device, and frames that are made from what is held there.

    Attributes:
        world: that the data come from, if known: data of two worlds are not mixed up.
        num_steps: transitions per episode; an episode has one frame more.
    """

    def __init__(self, actions: Tensor, device: str, world: DataWorld | None) -> None:
        self.world = world
        self.num_episodes, self.num_steps = actions.shape
        self._actions = actions.to(device, torch.int64).flatten()

    @property
    def device(self) -> torch.device:
        """Where batches come out."""
        return self._actions.device

    @abstractmethod
    def frames(self, indices: Tensor) -> Tensor:
        """Returns frames (B, 3, H, W) float32 in [0, 1], in channels-last memory order.

        Frame e * (num_steps + 1) + t is step t of e.
        """

    def actions(self, indices: Tensor) -> Tensor:
        """Returns the actions (B,) of transitions; number e * num_steps + t is step t of e."""
        return self._actions[indices]


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


def source_record(source: TransitionSource) -> dict[str, Any]:
    """Returns what tells a source from any other, as JSON values: world, sizes, a hash of all."""
    world, count = source.world, num_transitions(source)
    digest = hashlib.blake2b(digest_size=16)
    actions = source.actions(torch.arange(count, device=source.device))
    for part in (actions, pictures_of(source, torch.arange(num_frames(source)))):
        digest.update(part.cpu().numpy().tobytes())
    return {
        "world": None if world is None else world.id,
        "options": {} if world is None else plain(world.options),
        "episodes": source.num_episodes,
        "steps": source.num_steps,
        "content": digest.hexdigest(),
    }


def pictures_of(source: TransitionSource, numbers: Tensor) -> Tensor:
    """Returns (N,) hashes of frames: comparing whole frames would cost more than the ranking."""
    hashes, weights = [], None
    for part in numbers.to(source.device).split(_IMAGES):
        levels = source.frames(part).flatten(1).mul(255).round().to(torch.int32)
        if weights is None:
            drawn = generator(seed=0, name="ranking/pictures").integers(2**31, size=levels.shape[1])
            weights = torch.as_tensor(drawn.astype("int32"), device=levels.device)
        hashes.append((levels * weights).sum(1))  # products wrap, exactly; their sum is 64-bit
    return torch.cat(hashes)


@final
class ArraySource(TransitionSource):
    """Images held as uint8 on the device.

    Args:
        images: (episodes, steps + 1, H, W, 3) uint8.
        actions: (episodes, steps) whole numbers.
        device: where to keep them; a GPU holds a full training set (0.76 GB) with ease.
        world: that they come from, if known.
    """

    def __init__(
        self,
        images: np.ndarray | Tensor,
        actions: np.ndarray | Tensor,
        device: str = "cpu",
        world: DataWorld | None = None,
    ) -> None:
        images, actions = torch.as_tensor(images), torch.as_tensor(actions)
        if images.dtype != torch.uint8 or images.ndim != 5 or images.shape[-1] != 3:
            raise InvalidValueError(
                f"images are {images.dtype} of shape {tuple(images.shape)}",
                allowed="uint8 (episodes, steps + 1, height, width, 3)",
            )
        if tuple(actions.shape) != (images.shape[0], images.shape[1] - 1):
            raise InvalidValueError(
                f"actions have shape {tuple(actions.shape)} for images of {tuple(images.shape)}",
                allowed=f"({images.shape[0]}, {images.shape[1] - 1})",
                fix="Pass one frame more than actions per episode",
            )
        super().__init__(actions, device, world)
        self._frames = images.to(device).flatten(0, 1)

    def frames(self, indices: Tensor) -> Tensor:
        """Returns frames (B, 3, H, W) float32 in [0, 1], in channels-last memory order."""
        return to_float(self._frames[indices])


@final
class RenderedSource(TransitionSource):
    """States held on the device and drawn when asked for.

    Args:
        states: arrays with leading axes (episodes, steps + 1).
        actions: (episodes, steps) whole numbers.
        render: draws the rows of such arrays as uint8 (B, H, W, 3), on their device.
        device: where to keep the states.
        world: that they come from, if known.
    """

    def __init__(
        self,
        states: Mapping[str, np.ndarray | Tensor],
        actions: np.ndarray | Tensor,
        render: Callable[[Mapping[str, Tensor]], Any],
        device: str = "cpu",
        world: DataWorld | None = None,
    ) -> None:
        super().__init__(torch.as_tensor(actions), device, world)
        for name, values in states.items():
            if tuple(values.shape[:2]) != (self.num_episodes, self.num_steps + 1):
                raise InvalidValueError(
                    f"states[{name!r}] has shape {tuple(values.shape)}",
                    allowed=f"({self.num_episodes}, {self.num_steps + 1}, ...)",
                    fix="Pass one state more than actions per episode",
                )
        held = {name: torch.as_tensor(values).to(device) for name, values in states.items()}
        self._states = {name: values.flatten(0, 1) for name, values in held.items()}
        self._render = render

    def frames(self, indices: Tensor) -> Tensor:
        """Returns frames (B, 3, H, W) float32 in [0, 1], drawn now."""
        drawn = self._render({name: values[indices] for name, values in self._states.items()})
        return to_float(torch.as_tensor(drawn, device=self.device))


def to_float(images: Tensor) -> Tensor:
    """Returns uint8 images (B, H, W, 3) as float32 (B, 3, H, W) in [0, 1], without a transpose."""
    return images.movedim(-1, 1).to(torch.float32) / 255.0
