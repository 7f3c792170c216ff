"""Ranking evaluation: can a prediction be told from the predictions of other episodes?

For each episode the true state after K steps is compared with every episode's prediction. Two
rules stand side by side.

- *Ours*: predictions of other pictures that are as near as the own one, or nearer, count against
  it. Episodes that end in the target's own picture are the target: they never count. A collapsed
  encoder, which maps everything to one point, gets nothing; a predictor that knows the future up
  to a little noise gets 100 %.
- *Published*: predictions that are strictly nearer count, whatever they show. Ties favour the
  model, so a collapsed encoder scores 100 %; and where many episodes end in the same picture, as in
  static chemistry, a perfect predictor with a little noise scores almost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from interverse.core.errors import InvalidValueError, check_whole, explain
from interverse.core.rng import generator
from interverse.core.type_checks import blames_types
from interverse.models.losses import image_loss
from interverse.models.source import TransitionSource, pictures_of
from interverse.models.steps import matmul_precision
from interverse.models.world_model import WorldModel

_ROWS = 256  # rows of distances that stay in cache
_IMAGES = 512
HORIZONS = (1, 5, 10)


class Ranks(NamedTuple):
    """Ranks (N,) int64 of each episode's own prediction by both rules, 1 the best."""

    own: Tensor
    published: Tensor


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RankingScore:
    """Scores at one horizon, in percent; they depend on `references`: compare equal ones only.

    `hits` and `mrr` follow our rule, `published_hits` and `published_mrr` the published one.
    """

    hits: float
    mrr: float
    published_hits: float
    published_mrr: float
    reconstruction: float | None
    """Binary cross-entropy per value of the predicted frame; None without a decoder."""
    references: int

    def rounded(self) -> RankingScore:
        """Returns the scores as the published tables round them before averaging over seeds."""
        rec = self.reconstruction
        return RankingScore(
            hits=round(self.hits, 2),
            mrr=round(self.mrr, 2),
            published_hits=round(self.published_hits, 2),
            published_mrr=round(self.published_mrr, 2),
            # Theirs is a sum over 7500 values, rounded to two decimals.
            reconstruction=None if rec is None else round(rec * 7500, 2) / 7500,
            references=self.references,
        )


def ranks(true: Tensor, predicted: Tensor, pictures: Tensor | None = None) -> Ranks:
    """Returns the rank of each prediction among all, seen from its true state.

    Args:
        true: (N, ...) true states.
        predicted: (N, ...) predictions, in the same order.
        pictures: (N,) numbers, equal where the true frames are the same picture; None: all differ.

    >>> own = torch.tensor([[0.0], [1.0], [2.0]])
    >>> ranks(own, own).own.tolist(), ranks(own * 0, own * 0).own.tolist()
    ([1, 1, 1], [3, 3, 3])
    """
    _check_states(true.flatten(1), predicted.flatten(1))
    # Squares of columns far from zero, or in float32, would hide small distances. A value that is
    # there (the median) is taken off: whole numbers stay whole, and a constant becomes 0.
    middle = true.flatten(1).double().median(0).values
    true, predicted = (part.flatten(1).double() - middle for part in (true, predicted))
    count, lengths = len(true), predicted.square().sum(1)
    names = torch.arange(count, device=true.device) if pictures is None else pictures
    own_rule, published = [], []
    for start in range(0, count, _ROWS):
        rows = true[start : start + _ROWS]
        distances = torch.addmm(lengths[None], rows, predicted.T, alpha=-2)
        distances += rows.square().sum(1, keepdim=True)
        distances = distances.float()  # equal distances were summed in another order
        own = distances.diagonal(offset=start)[:, None]
        published.append((distances < own).sum(1))
        other = names[start : start + _ROWS, None] != names[None]
        own_rule.append(((distances <= own) & other).sum(1))
    return Ranks(own=torch.cat(own_rule) + 1, published=torch.cat(published) + 1)


def ranks_among(predicted: Tensor, candidates: Tensor, pictures: Tensor) -> Tensor:
    """Returns (N,) the rank of candidate i among all candidates, seen from prediction i.

    Candidates of other pictures that are as near or nearer count against it. Differences are taken
    in float64: squares of columns far from zero would hide small distances.

    Args:
        predicted: (N, width) predictions.
        candidates: (M, width); the first N are the predictions' targets.
        pictures: (M,) numbers, equal where two candidates are the same picture.
    """
    predicted, candidates = predicted.double(), candidates.double()
    out = []
    for start in range(0, len(predicted), _ROWS):
        rows = predicted[start : start + _ROWS]
        distances = torch.cdist(rows, candidates, compute_mode="donot_use_mm_for_euclid_dist")
        own = distances.diagonal(offset=start)[:, None]
        other = pictures[start : start + len(rows), None] != pictures[None]
        out.append(((distances <= own) & other).sum(1))
    return torch.cat(out) + 1


def numbered(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Returns (N,) numbers, equal where two rows are: a new row has the least number left."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows], dtype=np.int64)


def _check_states(true: Tensor, predicted: Tensor) -> None:
    if true.shape != predicted.shape:
        raise InvalidValueError(
            explain(f"{tuple(true.shape)} true states, {tuple(predicted.shape)} predictions")
        )
    if not bool(torch.isfinite(true).all() and torch.isfinite(predicted).all()):
        raise InvalidValueError(explain("some states are infinite or not numbers"))


@blames_types
@torch.no_grad()
def evaluate_ranking(
    model: WorldModel, source: TransitionSource, *, horizons: Sequence[int] = HORIZONS
) -> Mapping[int, RankingScore]:
    """Returns the scores at each horizon; every episode of the source is one reference.

    The first frame is encoded, the transition applied K times without looking again, and the
    result ranked against the encoding of the K-th frame. One rollout serves all horizons.
    """
    _check_horizons(horizons, source)
    model.eval()
    starts = torch.arange(source.num_episodes, device=source.device)
    with matmul_precision("float32", tune=False):
        first = _encode(model, source, starts, 0)
        predicted = model.rollout(first, _actions(source, starts, max(horizons)))
        return {k: _score(model, source, starts, predicted[k - 1], horizon=k) for k in horizons}


@blames_types
@torch.no_grad()
def rank_unchanged(
    source: TransitionSource, *, horizons: Sequence[int] = HORIZONS
) -> Mapping[int, RankingScore]:
    """Returns the scores of the predictor whose picture stays as it is, compared pixel by pixel.

    Where episodes differ in colours or shapes it scores well above chance without any dynamics.
    """
    _check_horizons(horizons, source)
    starts = torch.arange(source.num_episodes, device=source.device) * (source.num_steps + 1)
    first, out = _levels(source, starts), {}
    for k in horizons:
        true = _levels(source, starts + k)
        seen = _merged(torch.cat([true, first])).split(len(starts))
        found = ranks(seen[0], seen[1], pictures_of(source, starts + k))
        out[k] = _ranking_score(found, None)
    return out


def _check_horizons(horizons: Sequence[int], source: TransitionSource) -> None:
    for horizon in horizons:
        check_whole(horizon, "a horizon", source.num_steps)


def _levels(source: TransitionSource, numbers: Tensor) -> Tensor:
    return torch.cat([source.frames(part).flatten(1) for part in numbers.split(_IMAGES)])


def _merged(pictures: Tensor) -> Tensor:
    """Returns pictures (N, fewer) at the same distances: pixels that are always equal are one."""
    drawn = generator(seed=0, name="ranking/pixels").normal(size=(2, len(pictures)))
    keys = torch.as_tensor(drawn, device=pictures.device).float() @ pictures
    _, group, counts = torch.unique(keys, return_inverse=True, return_counts=True, dim=1)
    chosen = torch.empty(len(counts), dtype=torch.int64, device=pictures.device)
    chosen[group] = torch.arange(pictures.shape[1], device=pictures.device)
    return pictures[:, chosen] * counts.sqrt()


def _score(
    model: WorldModel, source: TransitionSource, starts: Tensor, predicted: Tensor, *, horizon: int
) -> RankingScore:
    frames = starts * (source.num_steps + 1) + horizon
    true = _encode(model, source, starts, horizon)
    found = ranks(true, predicted, pictures_of(source, frames))
    error = None
    if model.decoder is not None:
        error = _reconstruction(model, source, frames, predicted)
    return _ranking_score(found, error)


def _ranking_score(found: Ranks, reconstruction: float | None) -> RankingScore:
    return RankingScore(
        hits=_percent(found.own == 1),
        mrr=_percent(1.0 / found.own),
        published_hits=_percent(found.published == 1),
        published_mrr=_percent(1.0 / found.published),
        reconstruction=reconstruction,
        references=len(found.own),
    )


def _encode(model: WorldModel, source: TransitionSource, starts: Tensor, step: int) -> Tensor:
    numbers = starts * (source.num_steps + 1) + step
    return torch.cat([model.encode(source.frames(part)) for part in numbers.split(_IMAGES)])


def _actions(source: TransitionSource, starts: Tensor, count: int) -> Tensor:
    numbers = starts[:, None] * source.num_steps + torch.arange(count, device=source.device)
    return source.actions(numbers.flatten()).unflatten(0, numbers.shape)


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
