"""Files of graphs and networks that the original benchmark saved.

A file is a Torch-saved mapping: `graph` (n, n), and `mlp0` to `mlp{n-1}`, each the state of a
network of two layers whose weights are (hidden, n * k) and (k, hidden).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, explain
from interverse.worlds.chemistry.cpt import CptSizes, CptWeights

_ALLOWED = "a file with graph (n, n) and mlp0 .. mlp{n-1}, two layers each"


def graph(path: str | Path, objects: int) -> NDArray[np.int64]:
    """Returns the (n, n) graph of a file; [i, j] = 1: j is a parent of i."""
    found = np.asarray(_read(path)["graph"]).astype(np.int64)
    if found.shape != (objects, objects) or np.triu(found).any():
        raise FileFormatError(
            explain(
                f"{Path(path).name} has a graph of shape {found.shape}, objects is {objects}",
                allowed="one row per object, parents before their children",
            )
        )
    return found


def weights(path: str | Path, sizes: CptSizes, *, gain: float, bias: float) -> CptWeights:
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
            explain(
                f"{Path(path).name} has layers of {[part.shape for part in found]}",
                allowed=str(wanted),
                fix="Choose objects, colors and hidden as the file has them",
            )
        )
    return found


@functools.lru_cache(maxsize=8)
def _read(path: str | Path) -> Mapping[str, Any]:
    from interverse.core.files.tensor_files import read_torch  # brings Torch

    if not Path(path).is_file():
        raise FileFormatError(explain(f"cpt_file is {path!r}: there is no such file"))
    found = read_torch(path)
    if "graph" not in found or "mlp0" not in found:
        raise FileFormatError(
            explain(f"{Path(path).name} has no graph or no mlp0", allowed=_ALLOWED)
        )
    return dict(found)
