"""Pictures by arithmetic: tileable fields, laid stones and boards, strokes, colours, statistics.

Arrays only: a picture is (size, size, 3) float64 in 0..1 until `quantise` makes it uint8. What
draws takes a NumPy generator. All fields wrap round, so a texture made of them tiles.
"""

from interverse.art.textures.colour import balance, luminance, match, quantise
from interverse.art.textures.fields import (
    blur,
    cells,
    mix,
    normalise,
    palette,
    relief,
    smoothstep,
    spectral,
    turbulence,
    warp,
)
from interverse.art.textures.masonry import Masonry, bricks, planks, tiles
from interverse.art.textures.resize import resize
from interverse.art.textures.scatter import BlobShape, Scatter, blobs, strokes
from interverse.art.textures.statistics import Statistics, respectrum, statistics

__all__ = [
    "BlobShape",
    "Masonry",
    "Scatter",
    "Statistics",
    "balance",
    "blobs",
    "blur",
    "bricks",
    "cells",
    "luminance",
    "match",
    "mix",
    "normalise",
    "palette",
    "planks",
    "quantise",
    "relief",
    "resize",
    "respectrum",
    "smoothstep",
    "spectral",
    "statistics",
    "strokes",
    "tiles",
    "turbulence",
    "warp",
]
