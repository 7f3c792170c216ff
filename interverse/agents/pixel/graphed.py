"""Updates of a pixel agent recorded as CUDA graphs: no launch cost for its 1,600 operations.

An update is one of two programs, with or without the actor's step. Each is recorded once, after a
few plain updates in which libraries choose their kernels, and replayed on the same addresses; the
generator of the agent is part of the graph, so the random numbers are those of plain updates. On a
CPU, and where recording fails, updates run plainly: the arithmetic is the same.
"""

from __future__ import annotations

import logging
from typing import final

import torch
from torch import Tensor

from interverse.agents.pixel.agent import Agent, PixelBatch

_EAGER = 3  # plain updates of each program before it is recorded
_log = logging.getLogger(__name__)


@final
class GraphedUpdate:
    """An agent's update as a callable on batches of one size."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._works = agent.device.type == "cuda"
        self._seen: dict[int, int] = {}
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, dict[str, Tensor]]] = {}
        self._batch: PixelBatch | None = None
        self._stream: torch.cuda.Stream | None = None
        if self._works:
            self._stream = torch.cuda.Stream(agent.device)

    def __call__(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; returns the losses, which the next call may overwrite."""
        if not self._works or not self._fits(batch):
            return self._agent.update(batch)
        program = self._agent.updates % self._agent.hyper.actor_every
        if program not in self._graphs:
            self._seen[program] = self._seen.get(program, 0) + 1
            if self._seen[program] <= _EAGER:
                return self._apart(batch)
            if not self._record(program, batch):
                return self._agent.update(batch)
        assert self._batch is not None
        for mine, given in zip(self._batch, batch, strict=True):
            mine.copy_(given, non_blocking=True)
        graph, losses = self._graphs[program]
        graph.replay()
        self._agent.updates += 1
        return losses

    def _fits(self, batch: PixelBatch) -> bool:
        held = self._batch
        return held is None or held.observations.shape == batch.observations.shape

    def _apart(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Runs plainly on the stream that graphs are recorded on."""
        assert self._stream is not None
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            losses = self._agent.update(batch)
        torch.cuda.current_stream().wait_stream(self._stream)
        return losses

    def _record(self, program: int, batch: PixelBatch) -> bool:
        """Records a program without running it; returns whether that worked."""
        agent, before = self._agent, self._agent.updates
        if self._batch is None:
            self._batch = PixelBatch(*(part.clone() for part in batch))
        graph = torch.cuda.CUDAGraph()
        try:
            graph.register_generator_state(agent.generator)
            with torch.cuda.graph(graph, stream=self._stream):
                losses = agent.update(self._batch)
            self._graphs[program] = graph, losses
        except RuntimeError as error:
            self._works = False
            _log.warning("updates run ungraphed, several times slower: %s", error)
        agent.updates = before
        return self._works
