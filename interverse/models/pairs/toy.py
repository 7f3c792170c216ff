"""Toy pairs: coloured shapes whose state flips. For tests, for trying things out without rooms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.core.rng import generator
from interverse.models.pairs.tensors import Crop, PairTensors, from_arrays

VERBS = ("open", "close", "turnon", "turnoff", "dirty", "clean", "break")
PROPERTIES = ("open", "on", "dirty", "broken")
_EFFECT = {
    "open": (0, 1),
    "close": (0, 0),
    "turnon": (1, 1),
    "turnoff": (1, 0),
    "dirty": (2, 1),
    "clean": (2, 0),
    "break": (3, 1),
}
_CLASSES = {  # what each toy class can be made to do
    "ball": (0, 1),
    "block": (0, 2),
    "cross": (1, 2),
    "diamond": (0, 3),
    "plate": (2, 3),
    "ring": (1, 3),
    "star": (0, 1, 2),
    "wedge": (1, 2, 3),
}
Image = NDArray[np.float64]


def toy_pairs(count: int, *, size: int = 32, seed: int = 0, crop: Crop = "single") -> PairTensors:
    """Returns `count` pairs of shapes with masks and true states.

    Colour, place and background vary between pairs, never within one.

    >>> pairs = toy_pairs(4, size=16)
    >>> tuple(pairs.images.shape), sorted(pairs.factors)
    ((4, 2, 3, 16, 16), ['broken', 'dirty', 'on', 'open'])
    """
    rng = generator(seed=seed, name="pairs/toy")
    made = [_pair(rng, size, crop) for _ in range(count)]
    images = np.stack([pair["images"] for pair in made])
    states = np.stack([pair["states"] for pair in made]).astype(np.float64)
    masks = np.stack([pair["mask"] for pair in made])
    return from_arrays(
        images[:, 0],
        images[:, 1],
        verb=[pair["verb"] for pair in made],
        noun=[pair["noun"] for pair in made],
        crop=crop,
        masks=np.stack([masks, masks], axis=1),
        factors={name: states[:, :, i] for i, name in enumerate(PROPERTIES)},
        extra={"scenes": np.arange(count) // 4},
    )


def _pair(rng: np.random.Generator, size: int, crop: Crop) -> dict[str, Any]:
    noun = str(rng.choice(list(_CLASSES)))
    able = _CLASSES[noun]
    before = np.zeros(len(PROPERTIES), dtype=int)
    for place in able[:-1] if able[-1] == 3 else able:
        before[place] = rng.integers(2)
    place = int(rng.choice(able))
    after = before.copy()
    after[place] = 1 if place == 3 else 1 - before[place]
    verb = next(v for v in VERBS if _EFFECT[v] == (place, after[place]))
    scene = rng.uniform(0.1, 0.5, 3)[:, None, None] * np.ones((3, size, size))
    scene = scene + rng.normal(0, 0.02, scene.shape)
    if crop == "multi":
        for other in rng.choice(list(_CLASSES), 3):
            state = rng.integers(2, size=4) * np.isin(np.arange(4), _CLASSES[str(other)])
            scene = _draw(scene, str(other), state, _look(rng, size, 0.12))[0]
    look = _look(rng, size, 0.34 if crop == "single" else 0.18)
    drawn = [_draw(scene, noun, state, look) for state in (before, after)]
    images = (np.clip([image for image, _ in drawn], 0, 1) * 255).astype(np.uint8)
    return {
        "images": images,
        "mask": drawn[0][1],
        "states": np.stack([before, after]),
        "verb": verb,
        "noun": noun,
    }


def _look(rng: np.random.Generator, size: int, radius: float) -> dict[str, Any]:
    margin = radius * 1.1
    return {
        "centre": rng.uniform(margin, 1 - margin, 2) * size,
        "radius": radius * size * rng.uniform(0.85, 1.15),
        "colour": rng.uniform(0.3, 0.6, 3),
        "dots": rng.uniform(-0.6, 0.6, (6, 2)),
    }


def _draw(
    scene: Image, noun: str, state: NDArray[Any], look: dict[str, Any]
) -> tuple[Image, NDArray[np.bool_]]:
    """Returns the scene with one shape in a state, and the shape's mask."""
    size = scene.shape[-1]
    y, x = np.mgrid[:size, :size] + 0.5
    x = (x - look["centre"][0]) / look["radius"]
    y = (y - look["centre"][1]) / look["radius"]
    shape = _shape(noun, x, y)
    image = np.where(shape, look["colour"][:, None, None], scene)
    if state[0]:
        image = np.where(shape & (x > 0.1), 0.05, image)  # a dark half: its door stands open
    if state[1]:
        image = np.where(shape, image + 0.35, image)
    if state[2]:
        for dot in look["dots"]:
            near = (x - dot[0]) ** 2 + (y - dot[1]) ** 2 < 0.04
            image = np.where(shape & near, np.array([0.3, 0.2, 0.05])[:, None, None], image)
    if state[3]:
        crack = shape & ((np.abs(x - y) < 0.12) | (np.abs(x + y) < 0.12))
        image = np.where(crack, 1.0, image)
    return image, shape


def _shape(noun: str, x: Image, y: Image) -> NDArray[np.bool_]:
    radius = np.hypot(x, y)
    shapes = {
        "ball": radius < 0.9,
        "block": np.maximum(abs(x), abs(y)) < 0.8,
        "cross": (np.minimum(abs(x), abs(y)) < 0.35) & (np.maximum(abs(x), abs(y)) < 0.95),
        "diamond": abs(x) + abs(y) < 1.1,
        "plate": (x**2 + (y / 0.5) ** 2) < 0.9,
        "ring": (radius < 0.95) & (radius > 0.45),
        "star": radius < 0.65 + 0.3 * np.cos(5 * np.arctan2(y, x)),
        "wedge": (y > -0.8) & (abs(x) < (0.9 - y) / 1.8),
    }
    return shapes[noun]
