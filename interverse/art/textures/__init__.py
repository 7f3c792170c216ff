"""Pictures by arithmetic: tileable fields, laid stones and boards, strokes, colours.

Arrays only: a picture is (size, size, 3) float64 in 0..1 until `quantise` makes it uint8. What
draws takes a NumPy generator. All fields wrap round, so a texture made of them tiles.
"""

from interverse.art.textures.fields import (
    blur,
    cells,
    mix,
    normalise,
    palette,
    quantise,
    relief,
    resize,
    smoothstep,
    spectral,
    turbulence,
    warp,
)
from interverse.art.textures.masonry import Masonry, bricks, planks, tiles
from interverse.art.textures.scatter import BlobShape, Scatter, blobs, strokes

__all__ = [
    "BlobShape",
    "Masonry",
    "Scatter",
    "blobs",
    "blur",
    "bricks",
    "cells",
    "mix",
    "normalise",
    "palette",
    "planks",
    "quantise",
    "relief",
    "resize",
    "smoothstep",
    "spectral",
    "strokes",
    "tiles",
    "turbulence",
    "warp",
]
