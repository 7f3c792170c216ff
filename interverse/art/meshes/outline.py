"""Closed curves in the plane, counter-clockwise, (point, 2), metres."""

from __future__ import annotations

import numpy as np

from interverse.art.meshes.mesh import Floats


def superellipse(a: float, b: float, power: float, points: int = 24) -> Floats:
    """Returns |x/a|^power + |y/b|^power = 1: 2 is an ellipse, 4 a box with soft corners."""
    turn = np.linspace(0, 2 * np.pi, points, endpoint=False)
    cos, sin = np.cos(turn), np.sin(turn)
    radius = (np.abs(cos) ** power + np.abs(sin) ** power) ** (-1 / power)
    return np.stack([a * radius * cos, b * radius * sin], axis=1)


def rounded_rectangle(width: float, height: float, radius: float, corner: int = 4) -> Floats:
    """Returns a rectangle about the origin with `corner` + 1 points on each rounded corner."""
    radius = min(radius, width / 2 - 1e-6, height / 2 - 1e-6)
    turn = np.linspace(0, np.pi / 2, corner + 1)
    arc = radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    x, y = width / 2 - radius, height / 2 - radius
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
    corners, points = [(x, y), (-x, y), (-x, -y), (x, -y)], []
    for centre in corners:
        points.append(arc + centre)
        arc = arc @ quarter.T
    return np.concatenate(points)
