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
from functools import partial
from typing import Any, Generic, TypeVar, final

import torch
from torch import Tensor

from interverse.agents.pixel.agent import PixelBatch, PixelLearner

_EAGER = 3  # plain calls before a program is recorded
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@final
class GraphedCall(Generic[_T]):
    """A function of tensors of one shape that a GPU replays; plain elsewhere.

    Args:
        function: takes tensors and gives tensors; it must not wait for the GPU.
        generator: the randomness it uses; it is on the device.
        stream: where it is recorded; by default see `_recording_stream`.
        does: what it does, for the line that is logged where recording fails.
    """

    def __init__(
        self,
        function: Callable[..., _T],
        generator: torch.Generator,
        stream: torch.cuda.Stream | None = None,
        does: str = "plans are searched",
    ) -> None:
        self._function, self._generator, self._does = function, generator, does
        self._works, self._calls = generator.device.type == "cuda", 0
        self._stream = stream or _recording_stream(generator.device)
        self._recorded: tuple[torch.cuda.CUDAGraph, _T] | None = None
        self._given: tuple[Tensor, ...] = ()  # what the recorded program reads

    def __call__(self, *given: Tensor) -> _T:
        """Returns what the function gives; the next call may overwrite it."""
        self._calls += 1
        if self._recorded is None and self._works and self._calls > _EAGER:
            self._record(given)
        shapes = [part.shape for part in self._given]
        if self._recorded is None or shapes != [part.shape for part in given]:
            device = self._generator.device
            return self._apart(*(part.to(device, non_blocking=True) for part in given))
        for mine, new in zip(self._given, given, strict=True):
            mine.copy_(new if new.is_cuda else new.pin_memory(), non_blocking=True)
        graph, made = self._recorded
        graph.replay()
        return made

    def _record(self, given: tuple[Tensor, ...]) -> None:
        """Records the function without running it, if that works."""
        device, graph = self._generator.device, torch.cuda.CUDAGraph()
        self._given = tuple(part.to(device, copy=True) for part in given)
        try:
            graph.register_generator_state(self._generator)
            with torch.cuda.graph(graph, stream=self._stream):
                made = self._function(*self._given)
            self._recorded = graph, made
        except RuntimeError as error:
            self._works = False
            _log.warning("%s ungraphed, several times slower: %s", self._does, error)

    def _apart(self, *given: Tensor) -> _T:
        """Runs the function, on a GPU on the stream that it is recorded on."""
        if self._stream is None:
            return self._function(*given)
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            made = self._function(*given)
        torch.cuda.current_stream().wait_stream(self._stream)
        return made


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
        self._programs: dict[int, GraphedCall[dict[str, Tensor]]] = {}
        self._done = 0  # updates before the present one
        self._stream = _recording_stream(agent.device)

    def __call__(self, given: Any) -> dict[str, Tensor]:
        """Learns from a named tuple of tensors, a batch or what `gather` takes.

        Returns the losses, which the next call may overwrite.
        """
        agent = self._agent
        self._done = agent.updates
        program = self._done % agent.hyper.actor_every
        if program not in self._programs:
            learn = partial(self._learn, type(given))
            self._programs[program] = GraphedCall(
                learn, agent.generator, self._stream, "updates run"
            )
        losses = self._programs[program](*given)
        agent.updates = self._done + 1  # replaying does not count
        return losses

    def _learn(self, kind: Callable[..., Any], *parts: Tensor) -> dict[str, Tensor]:
        given = kind(*parts)
        self._agent.updates = self._done  # a recording that failed has counted
        return self._agent.update(given if self._gather is None else self._gather(given))


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
