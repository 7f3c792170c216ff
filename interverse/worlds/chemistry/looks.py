"""What one sees of chemistry: pure functions from state to pixels."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace, device

from interverse.worlds.palette import to_bytes

Array = Any  # a NumPy array or a Torch tensor


def rgb_of(color: Array, palette: Array) -> Array:
    """Returns (R, n, 3) uint8 for colours (R, n) and palettes (R, k, 3) in 0..1."""
    xp = array_namespace(color)
    world = xp.arange(color.shape[0], device=device(color))[:, None]
    return to_bytes(palette)[world, color]
