"""Slot attention with a transformer over the slots.

Slots start at learned queries, one per object and one for the background, so that a slot holds the
same object in every frame, and compete for the cells of a picture (Locatello et al., 2020). What a
slot takes from a cell is a product of what is seen there and where it is, summed over cells: with
means, as published, a block is one part in twenty-five of what a slot sees at first, and training
rests long on the mean picture. The background's slot is left out of the state.

The decoder gives every slot one colour and a mask; masks sum to one over the slots and a learned
background. A slot of two colours cannot be drawn, which favours one object to a slot but does not
ensure it: after 600 steps two blocks had a slot each in one of the seeds 0, 1 and 2; in the others,
after 1200 steps too, one slot has the largest share of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from interverse.models.encoders import PictureEncoder
from interverse.models.layers import CellConv2d, full_precision

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

_CELL, _CELLS = 10, 25  # pixels along a cell's side, and cells of a picture
_PICTURE = 50
_WIDTH = 64
_ROUNDS = 3
# The first competition is sharp, and by look rather than by place: slots that share all cells
# evenly learn nothing for long.
_SHARPNESS, _PLACES = 8.0, 0.1


@final
class ObjectSlotEncoder(PictureEncoder):
    """Pictures to one state per object, by competition for the picture's cells."""

    def __init__(self, objects: int, embedding: int) -> None:
        super().__init__()
        self.objects = objects
        self.maps = nn.Sequential(CellConv2d(3, _WIDTH, _CELL), nn.ReLU())
        self.key_places = nn.Parameter(_PLACES * torch.randn(_CELLS, _WIDTH))
        self.value_places = nn.Parameter(torch.randn(_CELLS, _WIDTH))
        self.slots = nn.Parameter(torch.randn(objects + 1, _WIDTH))
        self.key = nn.Linear(_WIDTH, _WIDTH, bias=False)
        self.value = nn.Linear(_WIDTH, _WIDTH, bias=False)
        self.norm, self.query = nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, _WIDTH, bias=False)
        with torch.no_grad():
            self.query.weight.mul_(_SHARPNESS)
        self.update = nn.GRUCell(_WIDTH, _WIDTH)
        self.settle = nn.Sequential(
            nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH)
        )
        self.read = nn.Linear(_WIDTH, embedding)

    def forward(self, images: Tensor) -> Tensor:
        """Returns (B, objects, embedding) for images (B, 3, 50, 50) in [0, 1]."""
        maps = self.maps(images)
        with full_precision(maps):
            seen = maps.float().flatten(2).transpose(1, 2)
            keys = self.key(seen + self.key_places) * _WIDTH**-0.5
            values = self.value(seen) * self.value_places
            slots = self.slots.expand(len(images), -1, -1)
            for _ in range(_ROUNDS):
                shares = torch.softmax(self.query(self.norm(slots)) @ keys.transpose(1, 2), dim=1)
                taken = (shares @ values).flatten(0, 1)
                slots = self.update(taken, slots.flatten(0, 1)).view_as(slots)
                slots = slots + self.settle(slots)
            return self.read(slots[:, : self.objects])


@final
class ObjectSlotDecoder(nn.Module):
    """States to image logits, with the mask of every slot at hand."""

    def __init__(self, embedding: int) -> None:
        super().__init__()
        self.paint = nn.Sequential(
            nn.Linear(embedding, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, 3 + _PICTURE**2)
        )
        self.background = nn.Parameter(torch.zeros(1, 1, 3 + _PICTURE**2))

    def layers(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Returns colours (B, slots + 1, 3) as logits and masks (B, slots + 1, 50, 50)."""
        background = self.background.expand(len(state), -1, -1)
        painted = torch.cat([self.paint(state), background], dim=1)
        masks = torch.softmax(painted[..., 3:], dim=1)
        return painted[..., :3], masks.unflatten(-1, (_PICTURE, _PICTURE))

    def forward(self, state: Tensor) -> Tensor:
        """Returns logits (B, 3, 50, 50) of states (B, slots, embedding)."""
        with full_precision(state):
            colours, masks = self.layers(state.float())
            return torch.einsum("bkc,bkhw->bchw", colours, masks)


def vision(config: WorldModelConfig) -> tuple[PictureEncoder, nn.Module]:
    """Returns the encoder and the decoder of a config."""
    return ObjectSlotEncoder(config.objects, config.embedding), ObjectSlotDecoder(config.embedding)
