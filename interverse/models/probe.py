"""A probe that reads the world's variables off a model's states.

Slots need not match objects and flat states have none, so what a model says about an object is
asked of a small classifier trained on true states. It sees encodings only; predictions are what
it is then applied to.
"""

from __future__ import annotations

from typing import NamedTuple, cast, final

import numpy as np
import torch
from torch import Tensor, nn

from interverse.core.errors import InvalidValueError, explain
from interverse.models.draws import Needs
from interverse.models.feeds import Feed
from interverse.models.fit import Fit, ModelStage
from interverse.models.learner import Learner, member
from interverse.models.mlp import MLP
from interverse.models.run import Run
from interverse.models.source import TransitionSource, check_same_world, num_frames, world_of
from interverse.models.world_model import WorldModel

_IMAGES = 1024


@final
class Probe(nn.Module):
    """Flat states to a distribution over each object's values."""

    def __init__(self, state_values: int, objects: int, values: int, *, hidden: int = 256) -> None:
        super().__init__()
        self.objects, self.values = objects, values
        self.mlp = MLP(state_values, hidden, objects * values)

    def logits(self, state: Tensor) -> Tensor:
        """Returns (B, objects, values) unnormalised log-probabilities."""
        return self.mlp(state.flatten(1)).unflatten(1, (self.objects, self.values))

    def forward(self, state: Tensor) -> Tensor:
        """Returns (B, objects, values) probabilities."""
        return torch.softmax(self.logits(state), dim=-1)


class Labelled(NamedTuple):
    """Encoded frames and what is true in them."""

    state: Tensor  # (B, values)
    label: Tensor  # (B, objects) int64


def fit_probe(
    model: WorldModel,
    how: Fit,
    train: tuple[TransitionSource, np.ndarray],
    valid: tuple[TransitionSource, np.ndarray],
    *,
    values: int,
    seed: int = 0,
) -> Probe:
    """Returns the probe with the lowest validation loss.

    Args:
        model: whose encodings are read; it stays as it is.
        how: epochs, batch size, device.
        train: frames, and labels (episodes, steps + 1, objects) in 0..values-1.
        valid: likewise.
        values: how many values an object has (25 cells, or the number of colours).
        seed: of the probe's weights.
    """
    model.eval()
    for name, (source, labels) in (("training", train), ("validation", valid)):
        told, of = world_of(source), getattr(labels, "world", None)  # of `dataset_labels`
        model.check_world(f"the probe's {name} data", told)
        check_same_world("labels", of, "frames", told, fix="Pass the labels of the source's data")
        model.check_world("labels", of)
    vision = model.config.vision
    objects = int(train[1].shape[-1])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        probe = Probe(vision.slots * vision.slot_width, objects, values)
    stage = ModelStage(
        name="probe",
        objective=lambda model: _CrossEntropy(cast("Probe", model)),
        parts=("mlp",),
        feeds=lambda _: (_feed(model, *train), _feed(model, *valid)),
        needs=Needs(),
        batch_size=how.batch_size,
    )
    learner = Learner([probe], torch.device(how.device))
    best = Run(learner, [stage], how, seeds=(seed,))()["probe"]
    probe.load_state_dict(member(best, 0))
    return probe.eval()


@final
class _CrossEntropy(nn.Module):
    def __init__(self, model: Probe) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Labelled, draw: object) -> Tensor:
        logits = self.model.logits(batch.state)
        return nn.functional.cross_entropy(logits.flatten(0, 1), batch.label.flatten())


@torch.no_grad()
def _feed(model: WorldModel, source: TransitionSource, labels: np.ndarray) -> Feed:
    count = num_frames(source)
    if tuple(labels.shape[:2]) != (source.num_episodes, source.num_steps + 1):
        raise InvalidValueError(
            explain(
                f"labels have shape {tuple(labels.shape)}",
                allowed=f"({source.num_episodes}, {source.num_steps + 1}, objects)",
            )
        )
    numbers = torch.arange(count, device=source.device)
    states = torch.cat(
        [model.encode(source.frames(part)).flatten(1) for part in numbers.split(_IMAGES)]
    )
    truth = torch.as_tensor(labels).to(source.device, torch.int64).flatten(0, 1)
    return Feed(count, lambda chosen: Labelled(states[chosen], truth[chosen]))
