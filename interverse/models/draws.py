"""The random numbers of training: a function of seed, stage and epoch alone.

An epoch that is run again after a crash therefore draws the same numbers, and a seed trained
beside others draws what it draws alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from interverse.core.rng import generator
from interverse.models.stages import Draw
from interverse.models.world_model import WorldModelConfig

_PHASE = 10
"""Batches in a row that train a learned graph's networks, then its edges, and so on."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Which random numbers a stage of a model uses."""

    negatives: bool = False
    normal: tuple[int, ...] | None = None
    """Shape of a VAE's state."""
    graphs: tuple[int, int, int] | None = None
    """Samples and shape of a learned graph."""

    @classmethod
    def of(cls, config: WorldModelConfig, stage: str) -> Needs:
        """Returns what a stage of a model draws."""
        vision = config.vision
        learns = config.model == "learned_graph" and config.graph is None and stage != "pretrain"
        return cls(
            negatives=stage == "contrastive",
            normal=(vision.slots, vision.slot_width) if config.entry.samples else None,
            graphs=(config.num_graphs, config.objects, config.objects) if learns else None,
        )


def batch_order(count: int, *, seed: int, stage: str, epoch: int) -> np.ndarray:
    """Returns a permutation (count,) int64: in which order an epoch visits its samples."""
    return generator(seed=seed, name=f"fit/{stage}/order", episode=epoch).permutation(count)


def draws(
    needs: Needs,
    sizes: Sequence[int],
    *,
    seeds: Sequence[int],
    name: str,
    epoch: int,
    device: torch.device,
) -> Iterator[Draw]:
    """Yields one Draw per batch size, every tensor with a leading axis over seeds."""
    host = [generator(seed=seed, name=name, episode=epoch) for seed in seeds]
    local = [_torch_generator(rng, device) for rng in host]
    orders = _orders(needs, sizes, host, device)
    for step, size in enumerate(sizes):
        yield Draw(
            order=orders[step],
            normal=_normal(needs, size, local, device),
            uniform=_uniform(needs, local, device),
            structural=needs.graphs is not None and (step // _PHASE) % 2 == 1,
        )


def _torch_generator(rng: np.random.Generator, device: torch.device) -> torch.Generator:
    return torch.Generator(device).manual_seed(int(rng.integers(2**62)))


def _orders(
    needs: Needs,
    sizes: Sequence[int],
    host: Sequence[np.random.Generator],
    device: torch.device,
) -> list[Tensor]:
    """Returns one (seeds, B) permutation per batch, sent to the device in one piece."""
    if not needs.negatives:
        return [torch.empty(len(host), 0, device=device)] * len(sizes)
    rows = [np.concatenate([rng.permutation(size) for size in sizes]) for rng in host]
    return list(torch.as_tensor(np.stack(rows)).to(device).split(list(sizes), dim=1))


def _normal(
    needs: Needs, size: int, local: Sequence[torch.Generator], device: torch.device
) -> Tensor:
    if needs.normal is None:
        return torch.empty(len(local), 0, device=device)
    shape = (2, size, *needs.normal)
    return torch.stack([torch.randn(shape, generator=g, device=device) for g in local])


def _uniform(needs: Needs, local: Sequence[torch.Generator], device: torch.device) -> Tensor:
    if needs.graphs is None:
        return torch.empty(len(local), 0, device=device)
    return torch.stack([torch.rand(needs.graphs, generator=g, device=device) for g in local])
