"""Augmentations, pixel by pixel, against NumPy, SciPy and the standard library's colours."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
import torch
from scipy import ndimage, signal

from interverse.agents.pixel import AUGMENTATIONS
from interverse.agents.pixel.augment import (
    _fused,
    augmentation,
    centre_crop,
    own_code,
    random_crop,
    shifted_sum,
)
from interverse.bench import BENCHMARKS
from interverse.bench.learning import augment, on_cpu
from interverse.core.errors import InvalidValueError, UnknownNameError

PAPER = [name for name in AUGMENTATIONS if "paper" in AUGMENTATIONS[name].tags]
COUNT, SIZE = 4, 84


def pictures(count: int = COUNT, size: int = SIZE, seed: int = 0) -> torch.Tensor:
    draws = np.random.default_rng(seed).integers(0, 256, (count, 9, size, size), dtype=np.uint8)
    return torch.from_numpy(draws)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(part, shape: tuple[int, ...], seed: int = 0):
    """Returns the parameters of a batch of this shape."""
    return part._parameters(part.numbers(torch.Size(shape), generator(seed)), torch.Size(shape))


def changed(name: str, given: torch.Tensor, rule: str = "paper", seed: int = 0):
    """Returns the one augmentation behind a name, what it drew, and what it made."""
    (part,) = augmentation(name, rule).parts
    drawn = draw(part, given.shape, seed)
    (made,) = augmentation(name, rule)(given, generator=generator(seed))
    return part, [parameter.numpy() for parameter in drawn], made


def drawn_values(name: str, rule: str, which: int, count: int = 5000) -> set[int]:
    (part,) = augmentation(name, rule).parts
    return set(draw(part, (count, 9, SIZE, SIZE))[which].tolist())


def test_the_paper_compares_eleven():
    assert len(PAPER) == 11


@pytest.mark.parametrize("rule", ["paper", "code"])
@pytest.mark.parametrize("name", list(AUGMENTATIONS))
def test_every_one_keeps_shape_and_range_and_its_input(name, rule):
    given = pictures()
    before = given.clone()
    made, twin = augmentation(name, rule)(given, given, generator=generator())
    assert torch.equal(given, before)
    assert made.shape == given.shape
    assert made.dtype in (torch.uint8, torch.float32)
    if name != "network_randomization":
        assert made.min() >= 0
        assert made.max() <= 255
    (part,) = augmentation(name, rule).parts
    assert torch.equal(made, twin) != part.noisy
    again = augmentation(name, rule)(given, generator=generator())[0]
    assert torch.equal(made, again)
    floats = augmentation(name, rule)(given.float(), generator=generator())[0]
    assert floats.dtype == torch.float32
    assert torch.allclose(floats, made.float(), atol=1e-3)


@pytest.mark.parametrize("name", [name for name in AUGMENTATIONS if name != "color_jitter"])
def test_all_frames_of_a_stack_change_alike(name):
    given = pictures()[:, :3].repeat(1, 3, 1, 1)
    made = augmentation(name)(given, generator=generator())[0].view(COUNT, 3, 3, SIZE, SIZE)
    slack = 12.0 if augmentation(name).parts[0].noisy else 1e-4
    assert (made[:, 0].float() - made[:, 2].float()).abs().max() <= slack


@pytest.mark.parametrize(("rule", "alike"), [("paper", True), ("code", False)])
def test_the_code_orders_jitter_anew_per_frame(rule, alike):
    given = pictures(count=32)[:, :3].repeat(1, 3, 1, 1)
    made = augmentation("color_jitter", rule)(given, generator=generator())[0]
    made = made.view(32, 3, 3, SIZE, SIZE)
    assert torch.allclose(made[:, 0], made[:, 2], atol=1e-3) == alike


@pytest.mark.parametrize(
    ("name", "pad"), [("drq_no_noise", 4), ("large_drq_no_noise", 12)], ids=str
)
@pytest.mark.parametrize(("rule", "mode"), [("paper", "edge"), ("code", "reflect")])
def test_crops_of_the_padded_picture(name, pad, rule, mode):
    given = pictures()
    _, (tops, lefts), made = changed(name, given, rule)
    border = ((0, 0), (0, 0), (pad, pad), (pad, pad))
    padded = np.pad(given.numpy(), border, mode=mode)
    for i, (top, left) in enumerate(zip(tops, lefts, strict=True)):
        expected = padded[i, :, top : top + SIZE, left : left + SIZE]
        assert np.array_equal(made[i].numpy(), expected)
    last = 2 * pad - (rule == "code")
    assert drawn_values(name, rule, 0) == set(range(last + 1))


def test_drq_is_the_crop_and_noise_of_its_own_for_each_batch():
    given = pictures().clamp(20, 235)
    made, twin = augmentation("drq")(given, given, generator=generator())
    (plain,) = augmentation("drq_no_noise")(given, generator=generator())
    noise, other = made - plain, twin - plain
    assert abs(float(noise.mean())) < 0.01
    assert abs(float(noise.std()) - 1.0) < 0.01
    assert abs(float((noise * other).mean())) < 0.01


@pytest.mark.parametrize(("rule", "most"), [("paper", 16), ("code", 15)])
def test_rad_is_a_crop_of_the_enlarged_picture(rule, most):
    given = pictures(count=2)
    _, (tops, lefts), made = changed("rad", given, rule)
    for i in range(2):
        place = (np.arange(100) + 0.5) * 84 / 100 - 0.5
        grid = np.meshgrid(place, place, indexing="ij")
        for channel in (0, 8):
            source = given[i, channel].numpy().astype(float)
            large = ndimage.map_coordinates(source, grid, order=1, mode="nearest")
            expected = large[tops[i] : tops[i] + SIZE, lefts[i] : lefts[i] + SIZE]
            assert np.allclose(made[i, channel].numpy(), expected, atol=1e-3)
    assert drawn_values("rad", rule, 1) == set(range(most + 1))


@pytest.mark.parametrize(
    ("name", "rule", "low", "high"),
    [
        ("translate", "paper", -4, 4),
        ("translate", "code", -4, 3),
        ("large_translate", "paper", -12, 12),
        ("large_translate", "code", -8, 7),
    ],
)
def test_translate_pastes_over_a_colour(name, rule, low, high):
    given = pictures()
    _, (down, right, color), made = changed(name, given, rule)
    for i in range(COUNT):
        canvas = np.tile(color[i], 3)[:, None, None] * np.ones((9, SIZE + 24, SIZE + 24))
        top, left = 12 + down[i], 12 + right[i]
        canvas[:, top : top + SIZE, left : left + SIZE] = given[i].numpy()
        assert np.array_equal(made[i].numpy(), canvas[:, 12:-12, 12:-12])
    assert drawn_values(name, rule, 0) == set(range(low, high + 1))


@pytest.mark.parametrize("rule", ["paper", "code"])
@pytest.mark.parametrize("name", ["cutout", "cutout_color"])
def test_cutout_covers_one_rectangle(name, rule):
    given = pictures()
    _, (tops, lefts, heights, widths, color), made = changed(name, given, rule)
    for i in range(COUNT):
        expected = given[i].numpy().copy()
        rows = slice(tops[i], tops[i] + heights[i])
        columns = slice(lefts[i], lefts[i] + widths[i])
        expected[:, rows, columns] = np.tile(color[i], 3)[:, None, None]
        assert np.array_equal(made[i].numpy(), expected)
        if rule == "code":
            assert (tops[i], lefts[i]) == (12 + heights[i], 24 + widths[i])
        else:
            assert tops[i] + heights[i] <= SIZE
            assert lefts[i] + widths[i] <= SIZE
    assert (color == 0).all() == (name == "cutout")
    assert drawn_values(name, rule, 2) == set(range(7, 22))


@pytest.mark.parametrize(("rule", "most"), [("paper", 20), ("code", 10)])
def test_window_keeps_a_square(rule, most):
    given = pictures()
    _, (tops, lefts), made = changed("window", given, rule)
    for i in range(COUNT):
        expected = np.zeros((9, SIZE, SIZE), dtype=np.uint8)
        part = (slice(None), slice(tops[i], tops[i] + 64), slice(lefts[i], lefts[i] + 64))
        expected[part] = given[i].numpy()[part]
        assert np.array_equal(made[i].numpy(), expected)
    assert drawn_values("window", rule, 0) == set(range(most + 1))


def test_rotate_turns_by_quarters():
    given = pictures(count=40)
    _, (turns,), made = changed("rotate", given)
    for i, turn in enumerate(turns):
        assert np.array_equal(made[i].numpy(), np.rot90(given[i].numpy(), turn, axes=(1, 2)))
    assert set(turns.tolist()) == {0, 1, 2, 3}


def test_the_codes_rotate_turns_only_samples_one_and_two():
    given = pictures(count=8)
    seen = {changed("rotate", given, "code", seed)[2].numpy().tobytes() for seed in range(60)}
    raw = given.numpy()
    expected = set()
    for one in (0, 2):
        for two in (0, 3):
            copy = raw.copy()
            copy[1], copy[2] = (np.rot90(raw[i], k, axes=(1, 2)) for i, k in ((1, one), (2, two)))
            expected.add(copy.tobytes())
    assert seen == expected


@pytest.mark.parametrize(
    ("name", "rule", "flip"),
    [
        ("vertical_flip", "paper", (slice(None), slice(None, None, -1), slice(None, None, -1))),
        ("vertical_flip", "code", (slice(None), slice(None, None, -1), slice(None))),
        ("horizontal_flip", "paper", (slice(None), slice(None), slice(None, None, -1))),
    ],
)
def test_flips(name, rule, flip):
    given = pictures(count=40)
    _, (who,), made = changed(name, given, rule)
    for i, is_flipped in enumerate(who > 0):
        raw = given[i].numpy()
        assert np.array_equal(made[i].numpy(), raw[flip] if is_flipped else raw)
    assert 8 < (who > 0).sum() < 32


@pytest.mark.parametrize("first", [0, 1])
def test_jitter_is_contrast_and_hsv(first):
    given = pictures(count=1, size=8)[:, :3]
    (part,) = augmentation("color_jitter").parts
    factors = [torch.tensor([value]) for value in (1.3, 0.7, 1.25, 0.2)]
    drawn = (*factors, torch.tensor([[first]]))
    made = part._alter(given, drawn)[0].numpy()

    def contrast(rgb):
        mean = rgb.mean(axis=(1, 2), keepdims=True)
        return np.clip((rgb - mean) * 1.25 + mean, 0.0, 1.0)

    def recolor(rgb):
        out = np.empty_like(rgb)
        for place in np.ndindex(8, 8):
            hue, saturation, value = colorsys.rgb_to_hsv(*rgb[(slice(None), *place)])
            value, saturation = min(value * 1.3, 1.0), min(saturation * 0.7, 1.0)
            out[(slice(None), *place)] = colorsys.hsv_to_rgb((hue + 0.2) % 1, saturation, value)
        return out

    rgb = given[0].numpy() / 255.0
    expected = recolor(contrast(rgb)) if first else contrast(recolor(rgb))
    assert np.allclose(made / 255.0, expected, atol=1e-5)


def test_jitter_draws_what_the_paper_says():
    (part,) = augmentation("color_jitter").parts
    *factors, hue, _ = draw(part, (20_000, 9, 8, 8))
    for factor in factors:
        assert 0.6 <= factor.min() < 0.61
        assert 1.39 < factor.max() <= 1.4
    assert abs(float(hue.max()) - 0.5 * 255 / 360) < 0.01


def test_network_randomization_is_one_filter_for_all():
    given = pictures(count=3, size=20)
    _, (weight,), made = changed("network_randomization", given)
    for i, frame in ((0, 0), (2, 2)):
        colors = given[i, 3 * frame : 3 * frame + 3].numpy().astype(float)
        for out in range(3):
            expected = sum(
                signal.correlate2d(colors[c], weight[out, c], mode="same") for c in range(3)
            )
            assert np.allclose(made[i, 3 * frame + out].numpy(), expected, atol=1e-2)
    assert (
        abs(
            np.std([changed("network_randomization", given, seed=s)[1] for s in range(60)])
            - np.sqrt(2 / 54)
        )
        < 0.01
    )


def filtered(frame, weight):
    """Returns a frame (3, S, S) filtered in floating point, its border repeated, 0..255."""
    padded = np.pad(frame.numpy() / 255.0, ((0, 0), (1, 1), (1, 1)), mode="edge")
    made = [
        sum(signal.correlate2d(padded[c], weight[out, c], mode="valid") for c in range(3))
        for out in range(3)
    ]
    return 255.0 / (1.0 + np.exp(-np.stack(made)))


def test_a_random_convolution_is_one_filter_for_each_sample():
    one = pictures(count=1, size=20)
    given = torch.cat([one, one, pictures(count=9, size=20, seed=1)])  # more than a chunk
    numbers = torch.randn((11, 3, 3, 3, 3), generator=generator()).numpy()
    (made,) = augmentation("random_convolution")(given, generator=generator())
    for i, first in ((0, 0), (1, 3), (10, 6)):
        frame = slice(first, first + 3)
        expected = filtered(given[i, frame], numbers[i])
        assert np.allclose(made[i, frame].numpy(), expected, atol=1e-2)
    assert made.min() >= 0
    assert made.max() <= 255
    assert (made[0] - made[1]).abs().mean() > 10, "one picture twice is seen in two ways"
    assert abs(numbers.std() - 1.0) < 0.1


def test_the_fused_filters_are_those_of_each_sample():
    (part,) = augmentation("random_convolution").parts
    given = pictures(count=3, size=20)
    (filters,) = draw(part, given.shape)
    frames = given.view(-1, 3, 20, 20) / 255.0
    padded = torch.nn.functional.pad(frames, [1] * 4, mode="replicate")
    fused = torch.sigmoid(shifted_sum(padded, filters.repeat_interleave(3, dim=0))) * 255.0
    made = part._alter(given, (filters,))
    assert torch.allclose(fused.view(given.shape), made, atol=1e-2)


def test_grey_and_gamma():
    given = pictures(count=40, size=12)
    _, (who,), made = changed("grayscale", given)
    frames = given.numpy().reshape(40, 3, 3, 12, 12)
    grey = np.einsum("nfchw,c->nfhw", frames, [0.2989, 0.587, 0.114])[:, :, None]
    expected = np.where(who[:, None, None, None, None], grey, frames).reshape(given.shape)
    assert np.allclose(made.numpy(), expected, atol=1e-3)
    _, (power,), made = changed("gamma", given.clamp(min=1))
    expected = 255 * (given.clamp(min=1).numpy() / 255.0) ** power[:, None, None, None]
    assert np.allclose(made.numpy(), np.clip(expected, 0, 255), rtol=1e-4)


@pytest.mark.parametrize("name", list(AUGMENTATIONS))
def test_every_one_can_be_fused(name):
    """One graph without a break, which is what a GPU gets as a single kernel."""
    (part,) = augmentation(name).parts
    given = pictures(count=2, size=12)
    numbers = part.numbers(given.shape, generator())
    noise = torch.zeros(given.shape) if part.noisy else None
    fused = torch.compile(own_code(part.whole), fullgraph=True, dynamic=False, backend="eager")
    assert torch.equal(fused(given, numbers, noise), part.whole(given, numbers, noise))


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(AUGMENTATIONS))
def test_a_gpu_does_the_same(name):
    (part,) = augmentation(name).parts
    given = pictures()
    numbers = part.numbers(given.shape, generator())
    noise = torch.zeros(given.shape) if part.noisy else None
    there = given.cuda(), numbers.cuda(), None if noise is None else noise.cuda()
    made = _fused(part)(*there).cpu()
    assert torch.allclose(made.float(), part.whole(given, numbers, noise).float(), atol=0.05)


def test_a_chain_does_one_after_the_other():
    given = pictures()
    draws = generator()
    (first,) = augmentation("color_jitter")(given, generator=draws)
    (second,) = augmentation("drq")(first, generator=draws)
    (chained,) = augmentation("color_jitter+drq")(given, generator=generator())
    assert torch.equal(chained, second)


def test_crops_of_larger_pictures():
    given = pictures(size=100)
    assert torch.equal(centre_crop(given, 84), given[:, :, 8:92, 8:92])
    draws = generator()
    top, left = (16 * torch.rand((2, COUNT), generator=draws)).long().tolist()
    made = random_crop(given, 84, generator())
    for i in range(COUNT):
        part = given[i, :, top[i] : top[i] + 84, left[i] : left[i] + 84]
        assert torch.equal(made[i], part)


def test_lengths_scale_with_the_picture():
    (kept,) = augmentation("window")(torch.full((1, 3, 42, 42), 255.0), generator=generator())
    assert int((kept[0, 0] > 0).sum()) == 32 * 32


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: augmentation("drqq"), UnknownNameError, "Did you mean 'drq'"),
        (lambda: augmentation("drq", "text"), UnknownNameError, "unknown rule 'text'"),
        (lambda: augmentation("drq")(generator=generator()), InvalidValueError, "shape"),
        (
            lambda: augmentation("drq")(torch.zeros(2, 4, 8, 8), generator=generator()),
            InvalidValueError,
            r"\(N, 3k, S, S\)",
        ),
        (
            lambda: augmentation("drq")(pictures(), pictures(2), generator=generator()),
            InvalidValueError,
            "give them one shape",
        ),
        (
            lambda: augmentation("drq")(pictures().long(), generator=generator()),
            InvalidValueError,
            "torch.int64",
        ),
    ],
)
def test_mistakes(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_they_are_measured_beside_a_clone():
    row = on_cpu("window")
    assert row.value > 0
    assert row.ratio > 0
    assert row.target == "under 300 ms"
    assert BENCHMARKS.load("augment") is augment
