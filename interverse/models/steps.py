"""Precision and devices of the computation, and the state of Adam by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

import torch
from torch import Tensor

from interverse.core.errors import InvalidValueError
from interverse.core.rng import generator

Precision = Literal["float32", "tf32", "bf16"]


def autocast(device: str, precision: Precision) -> Any:
    """Returns the context in which convolutions run in the asked precision."""
    if precision != "bf16":
        return nullcontext()
    # The cache of cast weights would outlive the update inside a recorded graph.
    return torch.autocast(device, dtype=torch.bfloat16, cache_enabled=False)


@contextmanager
def matmul_precision(precision: Precision, *, tune: bool = True) -> Iterator[None]:
    """Lets float32 products use the tensor cores (unless float32 is asked), then restores.

    `tune` lets the library try its convolution kernels on each new shape, which pays in training.
    """
    before = torch.get_float32_matmul_precision()
    tuned, exact = torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    torch.backends.cudnn.allow_tf32 = precision != "float32"
    torch.backends.cudnn.benchmark = tune
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
        torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = tuned, exact


def check_device(device: str, name: str = "device") -> None:
    """Raises for a device that Torch does not know or cannot reach."""
    try:
        kind = torch.device(device).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise InvalidValueError(f"{name} is {device!r}", allowed="cpu, cuda or cuda:N")
    if kind == "cuda" and not torch.cuda.is_available():
        raise InvalidValueError(
            f"{name} is {device!r}, but Torch finds no GPU",
            fix="Pass --device cpu, or look at `interverse doctor`",
        )


@contextmanager
def seeded(name: str, seed: int) -> Iterator[None]:
    """Makes torch's own generator a function of a name and a seed, for as long as it lasts."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(generator(seed=seed, name=name).integers(2**62)))
        yield


def under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Returns the tensors whose names start with a prefix and a slash, without it."""
    start = prefix + "/"
    return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}


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
