"""Adam's state as named tensors, and back."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from interverse.models.stage_work import under


def adam_tensors(optimizer: torch.optim.Adam, prefix: str) -> dict[str, Tensor]:
    """Returns the state as `prefix/number/field`, parameters counted in their order."""
    return {
        f"{prefix}/{number}/{name}": value
        for number, fields in optimizer.state_dict()["state"].items()
        for name, value in fields.items()
    }


def restore_adam(optimizer: torch.optim.Adam, tensors: Mapping[str, Tensor], prefix: str) -> None:
    """Puts back what `adam_tensors` gave."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for key, value in under(tensors, prefix).items():
        number, _, name = key.partition("/")
        parameter = parameters[int(number)]
        # Fused updates walk through memory, so moments must lie in the parameter's order.
        place = torch.empty_like(parameter) if value.shape == parameter.shape else None
        held = value.to(parameter.device) if place is None else place.copy_(value)
        optimizer.state[parameter][name] = held.detach()
