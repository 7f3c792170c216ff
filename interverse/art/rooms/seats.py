"""Sofas, armchairs, chairs; each faces -y and stands on z = 0."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes import lifted, merge, moved, rotated, soft_box, tiled
from interverse.art.rooms.prop import Prop, bar, cloth, grain, legs, wooden

Rng = np.random.Generator


def sofa(rng: Rng) -> Prop:
    """Returns an upholstered bench for two or three."""
    return _seat(rng, "sofa", int(rng.integers(2, 4)))


def armchair(rng: Rng) -> Prop:
    """Returns an upholstered chair."""
    return _seat(rng, "armchair", 1)


def chair(rng: Rng) -> Prop:
    """Returns a wooden chair with a back of slats."""
    wood, width, height = wooden(rng), 0.42, 0.45
    parts = legs((width, 0.42, height), 0.035, 0.01)
    parts.append(bar((-width / 2, -0.21, height - 0.03), (width / 2, 0.21, height), 0.01))
    posts = [
        bar((s * 0.185 - 0.018, 0.17, height), (s * 0.185 + 0.018, 0.205, 0.88)) for s in (-1, 1)
    ]
    slats = [bar((-0.19, 0.175, z), (0.19, 0.198, z + 0.05)) for z in (0.58, 0.68, 0.80)]
    pad = soft_box((width - 0.03, 0.38, 0.04), 0.018, 2, (0, -0.01, height + 0.018))
    return Prop(
        name="chair",
        parts=((merge(grain(parts + posts + slats)), wood), (tiled(pad, 2), cloth(rng))),
    )


def _seat(rng: Rng, name: str, places: int) -> Prop:
    """Returns an upholstered seat: base, back, arms, cushions, feet."""
    cover, cushion, wood = cloth(rng), cloth(rng), wooden(rng)
    arm, depth, seat = rng.uniform(0.12, 0.2), rng.uniform(0.8, 0.92), rng.uniform(0.4, 0.45)
    pitch = rng.uniform(0.56, 0.66)
    width, back = places * pitch + 2 * arm, rng.uniform(0.74, 0.9)
    x = width / 2
    soft = [
        soft_box((width - 2 * arm, depth, seat - 0.22), 0.03, 2, (0, 0, (seat - 0.22) / 2 + 0.08)),
        soft_box((width, 0.2, back - 0.08), 0.07, 3, (0, depth / 2 - 0.1, (back + 0.08) / 2)),
    ]
    soft += [
        soft_box((arm, depth, seat + 0.1), 0.06, 3, (s * (x - arm / 2), 0, (seat + 0.1) / 2 + 0.08))
        for s in (-1, 1)
    ]
    middles = [-places * pitch / 2 + (i + 0.5) * pitch for i in range(places)]
    soft += [
        soft_box((pitch - 0.01, depth - 0.22, 0.16), 0.05, 3, (m, -0.1, seat - 0.07))
        for m in middles
    ]
    soft += [
        rotated(
            soft_box((pitch - 0.02, 0.16, 0.42), 0.06, 3, (m, depth / 2 - 0.26, seat + 0.2)),
            (1, 0, 0),
            -0.15,
            (m, depth / 2 - 0.26, seat),
        )
        for m in middles
    ]
    pillows = []
    if places > 1 and rng.random() < 0.8:
        pillow = soft_box((0.42, 0.13, 0.4), 0.06, 3)
        pillows = [
            lifted(
                moved(
                    rotated(rotated(pillow, (1, 0, 0), -0.35), (0, 0, 1), s * 0.3),
                    (s * (x - arm - 0.22), depth / 2 - 0.42, 0),
                ),
                seat + 0.22,
            )
            for s in (-1, 1)
        ]
    feet = legs((width, depth, 0.09), 0.05, 0.05)
    parts = [(merge([tiled(m, 2.5) for m in soft]), cover), (merge(feet), wood)]
    if pillows:
        parts.append((merge([tiled(m, 2.5) for m in pillows]), cushion))
    return Prop(name=name, parts=tuple(parts))
