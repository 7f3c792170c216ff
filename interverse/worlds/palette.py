"""Colours of the grid worlds as data: sequential tables and qualitative palettes, rgb in 0..1."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, device, namespace
from interverse.core.errors import InvalidValueError, check_name

Colors = NDArray[np.float64]  # (entries, 3), rgb in 0..1

_ENTRIES = 256
# Six hexadecimal digits a colour. Sequential: nine equally spaced anchors, light to dark.
_ANCHORS = {
    "Blues": "f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b",
    "Reds": "fff5f0 fee0d2 fcbba1 fc9272 fb6a4a ef3b2c cb181d a50f15 67000d",
    "Greens": "f7fcf5 e5f5e0 c7e9c0 a1d99b 74c476 41ab5d 238b45 006d2c 00441b",
}
_SWATCHES = {
    "Set1": "e41a1c 377eb8 4daf4a 984ea3 ff7f00 ffff33 a65628 f781bf 999999",
    "Set3": "8dd3c7 ffffb3 bebada fb8072 80b1d3 fdb462 b3de69 fccde5 d9d9d9 bc80bd ccebc5 ffed6f",
    "Pastel1": "fbb4ae b3cde3 ccebc5 decbe4 fed9a6 ffffcc e5d8bd fddaec f2f2f2",
    "Pastel2": "b3e2cd fdcdac cbd5e8 f4cae4 e6f5c9 fff2ae f1e2cc cccccc",
    # Blue, green, yellow, grey, red: the colours that fade into each other in delayed chemistry.
    "Primary": "0000ff 00ff00 ffff00 808080 ff0000",
}


# Words for colours, to tell entries of a palette apart in a list.
_WORDS = {
    "white": "ffffff",
    "grey": "999999",
    "black": "000000",
    "red": "e41a1c",
    "pink": "f781bf",
    "orange": "ff7f00",
    "brown": "a65628",
    "yellow": "ffff33",
    "green": "4daf4a",
    "blue": "377eb8",
    "purple": "984ea3",
}


def _frozen(table: Colors) -> Colors:
    table.flags.writeable = False
    return table


def _colors(text: str) -> Colors:
    return np.array([list(bytes.fromhex(word)) for word in text.split()]) / 255.0


def _ramp(anchors: Colors) -> Colors:
    at = np.linspace(0.0, 1.0, _ENTRIES)
    knots = np.linspace(0.0, 1.0, len(anchors))
    return np.stack([np.interp(at, knots, channel) for channel in anchors.T], axis=1)


SEQUENTIAL: Mapping[str, Colors] = {
    name: _frozen(_ramp(_colors(text))) for name, text in _ANCHORS.items()
}  # name -> (256, 3); `shade` looks up
SWATCHES: Mapping[str, Colors] = {name: _frozen(_colors(text)) for name, text in _SWATCHES.items()}
# The published names: a palette of nine, and the one that few-shot tests take new colours from.
QUALITATIVE: Mapping[str, Colors] = {"Sets": SWATCHES["Set1"], "Pastels": SWATCHES["Pastel1"]}
NEW_QUALITATIVE: Mapping[str, Colors] = {"Sets": SWATCHES["Set3"], "Pastels": SWATCHES["Pastel2"]}
_ALL = {**QUALITATIVE, **SWATCHES, **SEQUENTIAL}


def shade(intensities: Array, name: str) -> Array:
    """Returns (..., 3) colours in 0..1 for intensities in [0, 1]; 1 is the darkest.

    >>> shade(np.array([0.0, 1.0]), "Blues").round(2).tolist()
    [[0.97, 0.98, 1.0], [0.03, 0.19, 0.42]]
    """
    check_name("sequential colormap", name, SEQUENTIAL)
    xp = namespace(intensities)
    table = xp.asarray(SEQUENTIAL[name].copy(), device=device(intensities))
    entry = xp.astype(xp.floor(intensities * _ENTRIES), xp.int64)
    return table[xp.clip(entry, 0, _ENTRIES - 1)]


def color_labels(colors: Colors) -> tuple[str, ...]:
    """Returns a name for each colour of a palette: its place and the nearest colour word.

    >>> color_labels(_colors("e41a1c 0000ff"))
    ('0 red', '1 blue')
    """
    known = np.stack([_colors(code)[0] for code in _WORDS.values()])
    nearest = np.linalg.norm(colors[:, None] - known, axis=-1).argmin(axis=1)
    words = list(_WORDS)
    return tuple(f"{place} {words[n]}" for place, n in enumerate(nearest))


def to_bytes(colors: Array) -> Array:
    """Returns colours in 0..1 as uint8, to the nearest."""
    xp = namespace(colors)
    return xp.astype(xp.round(colors * 255.0), xp.uint8)


def painted(color: Array, palettes: Array) -> Array:
    """Returns (N, n, 3) uint8 for entries (N, n) of each world's own palette (N, k, 3) in 0..1."""
    xp = namespace(color)
    world = xp.arange(color.shape[0], device=device(color))[:, None]
    return to_bytes(palettes)[world, color]


def spread(name: str, count: int) -> Colors:
    """Returns `count` colours (count, 3) spread evenly over a colormap, its last entry first.

    "Primary" is the exception: its first `count` colours, in their order.

    >>> (spread("Sets", 5) * 255).round().astype(int)[:2].tolist()  # grey, brown
    [[153, 153, 153], [166, 86, 40]]
    """
    table = named(name)
    if count > len(table):
        raise InvalidValueError(
            f"colors is {count}, but cmap {name!r} has {len(table)} distinct ones",
            allowed=f"colors up to {len(table)}, or another cmap: {', '.join(_ALL)}",
        )
    if name == "Primary":
        return table[:count].copy()
    return table[spread_entries(len(table), count)]


def spread_entries(size: int, count: int) -> NDArray[np.int64]:
    """Returns the entries that `spread` takes: k evenly spaced intensities, reversed.

    >>> spread_entries(9, 5).tolist(), spread_entries(9, 8).tolist()
    ([8, 6, 4, 2, 0], [8, 7, 6, 5, 3, 2, 1, 0])
    """
    steps = np.arange(count - 1, -1, -1)
    return np.minimum(size - 1, size * steps // max(count - 1, 1))


def named(name: str) -> Colors:
    """Returns a whole colormap by name, or raises with a suggestion."""
    check_name("cmap", name, _ALL)
    return _ALL[name]
