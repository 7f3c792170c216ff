"""Slot attention with a transformer over the slots.

Slots start at learned queries, one per object and one for the background, so that a slot holds the
same object in every frame, and compete for the cells of a picture. The background's slot is left
out of the state. The decoder paints every slot as a whole picture; masks that sum to one over the
slots and a learned background say who is seen where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from interverse.models.cells import CellConv2d
from interverse.models.deconvolution import full_precision
from interverse.models.pairs.slots import SlotAttention
from interverse.models.transformer import TransformerTransition

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

_CELL, _CELLS = 10, 25  # pixels along a cell's side, and cells of a picture
_PICTURE = 50
_WIDTH = 64
_ROUNDS = 3
_SHARPNESS = 6.0  # of the first attention: slots that share all cells evenly learn for long nothing
_PLACES = 0.3  # of a place beside what is seen there, likewise


@final
class ObjectSlotEncoder(nn.Module):
    """Pictures to one state per object, by competition for the picture's cells."""

    patchable = False  # it looks at whole frames

    def __init__(self, objects: int, embedding: int) -> None:
        super().__init__()
        self.objects = objects
        self.maps = nn.Sequential(CellConv2d(3, _WIDTH, _CELL), nn.ReLU())
        self.norm = nn.LayerNorm(_WIDTH)
        self.places = nn.Parameter(_PLACES * torch.randn(_CELLS, _WIDTH))
        self.mix = nn.Sequential(
            nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH)
        )
        self.queries = nn.Parameter(torch.randn(objects + 1, _WIDTH))
        self.attention = SlotAttention(_WIDTH, _ROUNDS, implicit=False)
        with torch.no_grad():
            self.attention.query.weight.mul_(_SHARPNESS)
        self.read = nn.Linear(_WIDTH, embedding)

    def forward(self, images: Tensor) -> Tensor:
        """Returns (B, objects, embedding) for images (B, 3, 50, 50) in [0, 1]."""
        maps = self.maps(images)
        with full_precision(maps):
            seen = self.norm(maps.float().flatten(2).transpose(1, 2)) + self.places
            first = self.attention.start(self.queries).expand(len(images), -1, -1)
            return self.read(self.attention(seen + self.mix(seen), first)[:, : self.objects])


@final
class ObjectSlotDecoder(nn.Module):
    """States to image logits, with the mask of every slot at hand."""

    def __init__(self, embedding: int) -> None:
        super().__init__()
        self.paint = nn.Sequential(
            nn.Linear(embedding, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, 4 * _PICTURE**2)
        )
        self.background = nn.Parameter(torch.zeros(1, 1, 4, _PICTURE, _PICTURE))

    def layers(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Returns logits (B, slots + 1, 3, 50, 50) and masks (B, slots + 1, 1, 50, 50)."""
        painted = self.paint(state).unflatten(-1, (4, _PICTURE, _PICTURE))
        background = self.background.expand(len(state), -1, -1, -1, -1)
        pixels = torch.cat([painted, background], dim=1)
        return pixels[:, :, :3], torch.softmax(pixels[:, :, 3:], dim=1)

    def forward(self, state: Tensor) -> Tensor:
        """Returns logits (B, 3, 50, 50) of states (B, slots, embedding)."""
        with full_precision(state):
            colours, masks = self.layers(state.float())
            return (colours * masks).sum(1)


def build(config: WorldModelConfig) -> TransformerTransition:
    """Returns the transition of a config."""
    return TransformerTransition(
        config.objects, config.embedding, config.actions, hidden=config.hidden
    )


def build_vision(config: WorldModelConfig) -> tuple[nn.Module, nn.Module]:
    """Returns the encoder and the decoder of a config."""
    return ObjectSlotEncoder(config.objects, config.embedding), ObjectSlotDecoder(config.embedding)
