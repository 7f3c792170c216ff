"""Statistics that a picture is moved to: drawn per picture from what its kind's photos have.

The figures of grass, sand, brick, concrete, frozen ground, soil, moss and lichen are those measured
on the original's photographs, shifted a little where clipping or a picture's own shapes pull the
result away; docs/pictures.md shows photographs and result side by side. The original had no boards,
tiles or bare rock, so those rows are ours, near the mean of all floors. Of its backgrounds only the
mean over all is known; the kinds here differ so that together they have it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from interverse.art.textures import Colour, FloatArray

from .measure import balance, match, respectrum

_FARTHEST = 1.8  # deviations from the mean at which a draw is cut off


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Mean and deviation over the pictures of one kind; luminance, contrast, colour in 0..1."""

    luminance: tuple[float, float]
    contrast: tuple[float, float]
    saturation: tuple[float, float]
    colour: Colour
    """Mean red, green and blue over the kind's pictures."""
    beta: tuple[float, float]
    share: float = 0.6
    """How far a picture's mean colour is moved to `colour`; the rest of its own tint stays."""


GRASS = Target(
    luminance=(0.475, 0.052),
    contrast=(0.077, 0.025),
    saturation=(0.41, 0.11),
    colour=(0.51, 0.49, 0.32),
    beta=(1.88, 0.33),
)
SAND = Target(
    luminance=(0.556, 0.035),
    contrast=(0.062, 0.024),
    saturation=(0.23, 0.07),
    colour=(0.60, 0.55, 0.46),
    beta=(2.47, 0.36),
)
BRICK = Target(
    luminance=(0.536, 0.051),
    contrast=(0.083, 0.028),
    saturation=(0.33, 0.14),
    colour=(0.61, 0.52, 0.41),
    beta=(2.19, 0.33),
)
CONCRETE = Target(
    luminance=(0.538, 0.038),
    contrast=(0.073, 0.028),
    saturation=(0.15, 0.06),
    colour=(0.56, 0.54, 0.48),
    beta=(2.25, 0.36),
)
FROZEN = Target(
    luminance=(0.589, 0.087),
    contrast=(0.120, 0.035),
    saturation=(0.14, 0.06),
    colour=(0.60, 0.59, 0.57),
    beta=(2.88, 0.28),
)
SOIL = Target(
    luminance=(0.464, 0.107),
    contrast=(0.093, 0.025),
    saturation=(0.22, 0.08),
    colour=(0.50, 0.46, 0.40),
    beta=(2.04, 0.25),
)
MOSS = Target(
    luminance=(0.440, 0.060),
    contrast=(0.146, 0.025),
    saturation=(0.49, 0.08),
    colour=(0.48, 0.48, 0.28),
    beta=(2.45, 0.25),
)
LICHEN = Target(
    luminance=(0.466, 0.060),
    contrast=(0.143, 0.025),
    saturation=(0.25, 0.06),
    colour=(0.49, 0.47, 0.40),
    beta=(2.45, 0.20),
)
STONY_GRASS = Target(
    luminance=(0.490, 0.050),
    contrast=(0.090, 0.022),
    saturation=(0.26, 0.07),
    colour=(0.51, 0.50, 0.40),
    beta=(2.00, 0.25),
    share=0.3,
)
LEAVES = Target(
    luminance=(0.470, 0.060),
    contrast=(0.120, 0.025),
    saturation=(0.38, 0.10),
    colour=(0.53, 0.47, 0.36),
    beta=(2.10, 0.20),
)
ROCK = Target(
    luminance=(0.500, 0.060),
    contrast=(0.100, 0.025),
    saturation=(0.15, 0.06),
    colour=(0.53, 0.50, 0.45),
    beta=(2.30, 0.25),
)
WOOD = Target(
    luminance=(0.490, 0.070),
    contrast=(0.080, 0.020),
    saturation=(0.38, 0.10),
    colour=(0.57, 0.48, 0.37),
    beta=(2.20, 0.20),
    share=0.4,
)
TILE = Target(
    luminance=(0.560, 0.070),
    contrast=(0.100, 0.030),
    saturation=(0.22, 0.10),
    colour=(0.59, 0.56, 0.50),
    beta=(2.40, 0.20),
    share=0.3,
)
OPEN = Target(
    luminance=(0.49, 0.125),
    contrast=(0.20, 0.055),
    saturation=(0.50, 0.17),
    colour=(0.43, 0.49, 0.47),
    beta=(2.82, 0.30),
    share=0.25,
)
WOODS = Target(
    luminance=(0.40, 0.09),
    contrast=(0.195, 0.05),
    saturation=(0.50, 0.15),
    colour=(0.37, 0.4, 0.3),
    beta=(2.86, 0.30),
    share=0.25,
)
DESERT = Target(
    luminance=(0.52, 0.09),
    contrast=(0.2, 0.04),
    saturation=(0.45, 0.12),
    colour=(0.58, 0.5, 0.43),
    beta=(2.80, 0.28),
    share=0.25,
)
CLOUDS = Target(
    luminance=(0.58, 0.08),
    contrast=(0.19, 0.04),
    saturation=(0.40, 0.12),
    colour=(0.52, 0.59, 0.66),
    beta=(2.76, 0.28),
    share=0.25,
)
SUNSET = Target(
    luminance=(0.42, 0.09),
    contrast=(0.21, 0.045),
    saturation=(0.62, 0.14),
    colour=(0.5, 0.37, 0.33),
    beta=(2.80, 0.28),
    share=0.25,
)
NIGHT = Target(
    luminance=(0.18, 0.05),
    contrast=(0.14, 0.03),
    saturation=(0.55, 0.12),
    colour=(0.15, 0.18, 0.28),
    beta=(2.80, 0.25),
    share=0.25,
)
TOWN = Target(
    luminance=(0.46, 0.08),
    contrast=(0.2, 0.04),
    saturation=(0.24, 0.08),
    colour=(0.47, 0.46, 0.44),
    beta=(2.76, 0.28),
    share=0.1,
)


def finish(
    rng: np.random.Generator, image: FloatArray, target: Target, *, wraps: bool
) -> FloatArray:
    """Returns the picture with its statistics moved to values drawn from the target.

    Args:
        rng: draws the values.
        image: (size, size, 3) in 0..1.
        target: means and deviations.
        wraps: whether bottom meets top.
    """
    luminance, contrast, saturation, beta = (
        mean + spread * float(np.clip(rng.standard_normal(), -_FARTHEST, _FARTHEST))
        for mean, spread in (target.luminance, target.contrast, target.saturation, target.beta)
    )
    image = respectrum(image, beta, wraps=wraps)
    image = balance(image, target.colour, target.share)
    return match(image, luminance, max(contrast, 0.02), max(saturation, 0.02))
