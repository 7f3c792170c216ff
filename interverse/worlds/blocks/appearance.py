"""Looks and weights of blocks: intensities (observed) and palette entries (unobserved).

Pure functions over arrays with a leading world axis, on NumPy and Torch alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, device, namespace
from interverse.core.rng import generator
from interverse.worlds.palette import NEW_QUALITATIVE, QUALITATIVE


def intensity(weights: Array, uniforms: Array, spread: float | None) -> Array:
    """Returns (N, n) intensities in [0, 1], 1 the darkest, that grow with the weights 1..n.

    Each is a function of the block's own weight: evenly spaced, jittered by up to `spread` spacings
    and reflected at 0 and 1; with `spread` None, on a line through the sorted numbers.

    Args:
        weights: (N, n); those below 1 or above n look like 1 or n.
        uniforms: (N, n) numbers in [0, 1), the noise.
        spread: see above.
    """
    xp = namespace(weights, uniforms)
    last = max(weights.shape[1] - 1, 1)
    rank = xp.clip(weights - 1.0, 0.0, float(weights.shape[1] - 1))
    if spread is None:
        return _along(xp.sort(uniforms, axis=1), rank)
    moved = rank / last + (2.0 * uniforms - 1.0) * (spread / last)
    return 1.0 - xp.abs(1.0 - xp.abs(moved))


def _along(knots: Array, places: Array) -> Array:
    """Returns the values at places 0..n-1 of the line through (N, n) knots."""
    xp = namespace(knots, places)
    world = xp.arange(knots.shape[0], device=device(knots))[:, None]
    below = xp.astype(xp.floor(places), xp.int64)
    above = xp.astype(xp.ceil(places), xp.int64)
    low, high = knots[world, below], knots[world, above]
    return low + (places - below) * (high - low)


def entries(colormap: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the colours (P, 3) and weights (P,) of a palette: the nine, then the new ones.

    A training colour weighs its index 0..8; a new colour its index in the second palette and a
    half.
    """
    base, new = QUALITATIVE[colormap], NEW_QUALITATIVE[colormap]
    weights = [np.arange(len(base), dtype=np.float64), np.arange(len(new)) + 0.5]
    return np.concatenate([base, new]), np.concatenate(weights)


def candidates(colormap: str, new: int, *, seed: int, by_weight: bool) -> NDArray[np.int64]:
    """Returns the palette entries that blocks may have, in the order the blocks come in."""
    base = len(QUALITATIVE[colormap])
    rng = generator(seed=seed, name=f"few_shot/{colormap}")
    chosen = rng.permutation(len(NEW_QUALITATIVE[colormap]))[:new]
    both = np.concatenate([np.arange(base), base + np.sort(chosen)]).astype(np.int64)
    _, weights = entries(colormap)
    return both[np.argsort(weights[both], kind="stable")] if by_weight else both


def choose(uniforms: Array, objects: int) -> Array:
    """Returns (N, objects) distinct places below P, ascending, any set as likely, for (N, P)."""
    xp = namespace(uniforms)
    order = xp.argsort(uniforms, axis=1, stable=True)
    return xp.sort(order[:, :objects], axis=1)
