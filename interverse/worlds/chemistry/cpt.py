"""Mechanisms of colours: one small random network per object, sampled with addressed noise.

The network of object v maps what its parents show to the chances of its own colours: a linear layer
of the parents' features times a 0/1 parent mask, ReLU, a linear layer, softmax. Layers are stored
at unit gain and bias, so that `cpt/gain` and `cpt/bias` stay variables: weight = gain * stored.

Sums run in a fixed order over features and hidden units, one elementwise operation per term, never
as a matrix product over the world axis: a batch of N gives the bits of N batches of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, device, namespace

Family = Literal["orthogonal", "uniform"]
FAMILIES: tuple[Family, ...] = ("orthogonal", "uniform")
MOST_TABLE_ROWS = 2**14
PARTS = ("first", "first_bias", "second", "second_bias")
"""The names of a network's arrays, as `CptWeights` has them."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CptSizes:
    """How large the networks are."""

    objects: int
    features: int  # per object: its colours one by one, or red, green and blue
    hidden: int
    colors: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CptWeights:
    """Networks at unit gain: one set shared by all worlds (W = 1), or one per world (W = N)."""

    first: Array  # (W, child, parent, feature, hidden)
    first_bias: Array  # (W, child, hidden)
    second: Array  # (W, child, hidden, color)
    second_bias: Array  # (W, child, color)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CptTable:
    """One object's chances for every colouring of its parents."""

    parents: tuple[int, ...]
    cumulative: Array  # (k ** len(parents), k); the first parent counts fastest


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mechanisms:
    """What makes the colours of R worlds. Worlds that are `standard` are read off the tables."""

    weights: CptWeights
    adjacency: Array  # (R, n, n); [i, j] = 1: j is a parent of i
    gain: Array  # (R,)
    bias: Array  # (R,)
    tables: Sequence[CptTable | None] = ()  # per object; None where one would be too large
    standard: Array | None = None  # (R,) bool: worlds that the tables are of; None: all are
    own: Sequence[
        Array | None
    ] = ()  # per object (R, rows, k): chances that worlds have of their own


def draw_weights(
    generators: Sequence[np.random.Generator], sizes: CptSizes, family: Family
) -> CptWeights:
    """Returns one set of networks per generator: orthogonal or U(-1, 1) layers, U(-1, 1) biases."""
    n, h, k = sizes.objects, sizes.hidden, sizes.colors
    shapes: dict[str, tuple[int, ...]] = {"first": (n, h, n * sizes.features), "second": (n, k, h)}
    biases: dict[str, tuple[int, ...]] = {"first_bias": (n, h), "second_bias": (n, k)}
    parts: dict[str, list[NDArray[np.float64]]] = {name: [] for name in [*shapes, *biases]}
    for rng in generators:
        for name, shape in shapes.items():
            uniform = family == "uniform"
            parts[name].append(rng.uniform(-1, 1, shape) if uniform else rng.normal(size=shape))
        for name, shape in biases.items():
            parts[name].append(rng.uniform(-1, 1, shape))
    stacked = {name: np.stack(part) for name, part in parts.items()}
    if family == "orthogonal":
        stacked |= {name: orthogonal(stacked[name]) for name in shapes}
    first = stacked["first"].reshape(-1, n, h, n, sizes.features)
    return CptWeights(
        first=np.ascontiguousarray(first.transpose(0, 1, 3, 4, 2)),
        first_bias=stacked["first_bias"],
        second=np.ascontiguousarray(stacked["second"].transpose(0, 1, 3, 2)),
        second_bias=stacked["second_bias"],
    )


def orthogonal(normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns (..., rows, columns) with orthonormal rows or columns, from standard normal numbers.

    Whichever are fewer are orthonormal; uniform over all such matrices.
    """
    tall = normal.shape[-2] >= normal.shape[-1]
    q, r = np.linalg.qr(normal if tall else np.swapaxes(normal, -1, -2))
    q = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return q if tall else np.swapaxes(q, -1, -2)


def first_layer(mechanisms: Mechanisms, v: int, colors: Array) -> Array:
    """Returns (R, hidden) sums before the ReLU of object v, for colours (R, n) seen one-hot."""
    weights, xp = mechanisms.weights, namespace(colors)
    total = mechanisms.bias[:, None] * weights.first_bias[:, v]
    shared = weights.first.shape[0] == 1
    row = 0 if shared else xp.arange(colors.shape[0], device=device(colors))
    for j in range(v):
        chosen = weights.first[row, v, j, colors[:, j]]
        total += (mechanisms.gain * mechanisms.adjacency[:, v, j])[:, None] * chosen
    return total


def first_layer_dense(mechanisms: Mechanisms, v: int, features: Array) -> Array:
    """Returns (R, hidden) sums before the ReLU of object v, for features (R, n, f)."""
    weights = mechanisms.weights
    total = mechanisms.bias[:, None] * weights.first_bias[:, v]
    for j in range(v):
        own = weights.first[:, v, j]
        scale = mechanisms.gain * mechanisms.adjacency[:, v, j]
        for f in range(features.shape[2]):
            total += (scale * features[:, j, f])[:, None] * own[:, f]
    return total


def cumulative(mechanisms: Mechanisms, v: int, first: Array) -> Array:
    """Returns (R, k) cumulative chances of object v's colours, from its first layer's sums."""
    xp = namespace(first)
    weights = mechanisms.weights
    active = mechanisms.gain[:, None] * xp.where(first > 0.0, first, xp.zeros_like(first))
    second = weights.second[:, v]
    scores = mechanisms.bias[:, None] * weights.second_bias[:, v]
    for h in range(active.shape[1]):
        scores += active[:, h, None] * second[:, h]
    chances = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    for c in range(1, chances.shape[1]):
        chances[:, c] += chances[:, c - 1]
    return chances / chances[:, -1:]


def probabilities(mechanisms: Mechanisms, v: int, colors: Array) -> Array:
    """Returns (R, k) chances of object v's colours, given the colours (R, n) of all objects."""
    xp = namespace(colors)
    ends = cumulative(mechanisms, v, first_layer(mechanisms, v, colors))
    return xp.concat([ends[:, :1], ends[:, 1:] - ends[:, :-1]], axis=1)


def pick(ends: Array, uniforms: Array) -> Array:
    """Returns (R,) colours: the inverse of cumulative chances (R, k) at uniform numbers (R,)."""
    xp = namespace(ends)
    return xp.sum(xp.astype(uniforms[:, None] >= ends[:, :-1], xp.int64), axis=1)


def sample(mechanisms: Mechanisms, v: int, colors: Array, uniforms: Array) -> Array:
    """Returns (R,) colours of object v, given all colours (R, n) and its uniform numbers (R,)."""
    xp = namespace(colors)
    table = mechanisms.tables[v] if mechanisms.tables else None
    own = mechanisms.own[v] if mechanisms.own else None
    if own is not None and table is not None:
        world = xp.arange(colors.shape[0], device=device(colors))
        chances = own[world, table_row(table, colors)]
        for c in range(1, chances.shape[1]):
            chances[:, c] += chances[:, c - 1]
        return pick(chances / chances[:, -1:], uniforms)
    if table is None:
        return pick(cumulative(mechanisms, v, first_layer(mechanisms, v, colors)), uniforms)
    out = pick(table.cumulative[table_row(table, colors)], uniforms)
    if mechanisms.standard is None or bool(xp.all(mechanisms.standard)):
        return out
    others = xp.nonzero(~mechanisms.standard)[0]
    part = take(mechanisms, others)
    first = first_layer(part, v, colors[others])
    out[others] = pick(cumulative(part, v, first), uniforms[others])
    return out


def take(mechanisms: Mechanisms, rows: Array) -> Mechanisms:
    """Returns the mechanisms of some rows that share their networks, without tables."""
    return Mechanisms(
        weights=mechanisms.weights,
        adjacency=mechanisms.adjacency[rows],
        gain=mechanisms.gain[rows],
        bias=mechanisms.bias[rows],
    )


def table_row(table: CptTable, colors: Array) -> Array:
    """Returns (R,) rows of a table for colours (R, n)."""
    k = table.cumulative.shape[1]
    row = colors[:, 0] * 0
    for place, parent in enumerate(table.parents):
        row += k**place * colors[:, parent]
    return row


def chances_of(table: CptTable) -> NDArray[np.float64]:
    """Returns (rows, k) the chances behind a table."""
    return np.diff(np.asarray(table.cumulative), axis=1, prepend=0.0)


def alike(
    weights: CptWeights, adjacency: NDArray[np.int64], gain: float, bias: float, count: int
) -> Mechanisms:
    """Returns the mechanisms of so many worlds with one graph, gain and bias."""
    return Mechanisms(
        weights=weights,
        adjacency=np.broadcast_to(adjacency, (count, *adjacency.shape)),
        gain=np.full(count, gain),
        bias=np.full(count, bias),
    )


def colourings(parents: Sequence[int], objects: int, colors: int) -> NDArray[np.int64]:
    """Returns every colouring of some objects, (C, n), all others 0; the first counts fastest."""
    found = np.zeros((colors ** len(parents), objects), dtype=np.int64)
    for place, parent in enumerate(parents):
        found[:, parent] = np.arange(len(found)) // colors**place % colors
    return found


def tabulate(
    weights: CptWeights, adjacency: NDArray[np.int64], gain: float, bias: float
) -> list[CptTable | None]:
    """Returns each object's table for one graph, gain and bias; None where it would be too large.

    The rows come from the same operations as a direct evaluation, so both give the same bits.
    """
    n, k = weights.second.shape[1], weights.second.shape[3]
    tables: list[CptTable | None] = []
    for v in range(n):
        parents = tuple(int(j) for j in np.flatnonzero(adjacency[v]))
        if k ** len(parents) > MOST_TABLE_ROWS:
            tables.append(None)
            continue
        colors = colourings(parents, n, k)
        every = alike(weights, adjacency, gain, bias, len(colors))
        ends = cumulative(every, v, first_layer(every, v, colors))
        tables.append(CptTable(parents=parents, cumulative=ends))
    return tables
