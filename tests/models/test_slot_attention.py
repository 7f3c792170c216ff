"""Slot attention: objects end up in slots of their own, and states drive the transformer."""

from __future__ import annotations

import torch

from interverse.models import Fit, evaluate_ranking, fit_world_model
from interverse.models.slot_attention import ObjectSlotDecoder, ObjectSlotEncoder
from interverse.models.source import ArraySource


def test_two_blocks_are_drawn_again_each_by_its_own_slot(squares):
    images, _, cells = squares(400, 0, seed=0, objects=2)
    shown = torch.as_tensor(images[:, 0]).permute(0, 3, 1, 2).float() / 255
    torch.manual_seed(0)
    encoder, decoder = ObjectSlotEncoder(2, 16), ObjectSlotDecoder(16)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for step in range(400):
        batch = shown[torch.arange(32 * step, 32 * step + 32) % 360]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            decoder(encoder(batch)), batch
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    new, apart = shown[360:], torch.as_tensor(cells[360:, 0, 0] != cells[360:, 0, 1])
    with torch.no_grad():
        _, masks = decoder.layers(encoder(new))
        drawn = torch.sigmoid(decoder(encoder(new)))
    print(float(loss), float((drawn - new).abs().mean()))
    for colour in range(2):
        area = new[:, colour : colour + 1]
        share = (masks[:, :, 0] * area).sum((2, 3)) / area.sum((2, 3))
        print(colour, share[apart].mean(0))
