"""Recorded work on a GPU: a function's kernels, launched again in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import torch

from interverse.core.rng import Noise


@final
class Recorded:
    """A function without arguments whose tensors stay where they are, recorded as a CUDA graph.

    It reads and writes tensors in place and returns the same ones at every call. On the CPU it is
    the function itself.
    """

    def __init__(self, function: Callable[[], Any], device: torch.device) -> None:
        self._function, self._device = function, device
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result: Any = None

    def __call__(self) -> Any:
        """Returns what the function gives for the present values of its tensors."""
        if self._device.type != "cuda":
            return self._function()
        if self._graph is None:
            self._graph = self._record()
        self._graph.replay()
        return self._result

    def _record(self) -> torch.cuda.CUDAGraph:
        torch.cuda.synchronize(self._device)
        new_stream: Any = torch.cuda.Stream  # Torch leaves it untyped
        stream = new_stream(self._device)
        with torch.cuda.stream(stream):  # first runs load kernels, which a recording must not
            for _ in range(2):
                self._function()
        torch.cuda.synchronize(self._device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._result = self._function()
        torch.cuda.synchronize(self._device)
        return graph


@final
class RecordedUniforms:
    """One number per world and name at an address (`Noise.uniforms`), drawn in one launch.

    The generator's ten rounds are two hundred small kernels; launched one by one they take longer
    than the rest of a grid world's step.
    """

    def __init__(self, names: Sequence[str], num_worlds: int, device: str) -> None:
        where = torch.device(device)
        self._address = torch.zeros((3, num_worlds), dtype=torch.int64, device=where)
        self._draw = Recorded(lambda: Noise(*self._address).uniforms(names)[:, :, 0], where)

    def __call__(self, noise: Noise) -> torch.Tensor:
        """Returns (N, names) float64 in [0, 1), the same tensor at every call."""
        host = np.stack([noise.seeds, noise.episodes, noise.steps])
        self._address.copy_(torch.from_numpy(host))
        drawn: torch.Tensor = self._draw()
        return drawn
