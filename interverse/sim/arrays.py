"""Arrays of an engine's kind: NumPy, or Torch on the CPU sharing NumPy's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.errors import missing_extra

Array = Any  # a NumPy array or a Torch tensor


def giver(device: str) -> Callable[[NDArray[Any]], Array]:
    """Returns the function that turns a fresh NumPy array into one of the device's kind."""
    if device == "cpu":
        return np.asarray
    try:
        import torch
    except ImportError as error:
        raise missing_extra("torch", "torch") from error

    def give(array: NDArray[Any]) -> Array:
        return torch.from_numpy(array if array.flags.writeable else array.copy())

    return give
