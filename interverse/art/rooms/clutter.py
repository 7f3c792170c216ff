"""Small things that cannot be acted on: they fill tops and walls as in a room that is lived in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from interverse.art.meshes import bevelled_box, frame, lathe, merge, moved, painted, rotated, tiled
from interverse.art.rooms.item import RoomTexture, Surface
from interverse.art.rooms.prop import (
    VIVID,
    WOODS,
    Prop,
    bar,
    painted_surface,
    pick,
    textured,
    tinted,
    wooden,
)

Rng = np.random.Generator


def stack(rng: Rng) -> Prop:
    """Returns two to four closed magazines, one on the other."""
    sheets, height = [], 0.0
    for _ in range(int(rng.integers(2, 5))):
        thick = rng.uniform(0.008, 0.02)
        size = (rng.uniform(0.15, 0.2), rng.uniform(0.21, 0.27), thick)
        lying = rotated(bevelled_box(size, 0.002), (0, 0, 1), rng.uniform(-0.3, 0.3))
        sheets.append((moved(lying, (0, 0, height + thick / 2)), painted_surface(pick(rng, VIVID))))
        height += thick
    return Prop(name="stack", parts=tuple(sheets))


def bottle(rng: Rng) -> Prop:
    """Returns a bottle with a label and a cap."""
    radius, height = rng.uniform(0.03, 0.045), rng.uniform(0.2, 0.3)
    neck, shoulder = radius * 0.4, height * rng.uniform(0.55, 0.7)
    outline = [
        (0, 0),
        (radius, 0),
        (radius, shoulder),
        (neck, shoulder + 0.05),
        (neck, height - 0.02),
    ]
    glass = Surface(
        rgba=(*pick(rng, ((0.1, 0.3, 0.15), (0.35, 0.2, 0.08), (0.6, 0.7, 0.75))), 1.0),
        specular=0.9,
        shininess=0.9,
    )
    cap = lathe([(neck * 1.1, height - 0.025), (neck * 1.1, height), (0, height)], 14)
    label = lathe([(radius * 1.01, shoulder * 0.25), (radius * 1.01, shoulder * 0.75)], 18)
    parts = ((lathe(outline, 18), glass), (merge([cap]), painted_surface(pick(rng, VIVID))))
    return Prop(name="bottle", parts=(*parts, (label, painted_surface(pick(rng, VIVID)))))


def jar(rng: Rng) -> Prop:
    """Returns a storage jar with a lid."""
    radius, height = rng.uniform(0.04, 0.06), rng.uniform(0.1, 0.18)
    body = lathe(
        [(0, 0), (radius, 0), (radius * 1.05, height * 0.5), (radius, height), (0, height)], 18
    )
    lid = moved(
        lathe(
            [(radius * 1.02, 0), (radius * 1.02, 0.02), (0.012, 0.025), (0.014, 0.045), (0, 0.05)],
            18,
        ),
        (0, 0, height),
    )
    glaze = Surface(texture=textured(rng, "plain", pick(rng, VIVID)), specular=0.5, shininess=0.6)
    return Prop(name="jar", parts=((body, glaze), (lid, wooden(rng))))


def succulent(rng: Rng) -> Prop:
    """Returns a small plant in a pot."""
    radius, tall = rng.uniform(0.04, 0.06), rng.uniform(0.07, 0.1)
    pot = lathe(
        [
            (0, 0),
            (radius * 0.8, 0),
            (radius, tall),
            (radius * 0.9, tall),
            (radius * 0.85, tall - 0.01),
            (0, tall - 0.01),
        ],
        16,
    )
    leaf = lathe([(0, 0), (0.012, 0.015), (0.014, 0.04), (0.008, 0.07), (0, 0.09)], 6)
    leaves = []
    for ring, lean in ((0, 0.1), (1, 0.6), (2, 1.05)):
        for k in range(4 + 3 * ring):
            turn = 2 * np.pi * k / (4 + 3 * ring) + 0.5 * ring
            leaves.append(
                moved(
                    rotated(rotated(leaf, (0, 1, 0), lean), (0, 0, 1), turn), (0, 0, tall - 0.015)
                )
            )
    green = Surface(texture=textured(rng, "foliage", tinted(rng, (0.3, 0.5, 0.25)), contrast=0.6))
    return Prop(
        name="succulent",
        parts=(
            (pot, painted_surface(pick(rng, ((0.85, 0.83, 0.8), *VIVID)))),
            (merge(leaves), green),
        ),
    )


def fruit(rng: Rng) -> Prop:
    """Returns two or three apples or oranges."""
    radius = rng.uniform(0.033, 0.042)
    turn = np.linspace(-np.pi / 2, np.pi / 2, 9)
    ball = lathe(
        np.column_stack([np.abs(radius * np.cos(turn)), radius * 0.92 * (1 + np.sin(turn))]), 16
    )
    spots = [(0, 0), (0.085, 0.01), (0.035, -0.075)][: int(rng.integers(2, 4))]
    skin = painted_surface(
        pick(rng, ((0.75, 0.2, 0.12), (0.9, 0.55, 0.12), (0.55, 0.68, 0.2))), gloss=0.4
    )
    return Prop(name="fruit", parts=((merge([moved(ball, (x, y, 0)) for x, y in spots]), skin),))


def photo(rng: Rng) -> Prop:
    """Returns a small picture in a frame that leans on its foot."""
    width, height = rng.uniform(0.12, 0.2), rng.uniform(0.15, 0.22)
    rim = moved(frame((width, height), 0.018, 0.015), (0, 0, height / 2))
    card = painted(
        bar(
            (-width / 2 + 0.015, -0.008, 0.015), (width / 2 - 0.015, -0.004, height - 0.015), 0.001
        ),
        0,
        2,
    )
    back = bar((-0.02, 0.0, 0.0), (0.02, 0.07, 0.01), 0.002)
    lean = (1, 0, 0), -0.2
    colours = tuple(pick(rng, VIVID) for _ in range(4))
    art = Surface(
        texture=RoomTexture(kind="landscape", colours=colours, seed=int(rng.integers(6))),
        specular=0.3,
    )
    return Prop(
        name="photo",
        parts=((merge([rotated(rim, *lean), back]), wooden(rng)), (rotated(card, *lean), art)),
    )


def painting(rng: Rng) -> Prop:
    """Returns a picture for the wall: back at y = 0, centre at the origin."""
    width, height = rng.uniform(0.4, 0.9), rng.uniform(0.35, 0.7)
    rim = frame((width, height), rng.uniform(0.025, 0.05), 0.03)
    board = painted(
        bar(
            (-width / 2 + 0.02, -0.015, -height / 2 + 0.02),
            (width / 2 - 0.02, -0.01, height / 2 - 0.02),
            0.001,
        ),
        0,
        2,
    )
    colours = tuple(pick(rng, (*VIVID, *WOODS)) for _ in range(5))
    kind = ("landscape", "landscape", "marble", "floral", "bands")[int(rng.integers(5))]
    art = Surface(
        texture=RoomTexture(kind=kind, colours=colours, seed=int(rng.integers(6))), specular=0.1
    )
    edge = (
        wooden(rng)
        if rng.random() < 0.6
        else painted_surface(pick(rng, ((0.1, 0.1, 0.1), (0.9, 0.88, 0.85))))
    )
    return Prop(name="painting", parts=((tiled(rim, 1.5), edge), (board, art)))


CLUTTER: dict[str, Callable[[Rng], Prop]] = {
    "bottle": bottle,
    "fruit": fruit,
    "jar": jar,
    "photo": photo,
    "stack": stack,
    "succulent": succulent,
}
"""What stands on tops; `painting` hangs on walls."""
