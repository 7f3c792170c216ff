"""Dynamics of blocks: placing them, pushing them, and their distance from their targets.

Pure functions over arrays with a leading world axis, on NumPy and Torch alike. Positions are cells
(row, column) of a 5 x 5 grid; no two blocks of a world share one.
"""

from __future__ import annotations

from interverse.core.arrays import Array, device, namespace
from interverse.sim.raster import GRID

OFFSETS = ((0, 0), (-1, 0), (0, 1), (1, 0), (0, -1))
DIRECTIONS = ("stays", "up", "right", "down", "left")  # their names


def push(positions: Array, weights: Array, blocks: Array, directions: Array) -> tuple[Array, Array]:
    """Returns the positions after each world's block tried to move, and which pushes were invalid.

    A block moves into a free cell. A lighter block in its way moves ahead of it if the cell beyond
    is free and inside; a block as heavy or heavier stops it. A push against a lighter block with
    any third block behind it moves nothing and is called invalid; one against the wall moves
    nothing and is not.

    Args:
        positions: (N, n, 2) int64.
        weights: (N, n).
        blocks: (N,) int64, which block acts.
        directions: (N,) int64, places in `OFFSETS`.

    Returns:
        (N, n, 2) int64 fresh positions and (N,) bool.
    """
    xp = namespace(positions, weights)
    where = device(positions)
    world = xp.arange(positions.shape[0], device=where)
    offset = xp.asarray(OFFSETS, dtype=xp.int64, device=where)[directions]
    ahead = positions[world, blocks] + offset
    cells = xp.stack([ahead, ahead + offset])  # (2, N, 2): the next one, and the one beyond
    rows, columns = cells[..., None, 0], cells[..., None, 1]
    in_way = (positions[:, :, 0] == rows) & (positions[:, :, 1] == columns)  # (2, N, n)
    within = (cells >= 0) & (cells < GRID)
    inside = within[..., 0] & within[..., 1]
    met, third = in_way.any(2)
    other = xp.argmax(xp.astype(in_way[0], xp.int8), axis=1)
    # A block that stays stands in its own way, and is as heavy as itself: nothing moves.
    heavier = met & (weights[world, blocks] > weights[world, other])
    shoves = heavier & ~third & inside[1]
    moves = shoves | (~met & inside[0])
    out = xp.asarray(positions, copy=True)
    out[world[shoves], other[shoves]] = cells[1, shoves]
    out[world[moves], blocks[moves]] = ahead[moves]
    return out, heavier & third


def play(positions: Array, weights: Array, actions: Array) -> Array:
    """Returns the positions after (N, K) actions, each 5 * block + direction, one after another."""
    moves = len(OFFSETS)
    for k in range(actions.shape[1]):
        blocks, directions = actions[:, k] // moves, actions[:, k] % moves
        positions, _ = push(positions, weights, blocks, directions)
    return positions


def reward(positions: Array, targets: Array) -> Array:
    """Returns (N,) float64: minus the mean Manhattan distance of the blocks to their targets."""
    xp = namespace(positions, targets)
    distance = xp.sum(xp.abs(positions - targets), axis=(1, 2))
    return 0.0 - xp.astype(distance, xp.float64) / positions.shape[1]  # 0.0, not -0.0


def look_ahead(positions: Array, weights: Array, targets: Array) -> Array:
    """Returns (N, 5 n) rewards: what each action would earn next, without taking it.

    The first action of the greatest reward is the greedy baseline's choice.
    """
    xp = namespace(positions, weights, targets)
    count, objects = positions.shape[:2]
    columns = []
    for action in range(len(OFFSETS) * objects):
        chosen = xp.full((count, 1), action, dtype=xp.int64, device=device(positions))
        columns.append(reward(play(positions, weights, chosen), targets))
    return xp.stack(columns, axis=1)
