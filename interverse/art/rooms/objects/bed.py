"""Beds: a frame with a headboard, a mattress, a blanket and pillows that get dirty."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import Mesh, merge, moved, rotated, sheet, soft_box, tiled
from interverse.art.rooms.item import Item, Part, Rgb, Triple
from interverse.art.rooms.objects.joinery import bar, finished, legs
from interverse.art.rooms.surfaces import (
    chance,
    choose,
    cloth,
    leather,
    metal,
    paint,
    soiled,
    uniform,
    wood,
)

SHEETS: tuple[Rgb, ...] = ((0.94, 0.93, 0.9), (0.85, 0.88, 0.92), (0.92, 0.85, 0.8))


def build(rng: np.random.Generator) -> Item:
    """Returns a bed, its head at +y."""
    width = choose(rng, (0.9, 1.0, 1.4, 1.6)) * uniform(rng, 0.95, 1.08)
    length, rise, thick = uniform(rng, 1.9, 2.1), uniform(rng, 0.2, 0.34), uniform(rng, 0.17, 0.26)
    top = rise + thick
    body = choose(rng, (wood(rng), wood(rng), paint(rng), leather(rng)))
    head = body if chance(rng, 0.6) else choose(rng, (cloth(rng), metal(rng, (2, 4)), leather(rng)))
    x, y = width / 2 + 0.03, length / 2 + 0.03
    frame = [bar((-x, -y, rise - 0.12), (x, y, rise + 0.02), 0.012)]
    frame.append(legs((width, length, rise - 0.1), 0.09, 0.06))
    parts = [
        Part(name="frame", mesh=merge(frame), surface=body),
        Part(name="head", mesh=_headboard(rng, width, length, top), surface=head),
        *_bedding(rng, (width, length, top), thick),
    ]
    return finished("Bed", parts, "floor")


def _bedding(rng: np.random.Generator, size: Triple, thick: float) -> list[Part]:
    """Returns mattress, blanket and pillows below and above a top of width, length and height."""
    width, length, top = size
    linen, cover = cloth(rng, choose(rng, SHEETS)), cloth(rng)
    fold = length * uniform(rng, 0.15, 0.24)
    mattress = soft_box((width, length, thick), 0.05, 3, (0, 0, top - thick / 2))
    turned = soft_box((width + 0.05, 0.16, 0.05), 0.024, 2, (0, fold - 0.04, top + 0.025))
    pillows = merge([*_pillows(rng, width, length, top), turned])
    meshes = {
        "mattress": (tiled(mattress, 2.5), linen),
        "blanket": (_blanket(rng, size, fold), cover),
        "pillows": (tiled(pillows, 3.0), linen),
    }
    return [
        Part(name=name, mesh=mesh, surface=skin, alternate={"dirty": soiled(skin)})
        for name, (mesh, skin) in meshes.items()
    ]


def _headboard(rng: np.random.Generator, width: float, length: float, top: float) -> Mesh:
    height, y = top + uniform(rng, 0.3, 0.65), length / 2 + 0.03
    x = width / 2 + 0.04
    if chance(rng, 0.6):
        boards = [bar((-x, y, 0.1), (x, y + 0.06, height), 0.02)]
        if chance(rng, 0.5):
            count = max(2, round(width / 0.4))
            pitch = 2 * x / count
            boards += [
                soft_box(
                    (pitch * 0.92, 0.06, height - top),
                    0.025,
                    2,
                    (-x + (k + 0.5) * pitch, y, (height + top) / 2),
                )
                for k in range(count)
            ]
        return tiled(merge(boards), 1.0)
    posts = [
        bar((-x, y, 0), (-x + 0.06, y + 0.06, height + 0.05), 0.012),
        bar((x - 0.06, y, 0), (x, y + 0.06, height + 0.05), 0.012),
    ]
    rails = [
        bar((-x, y + 0.01, z), (x, y + 0.05, z + 0.07), 0.01) for z in (top - 0.05, height - 0.07)
    ]
    slats = [
        bar((t - 0.02, y + 0.015, top), (t + 0.02, y + 0.045, height - 0.05), 0.008)
        for t in np.linspace(-x + 0.15, x - 0.15, max(4, int(width / 0.16)))
    ]
    return merge([*posts, *rails, *slats])


def _blanket(rng: np.random.Generator, size: Triple, fold: float) -> Mesh:
    """Returns a cover with creases that hangs over both sides and the foot."""
    width, length, top = size
    rows, columns = 14, 20
    hang = uniform(rng, 0.16, 0.3)
    span = width / 2 + hang
    s = np.linspace(-span, span, columns)
    t = np.linspace(-length / 2 - hang * 0.9, fold, rows)
    u, v = np.meshgrid(s, t)
    edge_x, edge_y = width / 2 + 0.015, length / 2 + 0.015
    over_x, over_y = np.maximum(np.abs(u) - edge_x, 0), np.maximum(-v - edge_y, 0)
    waves = 0.012 * np.sin(7 * u + rng.uniform(0, 6)) * np.cos(
        5 * v + rng.uniform(0, 6)
    ) + rng.normal(0, 0.004, u.shape)
    x = (
        np.clip(u, -edge_x, edge_x)
        + np.sign(u) * 0.03 * np.tanh(over_x * 8)
        + 0.02 * np.sign(u) * (over_x > 0) * np.sin(9 * v)
    )
    y = np.maximum(v, -edge_y) - 0.03 * np.tanh(over_y * 8) - 0.02 * (over_y > 0) * np.sin(8 * u)
    z = top + 0.035 + waves - over_x - over_y
    points = np.stack([x, y, np.maximum(z, 0.05)], axis=-1)
    texture = np.stack([u, v], axis=-1) * 1.2
    return sheet(points, 0.012, texture)


def _pillows(rng: np.random.Generator, width: float, length: float, top: float) -> list[Mesh]:
    count = 1 if width < 1.2 else 2
    found = []
    for number in range(count):
        wide, deep, tall = (
            width / count * uniform(rng, 0.75, 0.9),
            uniform(rng, 0.36, 0.46),
            uniform(rng, 0.12, 0.18),
        )
        pillow = soft_box((wide, deep, tall), tall * 0.49, 3)
        puff = 1 - 0.45 * np.clip(np.abs(pillow.vertices[:, 0]) / (wide / 2), 0, 1) ** 3
        vertices = pillow.vertices * np.stack(
            [np.ones_like(puff), np.ones_like(puff), puff], axis=1
        )
        pillow = Mesh(vertices, pillow.faces, pillow.normals, pillow.texcoords)
        lean = rotated(pillow, (1, 0, 0), uniform(rng, 0.1, 0.5))
        x = (number - (count - 1) / 2) * width / count
        found.append(moved(lean, (x, length / 2 - deep * 0.62, top + tall * 0.62)))
    return found
