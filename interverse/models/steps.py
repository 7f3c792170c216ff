"""One update of the weights, or one validation loss: plain, compiled, or as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from interverse.core.errors import InvalidValueError, explain
from interverse.models.feeds import Feed
from interverse.models.learner import Learner
from interverse.models.stages import Draw

Precision = Literal["float32", "tf32", "bf16"]
Step = Callable[[Tensor, Draw], Tensor]
"""Sample numbers, (B,) or (members, B), and random numbers to losses (members,)."""

_EAGER_STEPS = 3  # real updates run before a graph is recorded: libraries choose kernels in them


def training_step(
    learner: Learner,
    objective: nn.Module,
    feed: Feed,
    optimizer: torch.optim.Optimizer,
    *,
    precision: Precision,
    compiled: bool,
) -> Step:
    """Returns a step that updates the weights and returns the losses before the update."""
    losses = _loss_function(learner, objective, feed, precision=precision, compiled=compiled)

    def step(chosen: Tensor, draw: Draw) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        values = losses(feed.load(chosen), draw)
        values.sum().backward()
        optimizer.step()
        return values.detach()

    return step


def validation_step(
    learner: Learner, objective: nn.Module, feed: Feed, *, precision: Precision, compiled: bool
) -> Step:
    """Returns a step that only measures."""
    losses = _loss_function(learner, objective, feed, precision=precision, compiled=compiled)

    @torch.no_grad()
    def step(chosen: Tensor, draw: Draw) -> Tensor:
        return losses(feed.load(chosen), draw)

    return step


def _loss_function(
    learner: Learner, objective: nn.Module, feed: Feed, *, precision: Precision, compiled: bool
) -> Callable[[Any, Draw], Tensor]:
    axes = (feed.axes, Draw(0, 0, 0, None))  # type: ignore[arg-type]
    device = next(iter(learner.parameters.values())).device.type

    def losses(batch: Any, draw: Draw) -> Tensor:
        with autocast(device, precision):
            return learner.call(objective, (batch, draw), axes).float()

    return torch.compile(losses) if compiled else losses


def autocast(device: str, precision: Precision) -> Any:
    """Returns the context in which convolutions run in the asked precision."""
    if precision != "bf16":
        return nullcontext()
    # The cache of cast weights would outlive the update inside a recorded graph.
    return torch.autocast(device, dtype=torch.bfloat16, cache_enabled=False)


@contextmanager
def matmul_precision(precision: Precision, *, tune: bool = True) -> Iterator[None]:
    """Lets float32 products use the tensor cores (unless float32 is asked), then restores.

    `tune` lets the library try its convolution kernels on each new shape, which pays in training.
    """
    before = torch.get_float32_matmul_precision()
    tuned, exact = torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    torch.backends.cudnn.allow_tf32 = precision != "float32"
    torch.backends.cudnn.benchmark = tune
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
        torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = tuned, exact


@final
class GraphedStep:
    """A step recorded once as a CUDA graph and replayed: no launch cost per kernel.

    Batches of another size than the first (an epoch's last) run plainly.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._seen = 0
        self._size = -1
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream = torch.cuda.Stream()

    def __call__(self, chosen: Tensor, draw: Draw) -> Tensor:
        """Returns the losses of one batch."""
        if self._size < 0:
            self._size = chosen.shape[-1]
        if chosen.shape[-1] != self._size:
            return self._step(chosen, draw)
        if self._seen < _EAGER_STEPS:
            self._seen += 1
            return self._apart(chosen, draw)
        if self._graph is None:
            self._graph = self._record(chosen, draw)
        self._chosen.copy_(chosen)
        for mine, given in zip(self._draw[:3], draw[:3], strict=True):
            mine.copy_(given)
        self._graph.replay()
        return self._losses

    def _apart(self, chosen: Tensor, draw: Draw) -> Tensor:
        """Runs plainly on the stream the graph will be recorded on."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            losses = self._step(chosen, draw)
        torch.cuda.current_stream().wait_stream(self._stream)
        return losses

    def _record(self, chosen: Tensor, draw: Draw) -> torch.cuda.CUDAGraph:
        self._chosen = chosen.clone()
        order, normal, uniform = (part.clone() for part in draw[:3])
        self._draw = Draw(order, normal, uniform, structural=False)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            self._losses = self._step(self._chosen, self._draw)
        return graph


def check_device(device: str) -> None:
    """Raises for a device that Torch does not know or cannot reach."""
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise InvalidValueError(
            explain(f"device is {device!r}", allowed="cpu, cuda or cuda:N")
        ) from error
    if kind not in ("cpu", "cuda"):
        raise InvalidValueError(explain(f"device is {device!r}", allowed="cpu, cuda or cuda:N"))
    if kind == "cuda" and not torch.cuda.is_available():
        raise InvalidValueError(
            explain(
                f"device is {device!r}, but Torch finds no GPU",
                fix="Pass --device cpu, or look at `interverse doctor`",
            )
        )
