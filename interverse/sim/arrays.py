"""Where arrays live: NumPy, Torch on the CPU, or a GPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from interverse.errors import InvalidValueError, explain, missing_extra

Array = Any  # a NumPy array or a Torch tensor


def namespace(*arrays: Array) -> Any:
    """Returns the functions for these arrays: NumPy itself, at once, or what the standard finds.

    >>> namespace(np.zeros(3)) is np
    True
    """
    if all(isinstance(array, np.ndarray) for array in arrays):
        return np
    return array_namespace(*arrays)


def giver(device: str) -> Callable[[NDArray[Any]], Array]:
    """Returns the function that turns a fresh NumPy array into one of the device's kind.

    It shares NumPy's memory: for engines that compute on the CPU.
    """
    if device == "cpu":
        return np.asarray
    try:
        import torch
    except ImportError as error:
        raise missing_extra("torch", "torch") from error

    def give(array: NDArray[Any]) -> Array:
        return torch.from_numpy(array if array.flags.writeable else array.copy())

    return give


def converter(device: str) -> Callable[[Any], Array]:
    """Returns the function that gives an array of the device's kind, fresh where it must be."""
    if device == "cpu":
        return np.asarray
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise missing_extra("torch", "torch") from error
    where = "cpu" if device == "torch" else device
    if where.startswith("cuda") and not torch.cuda.is_available():
        raise InvalidValueError(
            explain(f"device is {device!r}, but there is no CUDA device", allowed="cpu, torch")
        )

    def convert(values: Any) -> Array:
        if isinstance(values, torch.Tensor):
            return values.to(where)
        return torch.as_tensor(np.array(values), device=where)

    return convert


def to_numpy(array: Array) -> NDArray[Any]:
    """Returns the array as NumPy, copied only from a GPU."""
    return array if isinstance(array, np.ndarray) else np.asarray(array.cpu())
