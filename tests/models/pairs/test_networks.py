"""Encoders, heads and penalties: sizes as published, values by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.models.pairs.config import RECIPES, EncoderConfig, PairModelConfig, recipe
from interverse.models.pairs.encoders import PairEncoder, mask_weights, matched
from interverse.models.pairs.head import (
    PairHead,
    change_penalty,
    critic,
    feature_blocks,
    verb_groups,
)
from interverse.models.pairs.toy import VERBS


def _count(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def _tiny(name: str, **fields) -> PairModelConfig:
    encoder = EncoderConfig(name=name, scale="tiny", resolution=32, slots=3, iterations=2)
    return PairModelConfig(encoder=encoder, **fields)


def test_the_published_numbers_of_weights():
    head = PairHead(PairModelConfig(), inputs=512, actions=7)
    assert _count(head.projection) == 32_832
    assert _count(head.action) == 12_416
    assert _count(head.classifier) == 64 * 7 + 7
    assert _count(critic(64, 24)) == 5_720
    linear = PairHead(PairModelConfig(action="linear"), inputs=512, actions=7)
    assert _count(linear.action) == 64 * 64 + 64


def test_resnet_18_has_its_size():
    encoder = PairEncoder(PairModelConfig())
    assert _count(encoder) == 11_176_512
    assert encoder.width == 512
    assert encoder.network.grid(224) == 7
    assert encoder.source == "random"


@pytest.mark.parametrize(("join", "right"), [("concat", "after"), ("difference", "change")])
def test_what_the_action_encoder_sees(join, right):
    head = PairHead(PairModelConfig(join=join), inputs=8, actions=3)
    before, after = torch.randn(2, 5, 1, 64)
    seen = head._join(before, after)
    expected = {"after": after, "change": after - before}[right]
    assert torch.equal(seen, torch.cat([before, expected], dim=-1))


def test_dense_takes_every_pair_and_match_its_own():
    tokens = torch.randn(4, 2, 3, 8)
    heads = {
        pairing: PairHead(PairModelConfig(pairing=pairing), inputs=8, actions=3)
        for pairing in ("dense", "match-mean", "match-max")
    }
    for head in heads.values():
        head.load_state_dict(heads["dense"].state_dict())
    projected = heads["dense"].projection(tokens)
    every = torch.stack(
        [
            heads["dense"].action(
                torch.cat([projected[:, 0, i], projected[:, 1, j] - projected[:, 0, i]], -1)
            )
            for i in range(3)
            for j in range(3)
        ]
    )
    torch.testing.assert_close(heads["dense"](tokens).action, every.mean(0))
    own = every[[0, 4, 8]]
    torch.testing.assert_close(heads["match-mean"](tokens).action, own.mean(0))
    torch.testing.assert_close(heads["match-max"](tokens).action, own.amax(0))
    turned = torch.stack([tokens[:, 0], tokens[:, 1, [2, 0, 1]]], dim=1)
    torch.testing.assert_close(
        heads["dense"](turned).logits, heads["dense"](tokens).logits, atol=1e-5, rtol=1e-4
    )


def test_similar_tokens_find_each_other():
    first = torch.randn(5, 4, 16)
    orders = [torch.randperm(4) for _ in range(5)]
    second = torch.stack([tokens[order] for tokens, order in zip(first, orders, strict=True)])
    found = matched(torch.stack([first, second * 3], dim=1))
    torch.testing.assert_close(found[:, 1], first * 3)


def test_mask_weights_are_one_on_the_object():
    masks = torch.zeros(1, 2, 96, 96, dtype=torch.bool)
    masks[0, 0, :16, :16] = True  # the filter reaches half a cell beyond each cell
    masks[0, 1, 46:50, 46:50] = True  # a speck still counts
    weights = mask_weights(masks, 3, 0.01)
    assert weights[0, 0].tolist() == pytest.approx([1] + 8 * [0.01])
    assert weights[0, 1, 4] == 1
    assert mask_weights(torch.zeros_like(masks), 3, 0.01).unique().tolist() == pytest.approx([0.01])


def test_the_oracle_mask_averages_over_the_object(scenes):
    config = _tiny("resnet18", pairing="mask", min_mask=0.001)
    encoder = PairEncoder(config).eval()
    images, masks = scenes.images[:2], scenes.masks[:2]
    with torch.no_grad():
        tokens = encoder.network((images.float() / 255).flatten(0, 1)).unflatten(0, (-1, 2))
        found = encoder(images, masks, None)
        encoder.config = replace(config, min_mask=1.0)
        plain = encoder(images, masks, None)
    shrunk = functional.interpolate(masks.float(), size=(3, 3), mode="bilinear", antialias=True)
    weights = np.where(shrunk.flatten(2).numpy() > 1 / 255, 1.0, 0.001)
    expected = (tokens.numpy() * weights[..., None]).sum(2) / weights.sum(2)[..., None]
    np.testing.assert_allclose(found[:, :, 0].numpy(), expected, atol=1e-5)
    torch.testing.assert_close(plain[:, :, 0], tokens.mean(2))


@pytest.mark.parametrize(
    ("name", "tokens"),
    [("resnet18", 1), ("resnet50", 1), ("clip", 1), ("groupvit", 4), ("slots", 3)],
)
def test_every_encoder_encodes_pairs(name, tokens, pairs):
    config = _tiny(name, pairing="match-max" if tokens > 1 else "avg")
    encoder = PairEncoder(config).eval()
    rows = torch.arange(2)
    with torch.no_grad():
        found = encoder(pairs.images[:2], None, encoder.noise(rows, 0))
        alone = encoder(pairs.images[1:2], None, encoder.noise(rows[1:], 0))
    assert found.shape == (2, 2, tokens, encoder.width)
    assert found.isfinite().all()
    torch.testing.assert_close(found[1:], alone, atol=1e-4, rtol=1e-3)


def test_the_mean_of_groups_is_groupvits_pooled_vector(pairs):
    encoder = PairEncoder(_tiny("groupvit")).eval()
    with torch.no_grad():
        found = encoder(pairs.images[:2], None, None)
        ready = functional.interpolate(
            pairs.images[:2].flatten(0, 1).float() / 255,
            size=(64, 64),
            mode="bilinear",
            antialias=True,
        )
        network = encoder.network
        pooled = network.network(pixel_values=network.normalise(ready)).pooler_output
    torch.testing.assert_close(found[:, :, 0].flatten(0, 1), pooled, atol=1e-5, rtol=1e-4)


def test_weights_come_from_a_folder(tmp_path, pairs):
    saved = PairEncoder(_tiny("resnet18"))
    saved.network.network.save_pretrained(tmp_path)
    config = PairModelConfig(encoder=EncoderConfig(weights=str(tmp_path)))
    loaded = PairEncoder(config)
    assert loaded.source == str(tmp_path)
    assert loaded.width == saved.width
    with torch.no_grad():
        outs = [e.eval()(pairs.images[:2], None, None) for e in (saved, loaded)]
    torch.testing.assert_close(outs[0], outs[1])


def test_missing_weights_are_told(tmp_path):
    with pytest.raises(FileFormatError, match="no weights for ResNetModel"):
        PairEncoder(PairModelConfig(encoder=EncoderConfig(weights=str(tmp_path / "none"))))


def test_groups_and_blocks():
    assert verb_groups(VERBS).tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert feature_blocks(64, 4).tolist() == [i // 16 for i in range(64)]
    with pytest.raises(InvalidValueError, match="70 groups"):
        feature_blocks(64, 70)


def test_the_change_penalty_by_hand():
    features = torch.zeros(2, 2, 1, 4)
    features[0, 1, 0] = torch.tensor([3.0, 4.0, 1.0, 1.0])  # touches block 1 lawfully
    features[1, 1, 0] = torch.tensor([0.0, 2.0, 0.0, 0.0])  # touches block 0 lawfully
    blocks, group = feature_blocks(4, 2), torch.tensor([1, 0])
    assert change_penalty(features, group, blocks, "mse") == pytest.approx((9 + 16) / 8)
    assert change_penalty(features, group, blocks, "norm") == pytest.approx((5 + 0) / 2)


@pytest.mark.parametrize("form", ["mse", "norm"])
def test_the_penalty_pulls_untouched_blocks_alone(form):
    features = torch.randn(3, 2, 1, 8)
    features[0, 1] = features[0, 0]  # no change at all must not give NaN
    features.requires_grad_()
    change_penalty(features, torch.tensor([0, 1, 2]), feature_blocks(8, 4), form).backward()
    assert features.grad.isfinite().all()
    assert not features.grad[1, :, :, 2:4].any()
    assert features.grad[1, :, :, :2].any()


@pytest.mark.parametrize("name", RECIPES)
def test_code_and_paper_differ_as_they_do(name):
    code, paper = recipe(name, "code"), recipe(name, "paper")
    assert code.model.join == "difference"
    assert paper.model.join == "concat"
    assert (code.model.projection, paper.model.projection) == ("linear", "mlp")
    assert paper.fit.learning_rate == 1e-3
    assert paper.fit.batch_size == (128 if paper.model.frozen else 32)
    slots = name.startswith("slot")
    assert code.model.head_norm == slots
    assert code.fit.batch_size == (200 if slots else 128)
    assert code.fit.learning_rate == (2e-3 if slots else 1e-3 if code.model.frozen else 2e-4)


def test_bad_settings_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'vanilla'"):
        recipe("vanila")
    with pytest.raises(UnknownNameError, match="unknown encoder 'vgg'"):
        EncoderConfig(name="vgg")
    with pytest.raises(InvalidValueError, match="min_mask is 0"):
        PairModelConfig(min_mask=0.0)
    with pytest.raises(InvalidValueError, match="needs a feature map"):
        _tiny("clip", pairing="mask")
    with pytest.raises(InvalidValueError, match="frozen=True"):
        PairModelConfig(match="similarity")
    with pytest.raises(InvalidValueError, match="do not fit scale='tiny'"):
        EncoderConfig(scale="tiny", weights="somewhere")
