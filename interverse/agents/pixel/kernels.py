"""Kernels of the pixel agents for a GPU, in Triton; nothing else imports this where Triton lacks.

Each does in one pass over memory what Torch does in several; the tests run them in Triton's
interpreter against the plain operations.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_PADDED = 16  # channels of three stacked frames, in a multiple of eight for the tensor cores
_PIXELS, _ROWS, _PROGRAMS = 256, 128, 528


@triton.jit  # type: ignore[untyped-decorator]
def _pixel(source, place, inside, noise, channel: tl.constexpr, area: tl.constexpr):  # type: ignore[no-untyped-def]
    """One channel of some pixels, noise added, on 0..1."""
    value = tl.load(source + channel * area + place, mask=inside, other=0).to(tl.float32)
    return (tl.minimum(tl.maximum(value + noise, 0.0), 255.0) / 255.0).to(tl.bfloat16)


@triton.jit  # type: ignore[untyped-decorator]
def _crops(  # type: ignore[no-untyped-def]
    pictures, stride, numbers, seed, out, count, moved, cut,
    side: tl.constexpr, pad: tl.constexpr, noisy: tl.constexpr, pixels: tl.constexpr,
):  # fmt: skip
    area: tl.constexpr = side * side
    row = tl.program_id(0)
    at = tl.program_id(1) * pixels + tl.arange(0, pixels)
    inside = at < area
    shifted = row < moved
    picture = tl.where(shifted, row, row - moved + cut).to(tl.int64)
    reach = 2 * pad + 1
    down = tl.floor(tl.load(numbers + picture) * reach).to(tl.int32) - pad
    right = tl.floor(tl.load(numbers + count + picture) * reach).to(tl.int32) - pad
    y = tl.minimum(tl.maximum(at // side + tl.where(shifted, down, 0), 0), side - 1)
    x = tl.minimum(tl.maximum(at % side + tl.where(shifted, right, 0), 0), side - 1)
    place = y * side + x
    source = pictures + picture * stride
    zero = tl.zeros([pixels], tl.float32)
    n0, n1, n2, n3, n4, n5, n6, n7, n8 = zero, zero, zero, zero, zero, zero, zero, zero, zero
    if noisy:
        key = tl.load(seed)
        first = (row * area + at) * 3
        scale = tl.where(shifted, 1.0, 0.0)
        n0, n1, n2, n3 = tl.randn4x(key, first)
        n4, n5, n6, n7 = tl.randn4x(key, first + 1)
        n8, _a, _b, _c = tl.randn4x(key, first + 2)
        n0, n1, n2 = n0 * scale, n1 * scale, n2 * scale
        n3, n4, n5 = n3 * scale, n4 * scale, n5 * scale
        n6, n7, n8 = n6 * scale, n7 * scale, n8 * scale
    c0 = _pixel(source, place, inside, n0, 0, area)
    c1 = _pixel(source, place, inside, n1, 1, area)
    c2 = _pixel(source, place, inside, n2, 2, area)
    c3 = _pixel(source, place, inside, n3, 3, area)
    c4 = _pixel(source, place, inside, n4, 4, area)
    c5 = _pixel(source, place, inside, n5, 5, area)
    c6 = _pixel(source, place, inside, n6, 6, area)
    c7 = _pixel(source, place, inside, n7, 7, area)
    c8 = _pixel(source, place, inside, n8, 8, area)
    none = zero.to(tl.bfloat16)
    # The last axis that a join adds is the fastest: the highest bit of the channel comes first.
    even = tl.join(tl.join(tl.join(c0, c8), tl.join(c4, none)),
                   tl.join(tl.join(c2, none), tl.join(c6, none)))  # fmt: skip
    odd = tl.join(tl.join(tl.join(c1, none), tl.join(c5, none)),
                  tl.join(tl.join(c3, none), tl.join(c7, none)))  # fmt: skip
    joined = tl.reshape(tl.join(even, odd), [pixels, 16])
    places = (row.to(tl.int64) * area + at)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out + places, joined, mask=inside[:, None])


def crops(pictures: Tensor, numbers: Tensor, seed: Tensor | None, moved: int, cut: int) -> Tensor:
    """Returns shifted pictures and then others as they are, on 0..1, ready for a convolution.

    Args:
        pictures: uint8 (N, 9, S, S), each picture in one piece.
        numbers: (2, N) in [0, 1): where each is cropped after its border was repeated four times.
        seed: a whole number on the device, of the normal noise of the shifted ones; none without.
        moved: the first so many are shifted.
        cut: the pictures from here on follow as they are.
    """
    count, side = len(pictures), pictures.shape[-1]
    rows = moved + count - cut
    out = torch.empty((rows, side, side, _PADDED), dtype=torch.bfloat16, device=pictures.device)
    grid = (rows, triton.cdiv(side * side, _PIXELS))
    _crops[grid](
        pictures, pictures.stride(0), numbers, numbers if seed is None else seed, out, count, moved,
        cut, side=side, pad=4, noisy=seed is not None, pixels=_PIXELS,
    )  # fmt: skip
    return out.permute(0, 3, 1, 2)


@triton.jit  # type: ignore[untyped-decorator]
def _rectified(  # type: ignore[no-untyped-def]
    given, out, kept, sums, count,
    channels: tl.constexpr, rows: tl.constexpr, rounds: tl.constexpr,
):  # fmt: skip
    one, programs = tl.program_id(0), tl.num_programs(0)
    column = tl.arange(0, channels)[None, :]
    total = tl.zeros([rows, channels], tl.float32)
    for turn in range(rounds):
        row = ((turn * programs + one) * rows + tl.arange(0, rows))[:, None]
        place, inside = row * channels + column, row < count
        gradient = tl.load(given + place, mask=inside, other=0.0)
        gradient = tl.where(tl.load(out + place, mask=inside, other=0.0) > 0.0, gradient, 0.0)
        tl.store(kept + place, gradient, mask=inside)
        total += gradient.to(tl.float32)
    tl.store(sums + one * channels + tl.arange(0, channels), tl.sum(total, axis=0))


def rectified(given: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the gradient before a ReLU and that of the bias, of maps (N, C, H, W) channels last.

    Args:
        given: the gradient after the ReLU.
        out: what the ReLU gave.
    """
    channels = out.shape[1]
    count = out.numel() // channels
    kept = torch.empty_like(out)
    sums = torch.empty((_PROGRAMS, channels), dtype=torch.float32, device=out.device)
    rounds = triton.cdiv(count, _PROGRAMS * _ROWS)
    _rectified[(_PROGRAMS,)](
        given, out, kept, sums, count, channels=channels, rows=_ROWS, rounds=rounds
    )
    return kept, sums.sum(0)


@triton.jit  # type: ignore[untyped-decorator]
def _adam(  # type: ignore[no-untyped-def]
    weight, gradient, first, second, steps, count, rate, beta1, beta2, log1, log2, tiny, decay,
    block: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    step = tl.load(steps)
    w = tl.load(weight + at, mask=inside)
    g = tl.load(gradient + at, mask=inside) + decay * w
    m = tl.load(first + at, mask=inside)
    v = tl.load(second + at, mask=inside)
    m += (1.0 - beta1) * (g - m)
    v = beta2 * v + (1.0 - beta2) * g * g
    fair1 = 1.0 - tl.exp2(step * log1)
    fair2 = 1.0 - tl.exp2(step * log2)
    w -= rate / fair1 * m / (tl.sqrt(v) / tl.sqrt(fair2) + tiny)
    tl.store(weight + at, w, mask=inside)
    tl.store(first + at, m, mask=inside)
    tl.store(second + at, v, mask=inside)


def adam(weight: Tensor, gradient: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> None:
    """Makes one step of Adam on a tensor; `state` and `group` are those of Torch's optimiser."""
    state["step"] += 1.0
    count, betas = weight.numel(), group["betas"]
    _adam[(triton.cdiv(count, 2048),)](
        weight, gradient, state["exp_avg"], state["exp_avg_sq"], state["step"], count, group["lr"],
        *betas, *map(math.log2, betas), group["eps"], group["weight_decay"], block=2048,
    )  # fmt: skip
