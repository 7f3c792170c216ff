"""Parts of a landscape: ridges, layers with haze, ground in perspective, mirrors of water.

A landscape wraps round from left to right (the sky cube shows it on four sides), not from top to
bottom. Heights are rows as fractions of the side, 0 at the top.
"""

from __future__ import annotations

import numpy as np

from interverse.art.textures import Colour, FloatArray, mix, smoothstep

_SOFT = 0.006  # of an edge, fraction of the side
_FADE = 0.15  # of the side, over which ground of the right edge fades into that of the left


def places(size: int) -> FloatArray:
    """Returns (size,) centres of rows or columns as fractions of the side."""
    return (np.arange(size) + 0.5) / size


def ridge(
    rng: np.random.Generator, size: int, beta: float, *, lowest: int = 1, highest: int = 128
) -> FloatArray:
    """Returns a wrapping profile (size,), zero mean and unit deviation, of power k^-beta."""
    k = np.arange(size // 2 + 1)
    kept = (k >= lowest) & (k <= highest)
    amplitude = np.where(kept, np.maximum(k, 1.0) ** (-beta / 2), 0.0)
    parts = rng.standard_normal((2, size // 2 + 1))
    line = np.fft.irfft((parts[0] + 1j * parts[1]) * amplitude, n=size)
    return (line - line.mean()) / max(float(line.std()), 1e-9)


def below(profile: FloatArray, size: int, soft: float = _SOFT) -> FloatArray:
    """Returns a mask (size, size): 1 below a profile of rows, 0 above, soft between."""
    return smoothstep(places(size)[:, None] - profile[None, :], -soft / 2, soft / 2)


def over(image: FloatArray, profile: FloatArray, body: FloatArray | Colour) -> FloatArray:
    """Returns the picture with a colour, or a picture, laid over it below a profile of rows."""
    size = len(image)
    body = np.broadcast_to(np.asarray(body, dtype=np.float64), image.shape)
    # Only the rows that the profile crosses need mixing; that is most of the cost of a landscape.
    top = int(np.clip(np.floor(profile.min() * size) - 3, 0, size))
    end = int(np.clip(np.ceil(profile.max() * size) + 3, 0, size))
    out = image.copy()
    mask = smoothstep(places(size)[top:end, None] - profile[None, :], -_SOFT / 2, _SOFT / 2)
    out[top:end] = mix(mask, image[top:end], body[top:end])
    out[end:] = body[end:]
    return out


def lay(image: FloatArray, mask: FloatArray, colour: FloatArray | Colour) -> FloatArray:
    """Returns the picture with a colour, or a picture, laid over it where the mask is 1."""
    return mix(mask, image, np.broadcast_to(np.asarray(colour, dtype=np.float64), image.shape))


def blend(a: Colour | FloatArray, b: Colour | FloatArray, share: float) -> FloatArray:
    """Returns the colour that lies `share` of the way from a to b."""
    return np.asarray(a) * (1 - share) + np.asarray(b) * share


def hazed(image: FloatArray, haze: Colour, share: float) -> FloatArray:
    """Returns the picture behind so much haze; it writes into what it is given."""
    image *= 1 - share
    image += np.asarray(haze) * share
    return image


def ground(
    image: FloatArray, tile: FloatArray, horizon: float, *, near: float, wraps: bool = False
) -> FloatArray:
    """Returns the picture with a tile spread on a plane below the horizon.

    Args:
        image: (size, size, 3); its row at the horizon gives the haze that far ground fades into.
        tile: (side, side, 3), a floor that wraps.
        horizon: row of the horizon.
        near: how many tiles lie across the picture's lower edge.
        wraps: whether the left edge goes on where the right one ends: lines towards the horizon
            cannot, so the ground beyond the right edge fades into that at the left.
    """
    size = len(image)
    top = min(int(horizon * size) + 1, size - 1)
    drop = places(size)[top:] - horizon
    depth = (1.0 - horizon) / drop[:, None]  # 1 at the lower edge
    more = int(_FADE * size) if wraps else 0
    across = (np.arange(size + more) + 0.5) / size - 0.5
    seen = _spread(tile, across, depth, near)
    if wraps:
        share = smoothstep(places(more), 0.0, 1.0)[None, :]
        left = mix(np.broadcast_to(share, (len(seen), more)), seen[:, size:], seen[:, :more])
        seen = np.concatenate([left, seen[:, more:size]], axis=1)
    # Far off, a pixel holds many tiles: their mean, and then the haze.
    flat = smoothstep(np.log(depth * near), np.log(3.5), np.log(20.0))
    seen = mix(flat, seen, np.broadcast_to(tile.mean(axis=(0, 1)), seen.shape))
    haze = 0.55 * smoothstep(depth, 4.0, 60.0)
    seen = mix(
        np.broadcast_to(haze, seen.shape[:2]), seen, image[top - 1][None].repeat(len(drop), 0)
    )
    out = image.copy()
    out[top:] = seen
    return out


def _spread(tile: FloatArray, across: FloatArray, depth: FloatArray, near: float) -> FloatArray:
    """Returns what of a tiled plane is seen at these places across, (rows, columns, 3)."""
    side = len(tile)
    columns = np.floor(across[None, :] * depth * near * side).astype(np.int64) % side
    rows = np.floor(1.6 * near * depth * side).astype(np.int64) % side
    return tile[np.broadcast_to(rows, columns.shape), columns]


def mirror(
    image: FloatArray, waterline: float, waves: FloatArray, tint: Colour, *, rough: float
) -> FloatArray:
    """Returns the picture with what stands above the waterline mirrored below it.

    Args:
        image: (size, size, 3).
        waterline: row at which the mirror begins.
        waves: (size, size), a field of unit deviation that bends the mirror.
        tint: colour of deep water.
        rough: how far waves throw the mirror image, fraction of the side.
    """
    size = len(image)
    start = int(waterline * size)
    depth = np.arange(size - start)[:, None]
    shift = waves[start:] * rough * size * (0.25 + depth / size * 3)
    rows = np.clip(np.rint(start - 1 - depth + shift), 0, start - 1).astype(np.int64)
    seen = image[rows, np.arange(size)[None, :]]
    deep = 0.18 + 0.35 * depth / max(size - start, 1) + 0.04 * waves[start:]
    out = image.copy()
    out[start:] = mix(deep, seen * 0.92, np.broadcast_to(tint, seen.shape))
    return np.clip(out, 0, 1)
