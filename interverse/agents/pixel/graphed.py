"""Updates and searches of a pixel agent as CUDA graphs: no launch cost for 1,600 operations.

An update gathers its batch and learns from it, with or without the actor's step. Each of the two
programs is recorded once, after a few plain updates in which libraries choose their kernels, and
replayed on the same addresses; the generator of the agent is part of the graph, so the random
numbers are those of plain updates. On a CPU, and where recording fails, updates run plainly: the
arithmetic is the same.

Runs side by side each have a stream. All of them are driven by one thread, and Torch waits for the
whole device before it records, so nothing of another run happens during a recording.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar, final

import torch
from torch import Tensor

from interverse.agents.pixel.agent import PixelBatch, PixelLearner

_EAGER = 3  # plain updates of each program before it is recorded
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@final
class GraphedUpdate:
    """An agent's update as a callable on what batches of one size are made of.

    Args:
        agent: who learns.
        gather: makes a batch of what is given, such as the frames of a replay buffer; part of the
            recorded program. Without it, batches themselves are given.
    """

    def __init__(
        self, agent: PixelLearner, gather: Callable[[Any], PixelBatch] | None = None
    ) -> None:
        self._agent, self._gather = agent, gather
        self._works = agent.device.type == "cuda"
        self._seen: dict[int, int] = {}
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, dict[str, Tensor]]] = {}
        self._given: tuple[Tensor, ...] = ()  # what recorded programs read
        self._stream = _recording_stream(agent.device)

    def __call__(self, given: Any) -> dict[str, Tensor]:
        """Learns; returns the losses, which the next call may overwrite.

        Args:
            given: a named tuple of tensors with a method `to`: a batch, or what `gather` takes.
        """
        if not self._works or not self._fits(given):
            return self._plain(given.to(self._agent.device))
        program = self._agent.updates % self._agent.hyper.actor_every
        if program not in self._graphs:
            self._seen[program] = self._seen.get(program, 0) + 1
            here = given.to(self._agent.device)
            if self._seen[program] <= _EAGER:
                return _apart(self._stream, self._plain, here)
            if not self._record(program, here):
                return self._plain(here)
        for mine, new in zip(self._given, given, strict=True):
            mine.copy_(new if new.is_cuda else new.pin_memory(), non_blocking=True)
        graph, losses = self._graphs[program]
        graph.replay()
        self._agent.updates += 1
        return losses

    def _fits(self, given: Any) -> bool:
        return not self._given or self._given[0].shape == given[0].shape

    def _plain(self, given: Any) -> dict[str, Tensor]:
        return self._agent.update(given if self._gather is None else self._gather(given))

    def _record(self, program: int, given: Any) -> bool:
        """Records a program without running it; returns whether that worked."""
        agent, before = self._agent, self._agent.updates
        if not self._given:
            self._given = type(given)(*(part.clone() for part in given))
        graph = torch.cuda.CUDAGraph()
        try:
            graph.register_generator_state(agent.generator)
            with torch.cuda.graph(graph, stream=self._stream):
                losses = self._plain(self._given)
            self._graphs[program] = graph, losses
        except RuntimeError as error:
            self._works = False
            _log.warning("updates run ungraphed, several times slower: %s", error)
        agent.updates = before
        return self._works


@final
class GraphedCall:
    """A function of tensors of one shape that a GPU replays; plain elsewhere.

    Args:
        function: takes and gives tensors; it must not wait for the GPU.
        generator: the randomness it uses.
    """

    def __init__(
        self, function: Callable[..., tuple[Tensor, ...]], generator: torch.Generator
    ) -> None:
        self._function, self._generator = function, generator
        self._works, self._calls = generator.device.type == "cuda", 0
        self._stream = _recording_stream(generator.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._given: tuple[Tensor, ...] = ()
        self._made: tuple[Tensor, ...] = ()

    def __call__(self, *given: Tensor) -> tuple[Tensor, ...]:
        """Returns what the function gives; the next call may overwrite it."""
        self._calls += 1
        if self._graph is None and self._works and self._calls > _EAGER:
            self._record(given)
        shapes = [part.shape for part in self._given]
        if self._graph is None or shapes != [part.shape for part in given]:
            return _apart(self._stream, self._function, *given)
        for mine, new in zip(self._given, given, strict=True):
            mine.copy_(new)
        self._graph.replay()
        return self._made

    def _record(self, given: tuple[Tensor, ...]) -> None:
        """Records the function without running it, if that works."""
        self._given, graph = tuple(part.clone() for part in given), torch.cuda.CUDAGraph()
        try:
            graph.register_generator_state(self._generator)
            with torch.cuda.graph(graph, stream=self._stream):
                self._made = self._function(*self._given)
            self._graph = graph
        except RuntimeError as error:
            self._works = False
            _log.warning("plans are searched ungraphed, several times slower: %s", error)


def _recording_stream(device: torch.device) -> torch.cuda.Stream | None:
    """Returns the stream to record on: the present one, or a new one where that is the default.

    A run with a stream of its own records there: cuBLAS has a workspace for each stream, which a
    recorded program keeps using, so no two runs may record on one.
    """
    if device.type != "cuda":
        return None
    present = torch.cuda.current_stream(device)
    is_own = present != torch.cuda.default_stream(device)
    return present if is_own else torch.cuda.Stream(device)


def _apart(stream: torch.cuda.Stream | None, function: Callable[..., _T], *given: Any) -> _T:
    """Runs a function, on a GPU on the stream that graphs are recorded on."""
    if stream is None:
        return function(*given)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        made = function(*given)
    torch.cuda.current_stream().wait_stream(stream)
    return made
