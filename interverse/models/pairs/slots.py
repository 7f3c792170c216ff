"""Slot attention: a picture as a set of slots, and pictures from slots.

After Locatello et al. (2020); the implicit variant (Chang et al., 2022) differentiates only the
last iteration.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from interverse.models.pairs.config import EncoderConfig

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
