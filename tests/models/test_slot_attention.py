"""Slot attention: objects can end up in slots of their own, and every weight is trained."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from interverse.models.encoders import ObjectSlotDecoder, ObjectSlotEncoder
from interverse.models.world_model import WorldModel


@pytest.mark.slow
def test_two_blocks_are_drawn_each_by_its_own_slot_in_one_seed_of_three(squares):
    parted = [_parts_two_blocks(squares, seed) for seed in range(3)]
    assert any(parted), parted


def _parts_two_blocks(squares, seed):
    """Returns whether each block has a slot of its own after 600 steps."""
    images, _, cells = squares(1000, 0, seed=0, objects=2)
    shown = torch.as_tensor(images[:, 0]).permute(0, 3, 1, 2).float() / 255
    torch.manual_seed(seed)
    encoder, decoder = ObjectSlotEncoder(2, 16), ObjectSlotDecoder(16)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=6e-3)
    for step in range(600):
        batch = shown[torch.arange(32 * step, 32 * step + 32) % 900]
        loss = functional.binary_cross_entropy_with_logits(decoder(encoder(batch)), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    new, apart = shown[900:], torch.as_tensor(cells[900:, 0, 0] != cells[900:, 0, 1])
    with torch.no_grad():
        _, masks = decoder.layers(encoder(new))
    shares = []
    for colour in range(2):
        area = new[:, colour : colour + 1]
        shares.append(((masks * area).sum((2, 3)) / area.sum((2, 3)))[apart].mean(0))
    owners = sorted(int(share.argmax()) for share in shares)
    # No slot has both, nor has the background one.
    return owners == [0, 1] and all(float(share.max()) > 0.8 for share in shares)


def test_masks_share_every_pixel_and_every_weight_is_trained(tiny):
    torch.manual_seed(0)
    model = WorldModel(tiny("slot_transformer", "nll"))
    images, action = torch.rand(6, 3, 50, 50), torch.arange(6) % 15
    state = model.encode(images)
    assert state.shape == (6, 3, 4)
    _, masks = model.decoder.layers(state)
    torch.testing.assert_close(masks.sum(1), torch.ones(6, 50, 50))
    following = model.predict(state, action)
    (model.decode(state).square().sum() + model.decode(following).square().sum()).backward()
    still = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert still == []


def test_what_is_seen_where_changes_the_state(squares):
    images, _, _ = squares(2, 0, seed=1, objects=2)
    shown = torch.as_tensor(images[:, 0]).permute(0, 3, 1, 2).float() / 255
    torch.manual_seed(0)
    encoder = ObjectSlotEncoder(2, 16)
    moved = torch.roll(shown, 10, dims=3)
    with torch.no_grad():
        assert float((encoder(shown) - encoder(moved)).abs().max()) > 1e-3
