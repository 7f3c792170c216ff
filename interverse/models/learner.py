"""One module, or several of the same shape that train on the same batches at once.

Several are held as stacked parameters and computed together (`torch.func`). Because they see the
same images, the first convolution of all of them is a single convolution with more channels, so
three seeds cost little more than one on a GPU that one seed does not fill.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from interverse.models.encoders import PatchDecoder
from interverse.models.layers import norm_statistics, track


@final
class Learner:
    """The weights of one or several modules; every result has a leading axis over them.

    Attributes:
        parameters: trained tensors by name; with a leading member axis if there are several.
        buffers: the others (running statistics).
    """

    def __init__(self, modules: Sequence[nn.Module], device: torch.device) -> None:
        self.members = len(modules)
        order = {"memory_format": torch.channels_last}  # which Torch's types do not know of
        placed = [module.to(device=device, **order) for module in modules]  # type: ignore[call-overload]
        self._module = placed[0]
        if self.members == 1:
            self.parameters: dict[str, Tensor] = dict(self._module.named_parameters())
            self.buffers: dict[str, Tensor] = dict(self._module.named_buffers())
        else:
            self.parameters, self.buffers = stack_module_state(placed)
            self._module = copy.deepcopy(self._module)
            for part in self._module.modules():
                if isinstance(part, PatchDecoder):
                    part.in_cache = False
                elif isinstance(part, nn.BatchNorm2d):
                    part.__class__ = _PlainNorm

    @property
    def module(self) -> nn.Module:
        """The module whose shape all members share; wrap it to say what is computed."""
        return self._module

    def call(self, wrapper: nn.Module, args: tuple[Any, ...], axes: tuple[Any, ...]) -> Any:
        """Returns `wrapper(*args)` for every member, stacked on a new first axis.

        `wrapper` holds `module` under the name `model`. Axes are 0 for an argument that has
        an axis over members, None where all share it.
        """
        if self.members == 1:
            first = (_first(arg, axis) for arg, axis in zip(args, axes, strict=True))
            found = wrapper(*first)
            several = isinstance(found, tuple)
            return tuple(part[None] for part in found) if several else found[None]

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor], *rest: Any) -> Tensor:
            named = {f"model.{k}": v for k, v in (parameters | buffers).items()}
            return functional_call(wrapper, named, rest)

        mapped = torch.vmap(one, in_dims=(0, 0, *axes), randomness="different")
        return mapped(self.parameters, self.buffers, *args)

    def trained(self, parts: Sequence[str]) -> dict[str, Tensor]:
        """Returns the parameters that belong to named parts of the module."""
        return {k: v for k, v in self.parameters.items() if k.split(".")[0] in parts}

    def state(self) -> dict[str, Tensor]:
        """Returns all parameters and lasting buffers with a leading member axis, not copied."""
        lasting = self._module.state_dict().keys()
        named = {k: v.detach() for k, v in (self.parameters | self.buffers).items() if k in lasting}
        return {k: v[None] for k, v in named.items()} if self.members == 1 else named

    @torch.no_grad()
    def load(self, state: Mapping[str, Tensor]) -> None:
        """Puts back what `state` gave."""
        for name, mine in self.state().items():
            mine.copy_(state[name])


class _PlainNorm(nn.BatchNorm2d):
    """Batch norm in plain arithmetic: torch's own on a GPU has no rule for stacked members."""

    def forward(self, maps: Tensor) -> Tensor:
        """Returns the maps (B, C, H, W) normed over batch and pixels."""
        if self.training:
            wide = maps.float()
            mean = wide.mean((0, 2, 3))
            variance = (wide - mean[:, None, None]).square().mean((0, 2, 3))
            count = maps.numel() // maps.shape[1]
            track(self, mean, variance * (count / (count - 1)))
        else:
            own = norm_statistics(self)
            mean, variance = own.mean, own.variance
        scale = self.weight * torch.rsqrt(variance + self.eps)
        shift = self.bias - mean * scale
        return maps * scale[:, None, None].to(maps.dtype) + shift[:, None, None].to(maps.dtype)


def member(state: Mapping[str, Tensor], index: int) -> dict[str, Tensor]:
    """Returns the state dict of one member."""
    return {name: values[index].clone() for name, values in state.items()}


def _first(arg: Any, axis: Any) -> Any:
    """Returns an argument of the only member: the leading axis taken off where there is one."""
    if axis is None:
        return arg
    if isinstance(arg, tuple):
        parts = axis if isinstance(axis, tuple) else (axis,) * len(arg)
        return type(arg)(*(_first(a, x) for a, x in zip(arg, parts, strict=True)))
    return None if arg is None else arg[0]
