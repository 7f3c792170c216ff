"""Telephones: rounded slabs of glass, lying or leaning in a dock; they glow and crack."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from interverse.art.meshes import (
    Mesh,
    bevelled_box,
    extrude,
    lifted,
    merge,
    moved,
    painted,
    rotated,
    rounded_rectangle,
)
from interverse.art.rooms.item import Item, Part, Triple
from interverse.art.rooms.objects.joinery import finished
from interverse.art.rooms.objects.screen import screen
from interverse.art.rooms.surfaces import chance, choose, flat, metal, plastic, uniform, vivid, wood


def build(rng: np.random.Generator) -> Item:
    """Returns a telephone."""
    width = uniform(rng, 0.068, 0.085)
    size = (width, width * uniform(rng, 1.95, 2.2), uniform(rng, 0.008, 0.012))
    parts = _phone(rng, size)
    if chance(rng, 0.35):
        return finished("CellPhone", parts, "table")
    lean, sideways = uniform(rng, 0.95, 1.3), chance(rng, 0.2)
    if sideways:
        size = (size[1], size[0], size[2])
    rise = size[1] / 2 * np.sin(lean) + 0.012
    turn = np.pi / 2 if sideways else 0.0
    standing = [
        replace(part, mesh=_leaning(rotated(part.mesh, (0, 0, 1), turn), lean, rise))
        for part in parts
    ]
    skin = choose(rng, (wood(rng), flat(vivid(rng, 0.3, 0.6)), metal(rng, (0, 4))))
    dock = Part(name="dock", mesh=_dock(rng, size, lean), surface=skin)
    return finished("CellPhone", [*standing, dock], "table")


def _phone(rng: np.random.Generator, size: Triple) -> list[Part]:
    """Returns a telephone that lies on its back."""
    width, length, thick = size
    corner, border = uniform(rng, 0.006, 0.013), uniform(rng, 0.003, 0.006)
    body = extrude(rounded_rectangle(width, length, corner), thick, bevel=0.0025)
    keys = bevelled_box(
        (0.002, length * 0.12, thick * 0.4), 0.0005, (width / 2, length * 0.2, thick / 2)
    )
    pane = extrude(rounded_rectangle(width - 0.002, length - 0.002, corner), 0.001, bevel=0.0004)
    ear = (0, length / 2 - border * 0.5, thick + 0.0008)
    bezel = [lifted(pane, thick - 0.0004), bevelled_box((width * 0.2, 0.002, 6e-4), 2e-4, ear)]
    inner = rounded_rectangle(width - 2 * border, length - 2 * border, corner * 0.7)
    glass = painted(lifted(extrude(inner, 0.001, bevel=0.0003), thick + 0.0001), 0, 1)
    dark, pale = flat((0.08, 0.08, 0.09), 0.5, 0.6), flat((0.9, 0.9, 0.9), 0.5, 0.6)
    case = choose(rng, (plastic(rng), dark, metal(rng, (0, 2, 4)), pale))
    black = flat((0.03, 0.03, 0.035), 0.6, 0.8)
    return [
        Part(name="case", mesh=merge([body, keys]), surface=case),
        Part(name="bezel", mesh=merge(bezel), surface=black),
        screen(rng, glass, "phone"),
    ]


def _leaning(mesh: Mesh, lean: float, rise: float) -> Mesh:
    return moved(rotated(mesh, (1, 0, 0), lean), (0, 0, rise))


def _dock(rng: np.random.Generator, size: Triple, lean: float) -> Mesh:
    width, length, thick = size
    wide, half = width * uniform(rng, 0.6, 0.95), length / 2
    reach = half * np.cos(lean)
    foot = bevelled_box((wide, 0.09, 0.012), 0.004, (0, 0.012 - reach * 0.4, 0.006))
    ledge = bevelled_box((wide, 0.012, 0.026), 0.003, (0, -reach - thick * 0.9 - 0.006, 0.013))
    prop = rotated(
        bevelled_box((wide * 0.6, 0.008, half * 1.2), 0.003), (1, 0, 0), lean - np.pi / 2
    )
    return merge([foot, ledge, moved(prop, (0, 0.008, half * 0.62))])
