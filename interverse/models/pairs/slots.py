"""Slot attention: a picture as a set of slots, pictures from slots, and how slots are pretrained.

After Locatello et al. (2020); the implicit variant (Chang et al., 2022) differentiates only the
last iteration. Pretraining is the usual recipe of these papers: the benchmark's own was not
published.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.core.files.checkpoints import Checkpoint
from interverse.core.files.tensor_files import write_safetensors
from interverse.core.rng import Noise, generator
from interverse.core.run import Run
from interverse.core.type_checks import validated
from interverse.models.pairs.config import Count, EncoderConfig
from interverse.models.steps import (
    Precision,
    adam_tensors,
    autocast,
    matmul_precision,
    restore_adam,
    seeded,
    under,
)

FILE = "slots.safetensors"
Listener = Callable[[Mapping[str, Any]], None]

_GRID = 8  # edge of the decoder's first map
# Transposed convolutions from 8 to the picture's size: kernel, stride, padding.
_LAYERS = {
    128: ((5, 2, 2), (5, 2, 2), (5, 2, 1), (5, 2, 0), (4, 1, 0), (3, 1, 0), (3, 1, 0)),
    64: ((5, 2, 2), (5, 2, 2), (5, 2, 1), (4, 1, 0), (3, 1, 0), (3, 1, 1)),
    32: ((5, 2, 2), (5, 2, 2), (4, 1, 0), (3, 1, 1), (3, 1, 1)),
}
_EPSILON = 1e-6


@final
class PositionEmbedding(nn.Module):
    """Adds a linear map of (x, y, 1 - x, 1 - y) to a map (B, C, S, S)."""

    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        line = torch.linspace(0, 1, size)
        y, x = torch.meshgrid(line, line, indexing="ij")
        grid = torch.stack([x, y, 1 - x, 1 - y], dim=-1)
        self.register_buffer("grid", grid, persistent=False)
        self.linear = nn.Linear(4, channels)

    def forward(self, maps: Tensor) -> Tensor:
        """Returns the map with positions."""
        return maps + self.linear(self.grid).permute(2, 0, 1)


@final
class PixelTokens(nn.Module):
    """Pictures (B, 3, S, S) to one token per pixel, (B, S * S, channels)."""

    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for number in range(4):
            layers += [nn.Conv2d(channels if number else 3, channels, 5, padding=2), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers)
        self.position = PositionEmbedding(channels, size)
        self.mlp = nn.Sequential(
            nn.LayerNorm(channels),
            nn.Linear(channels, channels),
            nn.ReLU(),
            nn.Linear(channels, channels),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Returns the tokens."""
        maps = self.position(self.convolutions(images))
        return self.mlp(maps.flatten(2).transpose(1, 2))


@final
class SlotAttention(nn.Module):
    """Slots compete for tokens, several times over.

    Args:
        width: of slots and tokens.
        iterations: how often.
        implicit: whether only one more iteration, from detached slots, is differentiated.
    """

    def __init__(self, width: int, iterations: int, *, implicit: bool) -> None:
        super().__init__()
        self.iterations, self.implicit = iterations, implicit
        self.mean = nn.Parameter(torch.empty(width))
        self.log_deviation = nn.Parameter(torch.empty(width))
        limit = (6 / (1 + width)) ** 0.5
        nn.init.uniform_(self.mean, -limit, limit)
        nn.init.uniform_(self.log_deviation, -limit, limit)
        self.token_norm, self.slot_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.gru = nn.GRUCell(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )

    def start(self, noise: Tensor) -> Tensor:
        """Returns first slots from standard normal numbers (B, slots, width)."""
        return self.mean + self.log_deviation.exp() * noise

    def forward(self, tokens: Tensor, slots: Tensor) -> Tensor:
        """Returns the slots (B, slots, width) after all iterations from given ones."""
        tokens = self.token_norm(tokens)
        keys, values = self.key(tokens) * tokens.shape[-1] ** -0.5, self.value(tokens)
        if not self.implicit:
            for _ in range(self.iterations):
                slots = self._step(keys, values, slots)
            return slots
        with torch.no_grad():
            for _ in range(self.iterations):
                slots = self._step(keys, values, slots)
        return self._step(keys, values, slots.detach())

    def _step(self, keys: Tensor, values: Tensor, slots: Tensor) -> Tensor:
        # attention (B, slots, tokens): a token's shares sum to one over slots.
        queries = self.query(self.slot_norm(slots))
        attention = (queries @ keys.transpose(1, 2)).softmax(dim=1) + _EPSILON
        attention = attention / attention.sum(dim=2, keepdim=True)
        updates = attention @ values
        slots = self.gru(updates.flatten(0, 1), slots.flatten(0, 1)).view_as(slots)
        return slots + self.mlp(slots)


@final
class SlotEncoder(nn.Module):
    """Pairs of pictures to pairs of slot sets.

    Attributes:
        width: of a slot.
        resolution: pictures must have this size.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.width = 16 if config.scale == "tiny" else 64
        self.resolution, self.slots = config.resolution, config.slots
        self.shared = config.start == "shared"
        self.tokens = PixelTokens(self.width, config.resolution)
        self.attention = SlotAttention(self.width, config.iterations, implicit=config.implicit)

    def noise(self, rows: Tensor, seed: int) -> Tensor:
        """Returns (B, slots, width) standard normal numbers, a function of row and seed alone."""
        noise = Noise(torch.full_like(rows, seed), rows, torch.zeros_like(rows))
        return noise.normal("pairs/slots", (self.slots, self.width)).float()

    def forward(self, images: Tensor, noise: Tensor) -> Tensor:
        """Returns slots (B, slots, width) of single pictures (B, 3, S, S) in 0..1."""
        return self.attention(self.tokens(images), self.attention.start(noise))

    def pairs(self, images: Tensor, noise: Tensor) -> Tensor:
        """Returns (B, 2, slots, width) for pairs (B, 2, 3, S, S); both pictures encoded at once."""
        first, second = self.tokens(images.flatten(0, 1)).unflatten(0, (-1, 2)).unbind(1)
        start = self.attention.start(noise)
        before = self.attention(first, start)
        if not self.shared:
            return torch.stack([before, self.attention(second, start)], dim=1)
        after = self.attention(second, before)
        middle = (before + after) / 2
        both = self.attention(torch.cat([first, second]), torch.cat([middle, middle]))
        return both.unflatten(0, (2, -1)).transpose(0, 1)


@final
class SlotAutoencoder(nn.Module):
    """The slot encoder with the decoder that pretrains it; masks say which slot drew a pixel."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.encoder = SlotEncoder(config)
        width = self.encoder.width
        self.position = PositionEmbedding(width, _GRID)
        layers: list[nn.Module] = []
        *inner, last = _LAYERS[config.resolution]
        for kernel, stride, padding in inner:
            layers += [nn.ConvTranspose2d(width, width, kernel, stride, padding), nn.ReLU()]
        layers.append(nn.ConvTranspose2d(width, 4, *last))
        self.decoder = nn.Sequential(*layers)

    def forward(self, images: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Returns pictures drawn again (B, 3, S, S) and each slot's share (B, slots, S, S)."""
        return self.decode(self.encoder(images, noise))

    def decode(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the pictures of slots (B, slots, width), and each slot's share of them."""
        batch, count, width = slots.shape
        spread = slots.reshape(batch * count, width, 1, 1).expand(-1, -1, _GRID, _GRID)
        drawn = self.decoder(self.position(spread)).unflatten(0, (batch, count))
        colours, share = drawn[:, :, :3], drawn[:, :, 3:].softmax(dim=1)
        return (colours * share).sum(dim=1), share[:, :, 0]


# ------------------------------------------------------------------------------------ pretraining


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class SlotTraining:
    """How slots are pretrained."""

    encoder: EncoderConfig = field(default_factory=lambda: EncoderConfig(name="slots"))
    steps: Count = 500_000
    batch_size: Count = 64
    learning_rate: float = 4e-4
    warmup: Count = 10_000
    """Steps in which the learning rate rises to its full value."""
    halve_every: Count = 100_000
    """Steps in which it falls to a half."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    device: str = "cpu"
    precision: Precision = "float32"
    out: Path | None = None
    """Folder for weights and progress; without it nothing is written and resumed."""
    log_every: Count = 1000
    """Steps between records; what a kill can cost."""

    def __post_init__(self) -> None:
        if self.encoder.name != "slots" or self.encoder.weights is not None:
            raise InvalidValueError(
                f"encoder {self.encoder.name!r}", allowed="slots, without weights"
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

    Images are (N, 3, S, S) uint8, S the encoder's resolution; progress in `how.out` is gone on
    from.
    """
    if tuple(images.shape[1:]) != (3, how.encoder.resolution, how.encoder.resolution):
        raise InvalidValueError(
            f"pictures are {tuple(images.shape)}",
            allowed=f"(N, 3, {how.encoder.resolution}, {how.encoder.resolution})",
        )
    device = torch.device(how.device)
    with seeded("slots/weights", seed):
        model = SlotAutoencoder(how.encoder).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=how.learning_rate, fused=True)
    history: list[dict[str, Any]] = []
    pictures, total, began = images.to(device), torch.zeros((), device=device), time.perf_counter()

    def update(step: int) -> Tensor:
        rng = generator(seed=seed, name="slots/batch", episode=step)
        rows = torch.as_tensor(rng.integers(len(pictures), size=how.batch_size), device=device)
        # Pictures come back many times and should not start from the same slots each time.
        fresh = step * how.batch_size + torch.arange(how.batch_size, device=device)
        batch = pictures[rows].float() / 255
        with autocast(device.type, how.precision):
            drawn, _ = model(batch, model.encoder.noise(fresh, seed))
        loss = functional.mse_loss(drawn.float(), batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), how.clip)
        for group in optimizer.param_groups:
            group["lr"] = how.rate(step)
        optimizer.step()
        return loss.detach()

    def reached() -> Checkpoint:
        tensors = {f"weights/{name}": value for name, value in model.state_dict().items()}
        tensors |= {**adam_tensors(optimizer, "adam"), "total": total}
        return Checkpoint(step=step, record={"history": history}, tensors=tensors)

    asked = {**how.record(), "seed": seed, "pictures": len(images)}
    run = Run(how.out, asked, title="slots", total=how.steps, every=how.log_every)
    with run, matmul_precision(how.precision):
        begun = 0
        if (held := run.resume()) is not None:
            begun, history = held.step, list(held.record["history"])
            model.load_state_dict(under(held.tensors, "weights"))
            restore_adam(optimizer, held.tensors, "adam")
            total = held.tensors["total"].to(device)
        for step in range(begun + 1, how.steps + 1):
            total += update(step - 1)
            whole = step % how.log_every == 0 or step == how.steps
            if whole:
                count = step - (history[-1]["step"] if history else 0)
                seconds = round(time.perf_counter() - began, 3)
                history.append({"step": step, "loss": float(total) / count, "seconds": seconds})
                total, began = torch.zeros_like(total), time.perf_counter()
            run.keep(step, reached)
            for listener in listeners if whole else ():
                listener(history[-1])
    if how.out is not None:
        write_safetensors(how.out / FILE, model.state_dict())
    return model, history
