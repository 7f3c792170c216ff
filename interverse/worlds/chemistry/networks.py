"""Networks that a world is made with: drawn so that every edge of its graph matters, or of a file.

The *effect* of an edge j -> i is the total variation between the chances of object i's colours
under two different colours of object j, averaged over all pairs of colours and over the colours of
the other parents, each equally likely. An object's network is the first of its draws in which
every parent's effect reaches the least that is asked for; draw number a of `cpt_seed` s has the
noise address (s, "cpt", a). Where no draw does, it is the one whose weakest edge is the strongest.
An object with more than six parents keeps its first draw: among so many, few draws give each of
them such an effect.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, explain
from interverse.core.rng import generator
from interverse.worlds.chemistry import cpt
from interverse.worlds.chemistry.cpt import CptSizes, CptWeights, Family

LEAST_EFFECT = 0.2
"""The least effect of every edge in the worlds as registered."""
DRAWS = 100
"""How many draws of a network are tried."""
_MOST_PARENTS = 6
_MOST_CONTEXTS = 1024  # colourings of the parents; of more, so many are drawn


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Screen:
    """The world that networks are drawn for.

    Attributes:
        sizes: of the networks.
        family: how layers are drawn.
        gain, bias: scales of layers and biases.
        adjacency: (n, n); [i, j] = 1: j is a parent of i.
        least: the least effect of every edge; 0 takes every first draw.
        features: (k, f) what a network sees of each colour; None: the colour itself.
    """

    sizes: CptSizes
    family: Family
    gain: float
    bias: float
    adjacency: NDArray[np.int64]
    least: float
    features: NDArray[np.float64] | None = None

    def weights(self, seed: int) -> CptWeights:
        """Returns one set of networks for a seed."""
        kept = self._draw(seed, 0)
        if self.least <= 0.0:
            return kept
        parents = self.adjacency.sum(axis=1)
        for v in np.flatnonzero((parents > 0) & (parents <= _MOST_PARENTS)).tolist():
            best, strongest = kept, self._weakest_edge(kept, v)
            for attempt in range(1, DRAWS):
                if strongest >= self.least:
                    break
                drawn = self._draw(seed, attempt)
                weakest = self._weakest_edge(drawn, v)
                if weakest > strongest:
                    best, strongest = drawn, weakest
            if best is not kept:  # the network of object v alone
                parts = {part: getattr(kept, part).copy() for part in cpt.PARTS}
                for part, array in parts.items():
                    array[:, v] = getattr(best, part)[:, v]
                kept = replace(kept, **parts)
        return kept

    def effects(self, weights: CptWeights) -> NDArray[np.float64]:
        """Returns (n, n) the effect of every edge; [i, j]: of j on i, 0 where there is none."""
        out = np.zeros(self.adjacency.shape)
        for i, j in np.argwhere(self.adjacency).tolist():
            out[i, j] = self._effect(weights, j, i)
        return out

    def _draw(self, seed: int, attempt: int) -> CptWeights:
        address = generator(seed=seed, name="cpt", episode=attempt)
        return cpt.draw_weights([address], self.sizes, self.family)

    def _weakest_edge(self, weights: CptWeights, v: int) -> float:
        return min(self._effect(weights, int(j), v) for j in np.flatnonzero(self.adjacency[v]))

    def _effect(self, weights: CptWeights, parent: int, child: int) -> float:
        contexts = self._contexts(parent, child)
        chances = []
        for color in range(self.sizes.colors):
            contexts[:, parent] = color
            chances.append(self._chances(weights, child, contexts))
        distances = [
            0.5 * np.abs(a - b).sum(axis=1).mean()
            for place, a in enumerate(chances)
            for b in chances[:place]
        ]
        return float(np.mean(distances))

    def _contexts(self, parent: int, child: int) -> NDArray[np.int64]:
        """Returns (C, n) colourings of the child's other parents: all, or as many as fit."""
        n, k = self.sizes.objects, self.sizes.colors
        others = [int(j) for j in np.flatnonzero(self.adjacency[child]) if j != parent]
        if k ** len(others) > _MOST_CONTEXTS:
            rng = generator(seed=0, name="cpt/contexts")
            return rng.integers(k, size=(_MOST_CONTEXTS, n))
        return cpt.colourings(others, n, k)

    def _chances(
        self, weights: CptWeights, v: int, colors: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        mechanisms = cpt.alike(weights, self.adjacency, self.gain, self.bias, len(colors))
        if self.features is None:
            return np.asarray(cpt.probabilities(mechanisms, v, colors))
        first = cpt.first_layer_dense(mechanisms, v, self.features[colors])
        return np.diff(cpt.cumulative(mechanisms, v, first), axis=1, prepend=0.0)


# --- files that the original saved --------------------------------------------------------------
# A mapping that Torch saved: `graph` (n, n), and `mlp0` to `mlp{n-1}`, each the state of a network
# of two layers whose weights are (hidden, n * k) and (k, hidden).

_ALLOWED = "a file with graph (n, n) and mlp0 .. mlp{n-1}, two layers each"


def file_graph(path: str | Path, objects: int) -> NDArray[np.int64]:
    """Returns the (n, n) graph of a file; [i, j] = 1: j is a parent of i."""
    found = np.asarray(_read(path)["graph"]).astype(np.int64)
    if found.shape != (objects, objects) or np.triu(found).any():
        raise FileFormatError(
            f"{Path(path).name} has a graph of shape {found.shape}, objects is {objects}",
            allowed="one row per object, parents before their children",
        )
    return found


def file_weights(path: str | Path, sizes: CptSizes, *, gain: float, bias: float) -> CptWeights:
    """Returns the networks of a file, at unit gain and bias.

    Args:
        path: the file.
        sizes: of the world's networks, which the file's must have.
        gain: scale of the world's layers, by which the file's weights are divided.
        bias: scale of the world's biases, likewise.
    """
    n, k, h = sizes.objects, sizes.colors, sizes.hidden
    each = [_layers(path, _read(path)[f"mlp{i}"], sizes) for i in range(n)]
    first = np.stack([layer[0] for layer in each]).reshape(n, h, n, k).transpose(0, 2, 3, 1)
    second = np.stack([layer[2] for layer in each]).transpose(0, 2, 1)
    scales, widths = (gain or 1.0), (bias or 1.0)
    return CptWeights(
        first=np.ascontiguousarray(first)[None] / scales,
        first_bias=np.stack([layer[1] for layer in each])[None] / widths,
        second=np.ascontiguousarray(second)[None] / scales,
        second_bias=np.stack([layer[3] for layer in each])[None] / widths,
    )


def _layers(
    path: str | Path, state: Mapping[str, Any], sizes: CptSizes
) -> list[NDArray[np.float64]]:
    """Returns weight and bias of both layers; names differ between versions, shapes do not."""
    found = [np.asarray(part, dtype=np.float64) for part in state.values()]
    n, k, h = sizes.objects, sizes.colors, sizes.hidden
    wanted = [(h, n * k), (h,), (k, h), (k,)]
    if [part.shape for part in found] != wanted:
        raise FileFormatError(
            f"{Path(path).name} has layers of {[part.shape for part in found]}",
            allowed=str(wanted),
            fix="Choose objects, colors and hidden as the file has them",
        )
    return found


@functools.lru_cache(maxsize=8)
def _read(path: str | Path) -> Mapping[str, Any]:
    from interverse.core.files.tensor_files import read_torch  # brings Torch

    if not Path(path).is_file():
        raise FileFormatError(explain(f"cpt_file is {path!r}: there is no such file"))
    found = read_torch(path)
    if "graph" not in found or "mlp0" not in found:
        raise FileFormatError(f"{Path(path).name} has no graph or no mlp0", allowed=_ALLOWED)
    return dict(found)
