"""From sample numbers to the batch a stage wants, loading only what it will use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast, final

import torch
from torch import Tensor, nn

from interverse.models.learner import Learner
from interverse.models.patches import viewer
from interverse.models.source import (
    ModelBatch,
    TransitionSource,
    num_frames,
    num_transitions,
    places,
)
from interverse.models.stages import Episodes, Latents
from interverse.models.world_model import WorldModel


@final
@dataclass(frozen=True, slots=True)
class Feed:
    """The samples of one stage.

    Attributes:
        count: how many there are.
        load: numbers (B,) to a batch.
        axes: per argument of that batch, 0 for an axis over members, None where they share it.
        check: called after every pass over the samples; raises where a pass was not sound.
    """

    count: int
    load: Callable[[Tensor], Any]
    axes: Any = None
    check: Callable[[], None] = lambda: None


def feed(stage: str, source: TransitionSource, learner: Learner, how: FeedSettings) -> Feed:
    """Returns the samples that a stage of a model trains on.

    The encoder rests in the transition stage, so every frame is encoded once, here.
    """
    model = cast("WorldModel", learner.module)
    config = model.config
    episodes = config.recurrent and stage in ("transition", "finetune")
    if episodes and stage == "finetune":
        return Feed(source.num_episodes, lambda chosen: _episodes(source, chosen))
    # A decoder, which needs whole frames, costs many times the encoder: windows would gain little.
    suits = model.encoder.patchable and model.decoder is None
    see, check = viewer(source, model.encoder.maps, suits=suits, batch=how.batch_size)
    if stage == "transition":
        spread = how.sample_latents and config.entry.samples
        states, spreads = encodings(learner, source, how.batch_size)
        return _latent_feed(source, states, spreads, whole=episodes, spread=spread)
    axes = 0 if how.own_orders else None

    def load(chosen: Tensor) -> Any:
        where = places(source, chosen)
        if stage == "pretrain":
            return see(where.frame)
        return ModelBatch(see(where.frame), where.action, see(where.next_frame))

    return Feed(num_transitions(source), load, axes, check)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSettings:
    """How samples are asked for.

    Attributes:
        batch_size: samples per batch at most.
        sample_latents: keep the spread of a VAE's states, to sample from.
        own_orders: numbers are (members, B), an order for each; else (B,) for all.
    """

    batch_size: int
    sample_latents: bool = False
    own_orders: bool = False


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
def encodings(learner: Learner, source: TransitionSource, batch_size: int) -> tuple[Tensor, Tensor]:
    """Returns states and spreads (members, frames, slots, width) of every frame of a source."""
    encode = Encode(cast("WorldModel", learner.module)).eval()
    numbers = torch.arange(num_frames(source), device=source.device)
    parts = [
        learner.call(encode, (source.frames(chosen),), (None,))
        for chosen in numbers.split(batch_size)
    ]
    states, spreads = zip(*parts, strict=True)
    return torch.cat(states, dim=1), torch.cat(spreads, dim=1)


def _latent_feed(
    source: TransitionSource, states: Tensor, spreads: Tensor, *, whole: bool, spread: bool
) -> Feed:
    frames_per_episode = source.num_steps + 1

    def load_transitions(chosen: Tensor) -> Latents:
        where = places(source, chosen)
        own = torch.arange(len(states), device=states.device)[
            :, None
        ]  # against (B,) or (members, B)
        return Latents(
            states[own, where.frame],
            where.action.expand(len(states), -1),
            states[own, where.next_frame],
            spreads[own, where.frame] if spread else None,
            spreads[own, where.next_frame] if spread else None,
        )

    def load_episodes(chosen: Tensor) -> Latents:
        episodes = states.unflatten(1, (-1, frames_per_episode))[:, chosen]
        return Latents(episodes[:, :, :-1], _actions(source, chosen), episodes[:, :, 1:])

    sampled = 0 if spread else None
    if whole:
        axes = Latents(0, None, 0, sampled, sampled)  # type: ignore[arg-type]
        return Feed(source.num_episodes, load_episodes, axes)
    axes = Latents(0, 0, 0, sampled, sampled)  # type: ignore[arg-type]
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
