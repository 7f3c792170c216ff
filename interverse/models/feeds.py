"""From sample numbers to the batch a stage wants, loading only what it will use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast, final

import torch
from torch import Tensor, nn

from interverse.models.learner import Learner
from interverse.models.source import (
    TransitionSource,
    batch,
    num_frames,
    num_transitions,
    places,
)
from interverse.models.stages import Episodes, Latents
from interverse.models.world_model import WorldModel, WorldModelConfig

_ENCODE_CHUNK = 1024


@final
@dataclass(frozen=True, slots=True)
class Feed:
    """The samples of one stage.

    Attributes:
        count: how many there are.
        load: numbers (B,) to a batch.
        axes: per argument of that batch, 0 for an axis over members, None where they share it.
    """

    count: int
    load: Callable[[Tensor], Any]
    axes: Any = None


def feed(
    stage: str,
    config: WorldModelConfig,
    source: TransitionSource,
    learner: Learner,
    *,
    sample_latents: bool,
) -> Feed:
    """Returns the samples that a stage of a model trains on.

    The encoder rests in the transition stage, so every frame is encoded once, here.
    """
    whole = config.recurrent and stage in ("transition", "finetune")
    if stage == "transition":
        spread = sample_latents and config.entry.samples
        return _latent_feed(source, *encodings(learner, source), whole=whole, spread=spread)
    if whole:
        return Feed(source.num_episodes, lambda chosen: _episodes(source, chosen))
    if stage == "pretrain":
        return Feed(
            num_transitions(source), lambda chosen: source.frames(places(source, chosen).frame)
        )
    return Feed(num_transitions(source), lambda chosen: batch(source, chosen))


@final
class Encode(nn.Module):
    """A world model seen as images to (mean, standard deviation); AE deviations are zero-sized."""

    def __init__(self, model: WorldModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Returns states and their spread."""
        if not self.model.config.entry.samples:
            state = self.model.encode(images)
            return state, state[..., :0]
        mean, log_variance = self.model.posterior(images)
        return mean, torch.exp(0.5 * log_variance)


@torch.no_grad()
def encodings(learner: Learner, source: TransitionSource) -> tuple[Tensor, Tensor]:
    """Returns states and spreads (members, frames, slots, width) of every frame of a source."""
    encode = Encode(cast("WorldModel", learner.module)).eval()
    numbers = torch.arange(num_frames(source), device=source.device)
    parts = [
        learner.call(encode, (source.frames(chosen),), (None,))
        for chosen in numbers.split(_ENCODE_CHUNK)
    ]
    states, spreads = zip(*parts, strict=True)
    return torch.cat(states, dim=1), torch.cat(spreads, dim=1)


def _latent_feed(
    source: TransitionSource, states: Tensor, spreads: Tensor, *, whole: bool, spread: bool
) -> Feed:
    frames_per_episode = source.num_steps + 1

    def load_transitions(chosen: Tensor) -> Latents:
        where = places(source, chosen)
        return Latents(
            states[:, where.frame],
            where.action,
            states[:, where.next_frame],
            spreads[:, where.frame] if spread else None,
            spreads[:, where.next_frame] if spread else None,
        )

    def load_episodes(chosen: Tensor) -> Latents:
        episodes = states.unflatten(1, (-1, frames_per_episode))[:, chosen]
        return Latents(episodes[:, :, :-1], _actions(source, chosen), episodes[:, :, 1:])

    sampled = 0 if spread else None
    axes = Latents(0, None, 0, sampled, sampled)  # type: ignore[arg-type]
    if whole:
        return Feed(source.num_episodes, load_episodes, axes)
    return Feed(num_transitions(source), load_transitions, axes)


def _episodes(source: TransitionSource, chosen: Tensor) -> Episodes:
    length = source.num_steps + 1
    numbers = chosen[:, None] * length + torch.arange(length, device=source.device)
    frames = source.frames(numbers.flatten()).unflatten(0, numbers.shape)
    return Episodes(frames, _actions(source, chosen))


def _actions(source: TransitionSource, chosen: Tensor) -> Tensor:
    steps = torch.arange(source.num_steps, device=source.device)
    numbers = chosen[:, None] * source.num_steps + steps
    return source.actions(numbers.flatten()).unflatten(0, numbers.shape)
