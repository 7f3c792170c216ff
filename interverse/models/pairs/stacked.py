"""Heads of many seeds and regularisers on the same frozen features, trained at once.

Each head sees the rows, batches and first weights that `fit_pairs` gives it, so that a stack of
heads equals the heads trained one by one but for rounding.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
from torch import Tensor
from torch.func import functional_call, grad, grad_and_value, stack_module_state, vmap
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.models.pairs.config import PairFit, PairModelConfig
from interverse.models.pairs.fit import (
    BETAS,
    SETS,
    Listener,
    PairRun,
    PairWork,
    batches,
    epoch_rows,
    rows_of,
)
from interverse.models.pairs.head import change_penalty
from interverse.models.pairs.tensors import PairTensors
from interverse.models.steps import matmul_precision

Weights = dict[str, Tensor]
_EPSILON = 1e-8  # of Adam
_EVALUATED_AT_ONCE = 512  # rows of each head


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HeadJob:
    """A head to train: its model, its sets of rows, its seed."""

    config: PairModelConfig
    split: Any
    seed: int


class _Batch(NamedTuple):
    """Rows of every head; `real` is 1 where they are, 0 where a shorter batch is filled up."""

    tokens: Tensor
    verb: Tensor
    noun: Tensor
    real: Tensor


def stacks(config: PairModelConfig) -> bool:
    """Returns whether heads of a model can be stacked: nothing but layers on kept features."""
    kept = config.frozen and config.frozen_norm == "fixed" and not config.head_norm
    kept = kept and not config.state_independence
    return kept and config.encoder.name != "slots"


def fit_heads(
    jobs: Sequence[HeadJob],
    data: PairTensors,
    *,
    fit: PairFit,
    listeners: Sequence[Listener] = (),
) -> list[PairRun]:
    """Returns the runs of all jobs, as `fit_pairs` gives them one by one.

    Heads differ in seed, rows, independence and sparsity alone. Nothing is written to
    `fit.out`, and listeners are told the means over all heads.
    """
    device = torch.device(fit.device)
    stack = _HeadStack(jobs, data.to(device), fit)
    histories: list[list[dict[str, Any]]] = [[] for _ in jobs]
    with matmul_precision(fit.precision, tune=False):
        for epoch in range(fit.epochs):
            rows = stack.epoch(epoch)
            for history, row in zip(histories, rows, strict=True):
                history.append({"epoch": epoch + 1, **row})
            names = ("loss", "train", *SETS[1:])
            mean = {name: sum(row[name] for row in rows) / len(rows) for name in names}
            for listener in listeners:
                listener({"epoch": epoch + 1, **mean})
    stack.finish()
    parts = zip(stack.works, stack.sets, histories, strict=True)
    return [PairRun.of(*part) for part in parts]


@final
class _HeadStack:
    """The weights of all heads and critics, a row each, and their training."""

    def __init__(self, jobs: Sequence[HeadJob], data: PairTensors, fit: PairFit) -> None:
        self.fit, self.device = fit, torch.device(fit.device)
        self.sets = [rows_of(job.split, len(data), self.device) for job in jobs]
        self.works = _works(jobs, data, fit)
        first = self.works[0]
        assert first.kept is not None  # `_works` saw to it
        self.features, self.verb, self.noun = first.kept, data.verb, data.noun
        self.first = first
        self.critics = any(job.config.independence > 0 for job in jobs)
        self.form = jobs[0].config.sparsity_form
        each = [(job.config.independence, job.config.sparsity) for job in jobs]
        self.regularisers = torch.tensor(each, device=self.device)
        self.head = _StackedAdam([work.head for work in self.works], fit.learning_rate)
        self.critic = _StackedAdam([work.critic for work in self.works], fit.learning_rate)
        self.tests = {name: _padded([sets[name] for sets in self.sets]) for name in SETS[1:]}

    def epoch(self, number: int) -> list[dict[str, float]]:
        """Trains every head on its rows in their order; returns each head's row of the history."""
        began = time.perf_counter()
        rows, real = self._order(number)
        totals = torch.zeros(len(self.works), 4, device=self.device)
        for some, weight in zip(rows.unbind(1), real.unbind(1), strict=True):
            totals += self._update(some, weight) * weight.sum(1, keepdim=True)
        means = totals / real.sum((1, 2))[:, None]
        if not bool(torch.isfinite(means[:, 0]).all()):
            raise InvalidValueError(
                "the training loss of a head is no longer a number",
                fix="Lower learning_rate or independence",
            )
        tested = {name: self._accuracy(name) for name in SETS[1:]}
        seconds = time.perf_counter() - began
        out = []
        for at, (loss, right, told, changed) in enumerate(means.tolist()):
            row = {"loss": loss, "train": right, "seconds": seconds / len(self.works)}
            row |= {"critic_loss": told} if self.works[at].config.independence > 0 else {}
            row |= {"change": changed} if self.works[at].config.sparsity > 0 else {}
            row |= {name: accuracies[at] for name, accuracies in tested.items()}
            out.append({name: round(value, 6) for name, value in row.items()})
        return out

    def _order(self, number: int) -> tuple[Tensor, Tensor]:
        """Returns the rows of all batches, (heads, batches, rows), and which of them are real."""
        found = []
        for work, sets in zip(self.works, self.sets, strict=True):
            rows = epoch_rows(sets, work.seed, number)
            found.append(_padded(batches(rows, self.fit.batch_size)))
        wide = max(rows.shape[1] for rows, _ in found)
        deep = max(len(rows) for rows, _ in found)
        pads = [(0, wide - rows.shape[1], 0, deep - len(rows)) for rows, _ in found]
        parts = zip(*found, strict=True)
        stacked = [
            torch.stack([functional.pad(x, pad) for x, pad in zip(part, pads, strict=True)])
            for part in parts
        ]
        return stacked[0], stacked[1]

    def _update(self, rows: Tensor, real: Tensor) -> Tensor:
        """Returns each head's loss, accuracy, critic's loss and change penalty of an update."""
        batch = _Batch(self.features[rows], self.verb[rows], self.noun[rows], real)
        active = real.any(1)
        named = torch.zeros(len(self.works), device=self.device)
        if self.critics:

            def judge(critic: Weights, head: Weights, batch: _Batch) -> Tensor:
                out = functional_call(self.first.head, head, (batch.tokens,))
                return self._named(critic, out.action, batch)

            judged = vmap(grad_and_value(judge))
            slopes, named = judged(self.critic.weights, self.head.weights, batch)
            self.critic.step(slopes, active & (self.regularisers[:, 0] > 0))
        both = (self.head.weights, self.critic.weights, self.regularisers)
        slopes, (loss, right, changed) = vmap(grad(self._loss, has_aux=True))(*both, batch)
        self.head.step(slopes, active)
        told = torch.stack([loss, right, named, changed], dim=1)
        return torch.where(active[:, None], told, 0.0)

    def _named(self, critic: Weights, action: Tensor, batch: _Batch) -> Tensor:
        logits = functional_call(self.first.critic, critic, (action,))
        return _mean_loss(logits, batch.noun, batch.real)

    def _loss(
        self, head: Weights, critic: Weights, regularisers: Tensor, batch: _Batch
    ) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        tokens, verb, _, real = batch
        out, count = functional_call(self.first.head, head, (tokens,)), real.sum().clamp(min=1)
        touched = out.features * real[:, None, None, None]
        changed = change_penalty(touched, self.first.groups[verb], self.first.blocks, self.form)
        changed = changed * len(real) / count
        loss = _mean_loss(out.logits, verb, real) + regularisers[1] * changed
        loss = loss - regularisers[0] * self._named(critic, out.action, batch)
        right = ((out.logits.argmax(1) == verb) * real).sum() / count
        return loss, (loss.detach(), right, changed.detach())

    @torch.no_grad()
    def _accuracy(self, name: str) -> list[float]:
        def logits(weights: Weights, tokens: Tensor) -> Tensor:
            out: Tensor = functional_call(self.first.head, weights, (tokens,)).logits
            return out

        rows, real = self.tests[name]
        right = torch.zeros(len(rows), device=self.device)
        parts = (part.split(_EVALUATED_AT_ONCE, dim=1) for part in (rows, real))
        for some, weight in zip(*parts, strict=True):
            out = vmap(logits)(self.head.weights, self.features[some])
            right += ((out.argmax(2) == self.verb[some]) * weight).sum(1)
        found: list[float] = (right / real.sum(1)).tolist()
        return found

    def finish(self) -> None:
        """Gives each head and critic its weights."""
        for at, work in enumerate(self.works):
            for stack, module in ((self.head, work.head), (self.critic, work.critic)):
                module.load_state_dict({n: value[at] for n, value in stack.weights.items()})


@final
class _StackedAdam:
    """Weights of many equal networks, and Adam on each; those at rest keep all they have."""

    def __init__(self, networks: Sequence[torch.nn.Module], rate: float) -> None:
        held, _ = stack_module_state(list(networks))
        self.weights: Weights = {name: value.detach().clone() for name, value in held.items()}
        self.rate = rate
        self.mean = {name: torch.zeros_like(value) for name, value in self.weights.items()}
        self.square = {name: torch.zeros_like(value) for name, value in self.weights.items()}
        some = next(iter(self.weights.values()))
        self.steps = torch.zeros(len(networks), dtype=torch.float64, device=some.device)

    def step(self, slopes: Mapping[str, Tensor], active: Tensor) -> None:
        """Makes one step of every network that is active."""
        low, high = BETAS
        self.steps += active
        counts = self.steps.clamp(min=1)
        size = (self.rate / (1 - low**counts)).float()
        scale = (1 - high**counts).sqrt().float()
        for name, slope in slopes.items():
            shape = (-1, *([1] * (slope.ndim - 1)))
            on = active.view(shape)
            mean = torch.lerp(slope, self.mean[name], low)
            square = torch.lerp(slope.square(), self.square[name], high)
            self.mean[name] = torch.where(on, mean, self.mean[name])
            self.square[name] = torch.where(on, square, self.square[name])
            move = size.view(shape) * mean / (square.sqrt() / scale.view(shape) + _EPSILON)
            self.weights[name] = torch.where(on, self.weights[name] - move, self.weights[name])


def _works(jobs: Sequence[HeadJob], data: PairTensors, fit: PairFit) -> list[PairWork]:
    """Returns a model for each job; those of a seed start alike, and all share the features."""

    def shared(config: PairModelConfig) -> dict[str, Any]:
        own = ("independence", "sparsity")
        return {name: value for name, value in config.record().items() if name not in own}

    made: dict[int, PairWork] = {}
    out = []
    for job in jobs:
        if not stacks(job.config) or shared(job.config) != shared(jobs[0].config):
            raise InvalidValueError(
                "the models of a stack differ, or train their encoder",
                allowed="one frozen encoder and head; independence and sparsity may differ",
            )
        if job.seed not in made:
            made[job.seed] = PairWork(job.config, data, fit, job.seed)
        work = copy.copy(made[job.seed])
        work.config = job.config
        work.head, work.critic = copy.deepcopy(work.head), copy.deepcopy(work.critic)
        out.append(work)
    if len(made) > 1 and out[0].encoder.source == "random":
        raise InvalidValueError(
            "random encoders of several seeds share no features", fix="Stack one seed"
        )
    out[0].keep_features()
    for work in out[1:]:
        work.encoder, work.kept = out[0].encoder, out[0].kept
    return out


def _padded(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Returns rows of unequal length as one matrix, and 1 where they are, 0 where they are not."""
    matrix = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
    counts = torch.tensor([len(some) for some in rows], device=matrix.device)
    places = torch.arange(matrix.shape[1], device=matrix.device)
    return matrix, (places < counts[:, None]).float()


def _mean_loss(logits: Tensor, labels: Tensor, real: Tensor) -> Tensor:
    losses = functional.cross_entropy(logits, labels, reduction="none")
    return (losses * real).sum() / real.sum().clamp(min=1)
