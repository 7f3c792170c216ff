"""Ranking evaluation: can a prediction be told from the predictions of other episodes?

For each episode the true state after K steps is compared with every episode's prediction. Two
ranks stand side by side. The *strict* one counts predictions that are strictly nearer than the
own one, as the original does: ties favour the model, so an encoder that maps everything to one
point scores 100 %. The *guarded* one also counts equally near ones, unless the two true frames
are the same picture: a collapsed encoder gets nothing, a perfect one still gets 100 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor

from interverse.errors import InvalidValueError, explain
from interverse.models.losses import image_loss
from interverse.models.source import TransitionSource
from interverse.models.steps import matmul_precision
from interverse.models.world_model import WorldModel
from interverse.rng import generator

_ROWS = 256  # rows of distances that stay in cache
_IMAGES = 512
HORIZONS = (1, 5, 10)


class Ranks(NamedTuple):
    """Ranks (N,) int64 of each episode's own prediction, 1 the best."""

    strict: Tensor
    guarded: Tensor


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RankingScore:
    """Scores at one horizon, in percent; they depend on `references`: compare equal ones only."""

    hits: float
    mrr: float
    guarded_hits: float
    guarded_mrr: float
    reconstruction: float | None
    """Binary cross-entropy per value of the predicted frame; None without a decoder."""
    references: int

    def rounded(self) -> RankingScore:
        """Returns the scores as the published tables round them before averaging over seeds."""
        rec = self.reconstruction
        return RankingScore(
            hits=round(self.hits, 2),
            mrr=round(self.mrr, 2),
            guarded_hits=round(self.guarded_hits, 2),
            guarded_mrr=round(self.guarded_mrr, 2),
            # Theirs is a sum over 7500 values, rounded to two decimals.
            reconstruction=None if rec is None else round(rec * 7500, 2) / 7500,
            references=self.references,
        )


def ranks(true: Tensor, predicted: Tensor, pictures: Callable[[], Tensor] | None = None) -> Ranks:
    """Returns the rank of each prediction among all, seen from its true state.

    Args:
        true: (N, ...) true states.
        predicted: (N, ...) predictions, in the same order.
        pictures: gives (N,) numbers, equal where the true frames are the same picture; it is
            called only if there are ties.

    >>> own = torch.tensor([[0.0], [1.0], [2.0]])
    >>> ranks(own, own).strict.tolist(), ranks(own * 0, own * 0).guarded.tolist()
    ([1, 1, 1], [3, 3, 3])
    """
    true, predicted = true.flatten(1).float(), predicted.flatten(1).float()
    if true.shape != predicted.shape:
        raise InvalidValueError(
            explain(f"{tuple(true.shape)} true states, {tuple(predicted.shape)} predictions")
        )
    if not bool(torch.isfinite(true).all() and torch.isfinite(predicted).all()):
        raise InvalidValueError(explain("some states are infinite or not numbers"))
    count, lengths = len(true), predicted.square().sum(1)
    strict, guarded, names = [], [], None
    for start in range(0, count, _ROWS):
        rows = true[start : start + _ROWS]
        distances = torch.addmm(lengths[None], rows, predicted.T, alpha=-2)
        distances += rows.square().sum(1, keepdim=True)
        own = distances.diagonal(offset=start)[:, None].clone()
        side = distances.sub_(own).sign_()  # -1 nearer, 0 as near, 1 farther
        total, apart = side.sum(1), side.abs().sum(1)
        nearer, tied = (apart - total) / 2, count - 1 - apart
        unsure = tied.nonzero().flatten()
        if pictures is not None and len(unsure):
            names = pictures() if names is None else names
            other = names[start + unsure][:, None] != names[None]
            tied[unsure] = ((side[unsure] == 0) & other).to(tied.dtype).sum(1)
        strict.append(nearer)
        guarded.append(nearer + tied)
    return Ranks(*(torch.cat(parts).to(torch.int64) + 1 for parts in (strict, guarded)))


@torch.no_grad()
def evaluate_ranking(
    model: WorldModel, source: TransitionSource, *, horizons: Sequence[int] = HORIZONS
) -> Mapping[int, RankingScore]:
    """Returns the scores at each horizon; every episode of the source is one reference.

    The first frame is encoded, the transition applied K times without looking again, and the
    result ranked against the encoding of the K-th frame. One rollout serves all horizons.
    """
    if max(horizons) > source.num_steps or min(horizons) < 1:
        raise InvalidValueError(
            explain(f"horizons are {tuple(horizons)}", allowed=f"1 to {source.num_steps} steps")
        )
    model.eval()
    starts = torch.arange(source.num_episodes, device=source.device)
    with matmul_precision("float32", tune=False):
        first = _encode(model, source, starts, 0)
        predicted = model.rollout(first, _actions(source, starts, max(horizons)))
        return {k: _score(model, source, starts, predicted[k - 1], horizon=k) for k in horizons}


def _score(
    model: WorldModel, source: TransitionSource, starts: Tensor, predicted: Tensor, *, horizon: int
) -> RankingScore:
    frames = starts * (source.num_steps + 1) + horizon
    true = _encode(model, source, starts, horizon)
    found = ranks(true, predicted, lambda: _pictures(source, frames))
    error = None
    if model.decoder is not None:
        error = _reconstruction(model, source, frames, predicted)
    return RankingScore(
        hits=_percent(found.strict == 1),
        mrr=_percent(1.0 / found.strict),
        guarded_hits=_percent(found.guarded == 1),
        guarded_mrr=_percent(1.0 / found.guarded),
        reconstruction=error,
        references=len(starts),
    )


def _encode(model: WorldModel, source: TransitionSource, starts: Tensor, step: int) -> Tensor:
    numbers = starts * (source.num_steps + 1) + step
    return torch.cat([model.encode(source.frames(part)) for part in numbers.split(_IMAGES)])


def _actions(source: TransitionSource, starts: Tensor, count: int) -> Tensor:
    numbers = starts[:, None] * source.num_steps + torch.arange(count, device=source.device)
    return source.actions(numbers.flatten()).unflatten(0, numbers.shape)


def _pictures(source: TransitionSource, numbers: Tensor) -> Tensor:
    """Returns hashes of frames: sorting whole frames would cost more than the ranking."""
    hashes, weights = [], None
    for part in numbers.split(_IMAGES):
        levels = source.frames(part).flatten(1).mul(255).round().to(torch.int32)
        if weights is None:
            drawn = generator(seed=0, name="ranking/pictures").integers(2**31, size=levels.shape[1])
            weights = torch.as_tensor(drawn.astype("int32"), device=levels.device)
        hashes.append((levels * weights).sum(1))  # products wrap, exactly; their sum is 64-bit
    return torch.cat(hashes)


def _reconstruction(
    model: WorldModel, source: TransitionSource, numbers: Tensor, predicted: Tensor
) -> float:
    total, values = 0.0, 1
    parts = zip(numbers.split(_IMAGES), predicted.split(_IMAGES), strict=True)
    for chosen, states in parts:
        images = source.frames(chosen)
        total += float(image_loss(model.decode(states), images)) * len(chosen)
        values = images[0].numel()
    return total / len(numbers) / values


def _percent(values: Tensor) -> float:
    return 100.0 * float(values.double().mean())
