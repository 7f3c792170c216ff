"""Encoders and decoders: parameter counts, shapes, the folded image head, slots of objects."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from interverse.models import layers
from interverse.models.encoders import (
    MAP_EDGE,
    Decoder,
    Encoder,
    ObjectSlotDecoder,
    ObjectSlotEncoder,
    PatchDecoder,
)
from interverse.models.layers import CellConv2d, CellConvTranspose2d
from interverse.models.world_model import WorldModel, WorldModelConfig

# Encoder, decoder and transition of the published code, embedding 32.
MEDIUM = {
    ("ae", 3): (477315, 250415, 1209440),
    ("vae", 3): (526563, 250415, 1209440),
    ("gnn", 3): (342083, 182631, 1121312),
    ("modular", 3): (342083, 182631, 441756),
    ("ae", 5): (614149, 330999, 1312928),
    ("vae", 5): (696229, 330999, 1312928),
    ("gnn", 5): (343685, 195431, 1121312),
    ("modular", 5): (343685, 195431, 340840),
}
SMALL = {
    ("ae", 3): (361635, 188238),
    ("gnn", 3): (303203, 159004),
    ("modular", 3): (303203, 159004),
}


def size(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(("model", "objects"), MEDIUM)
def test_medium_models_have_the_published_number_of_parameters(model, objects):
    made = WorldModel(WorldModelConfig(model=model, objects=objects, loss="nll"))
    assert (size(made.encoder), size(made.decoder), size(made.transition)) == MEDIUM[model, objects]


@pytest.mark.parametrize(("model", "objects"), SMALL)
def test_small_models_have_the_published_number_of_parameters(model, objects):
    config = WorldModelConfig(model=model, objects=objects, loss="nll", encoder="small")
    made = WorldModel(config)
    assert (size(made.encoder), size(made.decoder)) == SMALL[model, objects]
    assert size(made.transition) == MEDIUM[model, objects][2]


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("size", MAP_EDGE)
def test_images_become_states_and_states_images(size, flat, tiny):
    shape = {"objects": 4, "embedding": 3, "encoder_channels": 4, "decoder_width": 8}
    config = tiny("ae" if flat else "gnn", "nll", encoder=size, **shape)
    images = torch.rand(2, 3, 50, 50)
    state = Encoder(config)(images)
    assert state.shape == ((2, 1, 12) if flat else (2, 4, 3))
    assert Decoder(config)(state).shape == images.shape


def test_a_slot_sees_its_own_map_alone(tiny):
    encoder = Encoder(tiny()).eval()
    images = torch.rand(2, 3, 50, 50)
    before = encoder(images)
    with torch.no_grad():
        encoder.maps[3].bias[1] += 1.0  # the second object's map alone
    changed = (encoder(images) != before).any(-1).any(0)
    assert changed.tolist() == [False, True, False]


@pytest.mark.parametrize("edge", [1, 5])
@pytest.mark.parametrize("by_product", [True, False])
def test_cell_convolutions_equal_those_of_torch(edge, by_product, monkeypatch):
    monkeypatch.setattr(layers, "_VECTOR", 4 if by_product else 1)
    maps = torch.rand(2, 3, 4, 2, dtype=torch.float64)
    for ours, theirs, x in (
        (CellConv2d(3, 7, edge), nn.Conv2d(3, 7, edge, stride=edge), maps.repeat(1, 1, edge, edge)),
        (CellConvTranspose2d(3, 7, edge), nn.ConvTranspose2d(3, 7, edge, stride=edge), maps),
    ):
        theirs.load_state_dict(ours.state_dict())
        torch.testing.assert_close(ours.double()(x), theirs.double()(x))


def plain_head(head: PatchDecoder, maps: torch.Tensor) -> torch.Tensor:
    """The same layers one after the other, as torch computes them."""
    return head.image(functional.relu(head.norm(head.cells(maps))))


@pytest.mark.parametrize("in_cache", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_folded_head_equals_the_plain_layers_and_their_gradients(training, in_cache):
    torch.manual_seed(0)
    heads = [PatchDecoder(3, 8).double().train(training) for _ in range(2)]
    with torch.no_grad():
        for part in (heads[0].norm.weight, heads[0].norm.bias, heads[0].norm.running_mean):
            part.uniform_(0.5, 1.5)
    heads[1].load_state_dict(heads[0].state_dict())
    heads[0].in_cache = in_cache
    maps = torch.rand(6, 3, 4, 4, dtype=torch.float64, requires_grad=True)
    goal = torch.rand(6, 3, 20, 20, dtype=torch.float64)
    gradients = []
    for head, run in zip(heads, (heads[0], lambda m: plain_head(heads[1], m)), strict=True):
        loss = (run(maps) - goal).square().sum()
        wanted = [maps, head.cells.weight, *head.norm.parameters(), *head.image.parameters()]
        gradients.append([loss, *torch.autograd.grad(loss, wanted)])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    for name, value in heads[0].norm.named_buffers():
        torch.testing.assert_close(value, dict(heads[1].norm.named_buffers())[name])


def test_norm_after_the_activation_is_another_network():
    torch.manual_seed(0)
    maps = torch.rand(2, 3, 10, 10)
    first = PatchDecoder(3, 8)
    second = PatchDecoder(3, 8, norm_first=False)
    second.load_state_dict(first.state_dict())
    assert not torch.allclose(first(maps), second(maps))


def test_states_stay_in_full_precision_under_autocast(tiny):
    encoder = Encoder(tiny(encoder="medium")).eval()
    images = torch.rand(2, 3, 50, 50)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        state = encoder(images)
    assert state.dtype == torch.float32
    assert not torch.equal(state, encoder(images))  # the convolutions did run in bf16


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
