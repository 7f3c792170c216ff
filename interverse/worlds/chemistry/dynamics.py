"""Dynamics of chemistry: the effects of painting one object, as pure functions over arrays.

An intervention paints object o. Then, in index order, every object with a reached parent is drawn
anew from its mechanism, given its parents' present colours, and is reached itself. All others keep
their colours: nothing changes without a cause.
"""

from __future__ import annotations

from interverse.core.arrays import Array, device, namespace
from interverse.sim.raster import GRID
from interverse.worlds.chemistry.cpt import Mechanisms, sample

DIRECTIONS = ((-1, 0), (0, 1), (1, 0), (0, -1), (-1, 1))  # up, right, down, left, up and right


def start(mechanisms: Mechanisms, uniforms: Array) -> Array:
    """Returns (R, n) first colours for (R, n) numbers: object 0 evenly, the others in order."""
    xp = namespace(uniforms)
    count = mechanisms.weights.second_bias.shape[2]
    colors = xp.zeros(uniforms.shape, dtype=xp.int64, device=device(uniforms))
    colors[:, 0] = xp.astype(xp.floor(uniforms[:, 0] * count), xp.int64)
    for v in range(1, uniforms.shape[1]):
        colors[:, v] = sample(mechanisms, v, colors, uniforms[:, v])
    return colors


def propagate(
    colors: Array, objects: Array, paints: Array, mechanisms: Mechanisms, uniforms: Array
) -> Array:
    """Returns (R, n) fresh colours after object `objects[r]` of each world r was painted.

    Args:
        colors: (R, n) int64.
        objects: (R,) int64, which object is painted.
        paints: (R,) int64, in which colour.
        mechanisms: what makes the colours.
        uniforms: (R, n) numbers in [0, 1), each object's noise.
    """
    xp = namespace(colors, uniforms)
    reached = one_hot(objects, colors.shape[1])
    colors = xp.where(reached, paints[:, None], colors)
    for v in range(1, colors.shape[1]):
        hit = xp.any(reached_parents(mechanisms.adjacency, reached, v), axis=1)
        drawn = sample(mechanisms, v, colors, uniforms[:, v])
        colors[:, v] = xp.where(hit, drawn, colors[:, v])
        reached[:, v] |= hit
    return colors


def play(colors: Array, actions: Array, mechanisms: Mechanisms, uniforms: Array) -> Array:
    """Returns (R, n) fresh colours after T actions (R, T) in a row, with noise (R, n, T)."""
    colors = namespace(colors).asarray(colors, copy=True)
    count = mechanisms.weights.second_bias.shape[2]
    for t in range(actions.shape[1]):
        chosen = actions[:, t]
        colors = propagate(colors, chosen // count, chosen % count, mechanisms, uniforms[:, :, t])
    return colors


def reached_parents(adjacency: Array, reached: Array, v: int) -> Array:
    """Returns (R, v) bool: which objects before v are its parents and have been reached."""
    return (adjacency[:, v, :v] != 0) & reached[:, :v]


def one_hot(places: Array, size: int) -> Array:
    """Returns (R, size) bool, true at each row's place."""
    xp = namespace(places)
    return xp.arange(size, device=device(places))[None, :] == places[:, None]


def move(positions: Array, before: Array, after: Array) -> Array:
    """Returns (R, n, 2) fresh cells: an object whose colour changed goes where its colour points.

    In index order, one cell in the direction of the new colour; it stays if that is outside or
    taken.
    """
    xp = namespace(positions)
    where = device(positions)
    world = xp.arange(positions.shape[0], device=where)
    directions = xp.asarray(DIRECTIONS, dtype=xp.int64, device=where)
    positions = xp.asarray(positions, copy=True)
    taken = xp.zeros((positions.shape[0], GRID, GRID), dtype=xp.bool, device=where)
    taken[world[:, None], positions[:, :, 0], positions[:, :, 1]] = True
    for i in range(positions.shape[1]):
        here = positions[:, i, :]
        there = here + directions[after[:, i]]
        inside = xp.all((there >= 0) & (there < GRID), axis=1)
        aim = xp.clip(there, 0, GRID - 1)
        goes = (before[:, i] != after[:, i]) & inside & ~taken[world, aim[:, 0], aim[:, 1]]
        taken[world, here[:, 0], here[:, 1]] = ~goes
        landed = xp.where(goes[:, None], there, here)
        taken[world, landed[:, 0], landed[:, 1]] = True
        positions[:, i, :] = landed
    return positions


def matches(colors: Array, targets: Array) -> Array:
    """Returns (R,) the fraction of objects (R, m) that have their target's colour."""
    xp = namespace(colors)
    return xp.mean(xp.astype(colors == targets, xp.float64), axis=1)
