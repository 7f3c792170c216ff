"""Recorded work on a GPU: a function's kernels, launched again in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import torch


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
            self._record()
        assert self._graph is not None
        self._graph.replay()
        return self._result

    def _record(self) -> None:
        torch.cuda.synchronize(self._device)
        stream: Any = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(stream):  # first runs load kernels, which a recording must not
            for _ in range(2):
                self._function()
        torch.cuda.synchronize(self._device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._result = self._function()
        self._graph = graph
        torch.cuda.synchronize(self._device)
