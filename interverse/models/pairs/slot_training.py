"""Pretraining slots: pictures drawn again from their slots.

The recipe is the usual one of the slot attention papers; the benchmark's own was not published.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor
from torch.nn import functional

from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import generator
from interverse.models import checkpoint
from interverse.models.pairs.config import EncoderConfig
from interverse.models.pairs.encoders import slot_noise
from interverse.models.pairs.slots import SlotAutoencoder
from interverse.models.pairs.work import seeded
from interverse.models.steps import (
    Precision,
    adam_tensors,
    autocast,
    matmul_precision,
    restore_adam,
    under,
)

FILE = "slots.safetensors"
Listener = Callable[[Mapping[str, Any]], None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTraining:
    """How slots are pretrained."""

    encoder: EncoderConfig = field(default_factory=lambda: EncoderConfig(name="slots"))
    steps: int = 500_000
    batch_size: int = 64
    learning_rate: float = 4e-4
    warmup: int = 10_000
    """Steps in which the learning rate rises to its full value."""
    halve_every: int = 100_000
    """Steps in which it falls to a half."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    device: str = "cpu"
    precision: Precision = "float32"
    out: Path | None = None
    """Folder for weights and progress; without it nothing is written and resumed."""
    log_every: int = 1000
    """Steps between records; what a kill can cost."""

    def __post_init__(self) -> None:
        if self.encoder.name != "slots" or self.encoder.weights is not None:
            raise InvalidValueError(
                explain(f"encoder {self.encoder.name!r}", allowed="slots, without weights")
            )
        for name in ("steps", "batch_size", "warmup", "halve_every", "log_every"):
            if getattr(self, name) < 1:
                raise InvalidValueError(
                    explain(f"{name} must be at least 1, got {getattr(self, name)}")
                )

    def rate(self, step: int) -> float:
        """Returns the learning rate of a step, counted from 0."""
        rise = min(1.0, (step + 1) / self.warmup)
        return self.learning_rate * rise * 0.5 ** (step / self.halve_every)

    def record(self) -> dict[str, Any]:
        """Returns what decides the result, as JSON values."""
        return asdict(replace(self, out=None, device="cpu", log_every=1))


def train_slots(
    images: Tensor, how: SlotTraining, *, seed: int = 0, listeners: Sequence[Listener] = ()
) -> tuple[SlotAutoencoder, list[dict[str, Any]]]:
    """Returns a slot autoencoder trained on pictures, and its losses.

    Args:
        images: (N, 3, S, S) uint8, S the encoder's resolution.
        how: the settings; progress in `how.out` is gone on from.
        seed: of weights, order and first slots.
        listeners: called with every record.
    """
    if tuple(images.shape[1:]) != (3, how.encoder.resolution, how.encoder.resolution):
        raise InvalidValueError(
            explain(
                f"pictures are {tuple(images.shape)}",
                allowed=f"(N, 3, {how.encoder.resolution}, {how.encoder.resolution})",
            )
        )
    device = torch.device(how.device)
    with seeded("slots/weights", seed):
        model = SlotAutoencoder(how.encoder).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=how.learning_rate, fused=True)
    asked = {**how.record(), "seed": seed, "pictures": len(images)}
    history = _resume(how.out, asked, model, optimizer)
    begun = history[-1]["step"] if history else 0
    pictures = images.to(device)
    total, count, began = torch.zeros((), device=device), 0, time.perf_counter()
    with matmul_precision(how.precision):
        for step in range(begun, how.steps):
            total += _update(model, optimizer, pictures, how, (step, seed))
            count += 1
            if (step + 1) % how.log_every and step + 1 < how.steps:
                continue
            row = {"step": step + 1, "loss": float(total) / count}
            row["seconds"] = round(time.perf_counter() - began, 3)
            total, count, began = torch.zeros_like(total), 0, time.perf_counter()
            history.append(row)
            _save(how.out, asked, history, (model, optimizer))
            for listener in listeners:
                listener(row)
    if how.out is not None:
        checkpoint.write_tensors(how.out / FILE, model.state_dict())
    return model, history


def _update(
    model: SlotAutoencoder,
    optimizer: torch.optim.Adam,
    pictures: Tensor,
    how: SlotTraining,
    address: tuple[int, int],
) -> Tensor:
    step, seed = address
    rng = generator(seed=seed, name="slots/batch", episode=step)
    device = pictures.device
    rows = torch.as_tensor(rng.integers(len(pictures), size=how.batch_size), device=device)
    # Pictures come back many times and should not start from the same slots each time.
    fresh = step * how.batch_size + torch.arange(how.batch_size, device=device)
    noise = slot_noise(model.encoder, fresh, seed)
    batch = pictures[rows].float() / 255
    with autocast(device.type, how.precision):
        drawn, _ = model(batch, noise)
    loss = functional.mse_loss(drawn.float(), batch)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), how.clip)
    for group in optimizer.param_groups:
        group["lr"] = how.rate(step)
    optimizer.step()
    return loss.detach()


def _resume(
    out: Path | None,
    asked: Mapping[str, Any],
    model: SlotAutoencoder,
    optimizer: torch.optim.Adam,
) -> list[dict[str, Any]]:
    found = None if out is None else checkpoint.load(out, asked)
    if found is None:
        return []
    model.load_state_dict(under(found.tensors, "weights"))
    restore_adam(optimizer, found.tensors, "adam")
    return [dict(row) for row in found.history]


def _save(
    out: Path | None,
    asked: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]],
    work: tuple[SlotAutoencoder, torch.optim.Adam],
) -> None:
    if out is None:
        return
    model, optimizer = work
    tensors = {f"weights/{name}": value for name, value in model.state_dict().items()}
    tensors |= adam_tensors(optimizer, "adam")
    progress = checkpoint.Progress(
        run=asked,
        stage=0,
        epoch=int(history[-1]["step"]),
        best=(),
        history=tuple(history),
        tensors=tensors,
    )
    checkpoint.save(out, progress)
