"""Noise that repeats at the borders of a square, drawn once a process for each description."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float32]
"""Values 0 to 1, (row, column)."""


@functools.lru_cache(maxsize=256)
def smooth(size: int, rows: int, columns: int, seed: int) -> Field:
    """Returns value noise of so many cells down and across, smoothly joined."""
    lattice = np.random.default_rng([seed, rows, columns]).random((rows, columns), np.float32)
    low, high, share = _cells(size, rows)
    lines = lattice[low] * (1 - share)[:, None] + lattice[high] * share[:, None]
    low, high, share = _cells(size, columns)
    return lines[:, low] * (1 - share) + lines[:, high] * share


@functools.lru_cache(maxsize=256)
def fractal(size: int, cells: int, seed: int, octaves: int = 4, stretch: int = 1) -> Field:
    """Returns noise of several sizes, each half as large and half as strong, spread over 0 to 1.

    Args:
        size: of the square, pixels.
        cells: across, in the coarsest noise.
        seed: which noise.
        octaves: how many sizes.
        stretch: how many times longer than high a cell is.
    """
    total = np.zeros((size, size), np.float32)
    for octave in range(octaves):
        rows = min(cells * 2**octave, size)
        columns = max(rows // stretch, 1)
        total += smooth(size, rows, columns, seed + 101 * octave) / 2**octave
    total -= total.min()
    return total / max(float(total.max()), 1e-6)


@functools.lru_cache(maxsize=128)
def grain(size: int, seed: int) -> Field:
    """Returns independent values, one a pixel."""
    return np.random.default_rng([seed, size]).random((size, size), np.float32)


@functools.lru_cache(maxsize=16)
def axes(size: int) -> tuple[Field, Field]:
    """Returns x to the right and y upwards of each pixel's centre, 0 to 1."""
    line = ((np.arange(size) + 0.5) / size).astype(np.float32)
    return np.broadcast_to(line, (size, size)), np.broadcast_to(line[::-1, None], (size, size))


def _cells(size: int, count: int) -> tuple[np.ndarray, np.ndarray, Field]:
    place = np.arange(size, dtype=np.float32) * np.float32(count / size)
    low = place.astype(int)
    share = place - low
    return low % count, (low + 1) % count, share * share * (3 - 2 * share)
