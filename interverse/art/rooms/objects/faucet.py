"""Faucets over a small basin: bent spouts, levers or cross handles, water while they run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from interverse.art.meshes import Mesh, grid, lathe, merge, moved, rotated, superellipse, tube
from interverse.art.rooms.item import Item, Part, RoomTexture, Surface
from interverse.art.rooms.objects.joinery import finished
from interverse.art.rooms.surfaces import choose, flat, glaze, metal, uniform, variant

POINTS = 32
WATER = Surface(rgba=(0.68, 0.86, 0.95, 0.9), specular=0.9, shininess=0.9, emission=0.35)
POOL = Surface(rgba=(0.35, 0.6, 0.75, 1.0), specular=0.9, shininess=0.9, emission=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Basin:
    """A bowl let into nothing: half axes, height, and how square it is."""

    half: float
    deep: float
    tall: float
    power: float

    def ring(self, factor: float, z: float) -> np.ndarray:
        """Returns a closed ring of its shape, a factor smaller, at a share of its height."""
        outline = superellipse(self.half * factor, self.deep * factor, self.power, POINTS)
        points = np.column_stack([outline, np.full(POINTS, self.tall * z)])
        return np.concatenate([points, points[:1]])

    def skin(self, *section: tuple[float, float]) -> Mesh:
        """Returns the skin through rings of factors and heights."""
        return grid(np.stack([self.ring(factor, z) for factor, z in section]), closed=True)


def build(rng: np.random.Generator) -> Item:
    """Returns a faucet with its basin."""
    basin = Basin(
        half=uniform(rng, 0.16, 0.22),
        deep=uniform(rng, 0.13, 0.16),
        tall=uniform(rng, 0.06, 0.1),
        power=choose(rng, (2.0, 2.2, 5.0, 8.0)),
    )
    outside = ((0.7, 0.0), (0.92, 0.5), (1.0, 1.0), (0.97, 1.04), (0.94, 1.0))
    bowl = basin.skin(*outside, (0.85, 0.6), (0.6, 0.2), (0.05, 0.12))
    chrome = metal(rng, (0, 0, 2, 4, 3))
    rise, back = basin.tall + uniform(rng, 0.16, 0.27), basin.deep + 0.03
    spout, mouth = choose(rng, (_goose, _goose, _square))(rise, uniform(rng, 0.12, 0.17), back)
    collar = lathe([(0, 0), (0.032, 0), (0.03, 0.012), (0.018, 0.02), (0, 0.02)], 18)
    drain = lathe([(0.022, 0.006), (0.02, 0.01), (0, 0.01)], 14)
    fittings = [spout, moved(collar, (0, back, 0)), moved(drain, (0, 0, basin.tall * 0.1))]
    level = 0.72
    parts = [
        Part(name="basin", mesh=bowl, surface=_china(rng)),
        Part(name="spout", mesh=merge([*fittings, _taps(rng, back, rise)]), surface=chrome),
        Part(
            name="pool",
            mesh=basin.skin((0.87, level), (1e-3, level)),
            surface=POOL,
            shown_when="on",
        ),
        Part(
            name="stream", mesh=_stream(mouth, basin.tall * level), surface=WATER, shown_when="on"
        ),
    ]
    return finished("Faucet", parts, "counter")


def _china(rng: np.random.Generator) -> Surface:
    white = flat((0.95, 0.95, 0.94), 0.7, 0.8)
    marble = RoomTexture(
        kind="marble", colours=((0.85, 0.83, 0.8), (0.35, 0.33, 0.32)), seed=variant(rng)
    )
    stone = Surface(texture=marble, specular=0.5, shininess=0.6)
    return choose(rng, (white, white, metal(rng, (0,)), stone, glaze(rng)))


def _stream(mouth: np.ndarray, level: float) -> Mesh:
    count = 8
    path = np.tile(mouth, (count, 1))
    path[:, 2] = np.linspace(mouth[2], level, count)
    jet = tube(path, 0.014 + 0.003 * np.sin(np.linspace(0, 9, count)), 10)
    splash = lathe([(0.05, 0), (0.028, 0.012), (0.013, 0.035), (0, 0.035)], 14)
    return merge([jet, moved(splash, (mouth[0], mouth[1], level))])


def _goose(rise: float, reach: float, back: float) -> tuple[Mesh, np.ndarray]:
    turn = np.linspace(0, np.pi * 0.95, 14)
    y, z = back - reach / 2 * (1 - np.cos(turn)), rise + reach / 2 * np.sin(turn)
    bow = np.stack([np.zeros(14), y, z], axis=1)
    end = bow[-1] - (0, 0, 0.03)
    return tube(np.array([(0, back, 0), (0, back, rise * 0.6), *bow, end]), 0.015, 12), end


def _square(rise: float, reach: float, back: float) -> tuple[Mesh, np.ndarray]:
    front = back - reach
    line = [(0, back, 0), (0, back, rise * 0.5), (0, back, rise), (0, back - 0.012, rise + 0.015)]
    line += [(0, (back + front) / 2, rise + 0.02), (0, front + 0.01, rise + 0.016)]
    line += [(0, front, rise), (0, front, rise - 0.02)]
    return tube(line, 0.017, 8), np.array(line[-1])


def _taps(rng: np.random.Generator, back: float, rise: float) -> Mesh:
    style = choose(rng, ("lever", "cross", "twin"))
    if style == "lever":
        side = choose(rng, (-1, 1))
        line = [(0, back, rise * 0.55), (side * 0.035, back, rise * 0.58)]
        line.append((side * 0.085, back - 0.01, rise * 0.75))
        return tube(line, [0.011, 0.008, 0.006], 8)
    post = [(0, 0), (0.022, 0), (0.012, 0.012), (0.011, 0.05), (0.018, 0.055), (0.016, 0.065)]
    tap = [lathe([*post, (0, 0.068)], 14), tube([(-0.03, 0, 0.058), (0.03, 0, 0.058)], 0.006, 6)]
    if style == "cross":
        tap.append(rotated(tap[1], (0, 0, 1), np.pi / 2))
    return merge([moved(merge(tap), (side * 0.085, back, 0)) for side in (-1, 1)])
