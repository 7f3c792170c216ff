"""Products of the encoder in half precision on a GPU: fewer and better filled kernels.

A CPU, full precision and compiled networks never come here. Gradients are those of the plain
operations, summed in single precision.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, final

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional

_ALIGNED = 8  # rows and columns that tensor cores take in whole
_MOST_PARTS = 64
_WIDE = 2**18  # numbers of a tensor that is worth a launch of its own
_log = logging.getLogger(__name__)
_fuses = True  # until the library refuses


@functools.cache
def kernels() -> Any:
    """Returns the module of kernels written for a GPU, or nothing where Triton lacks."""
    try:
        from interverse.agents.pixel import kernels as found
    except ImportError as error:
        _log.warning("Torch's own kernels are used, slower: %s", error)
        return None
    return found


def in_half(x: Tensor) -> bool:
    """Returns whether pictures or maps are in half precision on a GPU, outside a compiler."""
    return x.is_cuda and x.dtype == torch.bfloat16 and not torch.compiler.is_compiling()


@final
class ConvolveRelu(torch.autograd.Function):
    """Convolution, bias and ReLU in one kernel."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: tuple[int, int]
    ) -> Tensor:
        """Returns the activations, laid out as the pictures are."""
        held = x.new_zeros(len(weight), *weight.shape[2:], x.shape[1]).permute(0, 3, 1, 2)
        held[:, : weight.shape[1]].copy_(weight)
        out = _convolve_relu(x, held, bias.to(x.dtype), stride)
        ctx.save_for_backward(x, held, out)
        ctx.stride, ctx.given = stride, weight.shape[1]
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None]:
        """Returns the gradients of pictures, weight and bias."""
        x, weight, out = ctx.saved_tensors
        (given,) = gradients
        given = given.contiguous(memory_format=torch.channels_last)
        given, of_bias = _rectified(given, out)
        wanted = [ctx.needs_input_grad[0], True, False]
        geometry = (list(ctx.stride), [0, 0], [1, 1], False, [0, 0], 1)
        back, of_weight, _ = torch.ops.aten.convolution_backward(
            given, x, weight, [len(weight)], *geometry, wanted
        )
        return back, of_weight[:, : ctx.given].float(), of_bias, None


def _rectified(given: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the gradient before a ReLU, and that of the bias."""
    whole = out.shape[1].bit_count() == 1  # Triton counts in powers of two
    if whole and in_half(out) and (made := kernels()) is not None:
        return made.rectified(given, out)
    given = torch.ops.aten.threshold_backward(given, out, 0)
    return given, given.sum((0, 2, 3), dtype=torch.float32)


def _convolve_relu(x: Tensor, weight: Tensor, bias: Tensor, stride: tuple[int, int]) -> Tensor:
    global _fuses
    if _fuses:
        try:
            return torch.cudnn_convolution_relu(x, weight, bias, list(stride), [0, 0], [1, 1], 1)
        except RuntimeError as error:
            _fuses = False
            _log.warning("convolution and ReLU run apart, slower: %s", error)
    return functional.conv2d(x, weight, bias, stride).relu_()


@final
class LongProduct(torch.autograd.Function):
    """Maps times the transpose of a weight over flat maps, (N, outputs).

    The inner side is cut in parts that are summed afterwards: a product of few rows, few columns
    and 39,200 in between leaves most of a GPU idle. Maps stay as they lie; the weight is turned.
    """

    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor) -> Tensor:
        """Returns the product in single precision."""
        flat = maps.permute(0, 2, 3, 1).reshape(len(maps), -1)  # a view of channels last
        channels, height, width = maps.shape[1:]
        spare = -len(weight) % _ALIGNED
        turned = maps.new_zeros(len(weight) + spare, height, width, channels)
        seen = weight.view(len(weight), channels, height, width)
        turned[: len(weight)].copy_(seen.permute(0, 2, 3, 1))
        held = turned.view(len(turned), -1)
        ctx.save_for_backward(flat, held)
        ctx.shape, ctx.rows = maps.shape, len(weight)
        fit = (n for n in range(_MOST_PARTS, 1, -1) if flat.shape[1] % (n * _ALIGNED) == 0)
        count = next(fit, 1)
        left = flat.view(len(flat), count, -1).transpose(0, 1)
        right = held.view(len(held), count, -1).permute(1, 2, 0)
        return torch.bmm(left, right).sum(0, dtype=torch.float32)[:, : len(weight)]

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, Tensor]:
        """Returns the gradients of maps and weight."""
        flat, held = ctx.saved_tensors  # type: ignore[attr-defined]
        count, channels, height, width = ctx.shape  # type: ignore[attr-defined]
        rows: int = ctx.rows  # type: ignore[attr-defined]
        given = functional.pad(gradients[0].to(flat.dtype), (0, len(held) - rows))
        back = None
        if ctx.needs_input_grad[0]:  # type: ignore[attr-defined]
            back = (given @ held).view(count, height, width, channels).permute(0, 3, 1, 2)
        of_weight = (given.T @ flat)[:rows].view(rows, height, width, channels)
        turned = torch.empty(rows, channels, height, width, device=flat.device)
        turned.copy_(of_weight.permute(0, 3, 1, 2))
        return back, turned.view(rows, -1)


@final
class WideAdam(torch.optim.Adam):
    """Adam that fills a GPU with one large tensor: Torch's fused one gives it a few blocks."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Makes one step; small tensors go through Torch's own."""
        made = kernels()
        wide = [
            (one, one.grad, group)
            for group in self.param_groups
            for one in group["params"]
            if made is not None and one.grad is not None and one.numel() >= _WIDE
        ]
        for one, _, _ in wide:
            one.grad = None
        super().step(closure)
        for one, gradient, group in wide:
            if not self.state[one]:
                moments = {name: torch.zeros_like(one) for name in ("exp_avg", "exp_avg_sq")}
                self.state[one] = {"step": torch.zeros((), device=one.device), **moments}
            made.adam(one, gradient.contiguous(), self.state[one], group)
            one.grad = gradient
