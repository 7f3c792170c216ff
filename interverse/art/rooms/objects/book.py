"""Books: hard covers that open on a printed page."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, lifted, merge, painted, tiled
from interverse.art.rooms.item import Item, Part, Rgb, RoomJoint, Surface
from interverse.art.rooms.objects.joinery import bar, finished
from interverse.art.rooms.surfaces import (
    chance,
    choose,
    flat,
    leather,
    picture,
    uniform,
    variant,
    vivid,
)

BOARD = 0.0035
"""Thickness of a cover."""
INSET = 0.005
"""How far the pages stay behind the cover's edges."""
PAPERS: tuple[Rgb, ...] = ((0.95, 0.93, 0.87), (0.9, 0.85, 0.72), (0.97, 0.97, 0.95))


def build(rng: np.random.Generator) -> Item:
    """Returns a book that lies on its back."""
    width = uniform(rng, 0.13, 0.21)
    x, y, thick = width / 2, width * uniform(rng, 0.6, 0.75), uniform(rng, 0.018, 0.055)
    cloth = vivid(rng, 0.6, 0.5)
    binding = leather(rng) if chance(rng, 0.2) else flat(cloth, 0.15, 0.2)
    paper = choose(rng, PAPERS)
    block = flat(paper, 0.05, 0.1)
    middle = BOARD + (thick - 2 * BOARD) * uniform(rng, 0.51, 0.62)
    travel = np.pi * uniform(rng, 0.98, 1.1)
    hinge = RoomJoint(kind="hinge", origin=(-x, 0, middle), axis=(0, -1, 0), travel=travel)
    back = bar((-x, -y, 0), (x, y, BOARD), 0.0012)
    spine = bar((-x - 0.003, -y, 0), (-x + 0.0015, y, thick), 0.0012)
    front = painted(bar((-x, -y, thick - BOARD), (x, y, thick), 0.0012), 0, 1)
    page = painted(_pages(x, y, 0.0, 0.0008), 0, 1)
    left = tiled(page, (-1.0, 1.0), (1.0, 0.0))  # it is seen from behind
    parts = [
        Part(name="back", mesh=merge([back, spine]), surface=binding),
        Part(name="low", mesh=_pages(x, y, BOARD, middle), surface=block),
        Part(name="right", mesh=lifted(page, middle - 0.0004), surface=_print(rng, paper)),
        Part(name="front", mesh=front, surface=_design(rng, cloth), joint=hinge),
        Part(
            name="high",
            mesh=_pages(x, y, middle + 0.0002, thick - BOARD),
            surface=block,
            parent="front",
        ),
        Part(
            name="left",
            mesh=lifted(left, middle - 0.0002),
            surface=_print(rng, paper),
            parent="front",
        ),
    ]
    return finished("Book", parts, "table")


def _pages(x: float, y: float, low: float, high: float) -> Mesh:
    return bar(
        (-x + 0.004, -y + INSET, low), (x - INSET, y - INSET, high), min(0.0008, (high - low) * 0.3)
    )


def _design(rng: np.random.Generator, cloth: Rgb) -> Surface:
    letters = choose(rng, ((0.95, 0.9, 0.75), (0.9, 0.72, 0.3), (0.95, 0.95, 0.95)))
    return picture("cover", (cloth, vivid(rng, 0.6, 0.7), letters), variant(rng))


def _print(rng: np.random.Generator, paper: Rgb) -> Surface:
    return picture("page", (paper, (0.12, 0.12, 0.13)), variant(rng))
