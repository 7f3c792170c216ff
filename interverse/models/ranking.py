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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from interverse.core.errors import InvalidValueError, check_whole
from interverse.core.rng import generator
from interverse.core.type_checks import blames_types
from interverse.models.layers import image_loss
from interverse.models.source import TransitionSource, num_transitions, pictures_of
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
    if true.shape != predicted.shape:
        raise InvalidValueError(
            f"{tuple(true.shape)} true states, {tuple(predicted.shape)} predictions"
        )
    if not bool(torch.isfinite(true).all() and torch.isfinite(predicted).all()):
        raise InvalidValueError("some states are infinite or not numbers")
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

    Predictions are (N, width); the first N of the candidates (M, width) are their targets.
    Equal numbers in `pictures` (M,) are the same picture.
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


@blames_types
@torch.no_grad()
def evaluate_ranking(
    model: WorldModel, source: TransitionSource, *, horizons: Sequence[int] = HORIZONS
) -> Mapping[int, RankingScore]:
    """Returns the scores at each horizon; every episode of the source is one reference.

    The first frame is encoded, the transition applied K times without looking again, and the
    result ranked against the encoding of the K-th frame. One rollout serves all horizons.
    """
    starts = _starts(horizons, source)
    model.eval()
    with matmul_precision("float32", tune=False):
        first = _by_parts(source, starts, model.encode)
        numbers = torch.arange(num_transitions(source), device=source.device)
        actions = source.actions(numbers).unflatten(0, (-1, source.num_steps))
        predicted = model.rollout(first, actions[:, : max(horizons)])
        out = {}
        for k in horizons:
            frames, states, error = starts + k, predicted[k - 1], None
            true = _by_parts(source, frames, model.encode)
            found = ranks(true, states, pictures_of(source, frames))
            if model.decoder is not None:
                total, values = 0.0, 1
                for chosen, part in zip(frames.split(_IMAGES), states.split(_IMAGES), strict=True):
                    images = source.frames(chosen)
                    total += float(image_loss(model.decode(part), images)) * len(chosen)
                    values = images[0].numel()
                error = total / len(frames) / values
            out[k] = _ranking_score(found, error)
        return out


@blames_types
@torch.no_grad()
def rank_unchanged(
    source: TransitionSource, *, horizons: Sequence[int] = HORIZONS
) -> Mapping[int, RankingScore]:
    """Returns the scores of the predictor whose picture stays as it is, compared pixel by pixel.

    Where episodes differ in colours or shapes it scores well above chance without any dynamics.
    """
    starts = _starts(horizons, source)
    first, out = _by_parts(source, starts, lambda frames: frames.flatten(1)), {}
    for k in horizons:
        true = _by_parts(source, starts + k, lambda frames: frames.flatten(1))
        pictures = torch.cat([true, first])
        # At the same distances with fewer numbers: pixels that are always equal are one.
        drawn = generator(seed=0, name="ranking/pixels").normal(size=(2, len(pictures)))
        keys = torch.as_tensor(drawn, device=pictures.device).float() @ pictures
        _, group, counts = torch.unique(keys, return_inverse=True, return_counts=True, dim=1)
        chosen = torch.empty(len(counts), dtype=torch.int64, device=pictures.device)
        chosen[group] = torch.arange(pictures.shape[1], device=pictures.device)
        end, start = (pictures[:, chosen] * counts.sqrt()).split(len(starts))
        out[k] = _ranking_score(ranks(end, start, pictures_of(source, starts + k)), None)
    return out


def _starts(horizons: Sequence[int], source: TransitionSource) -> Tensor:
    """Returns the number of each episode's first frame; raises for a horizon that is too long."""
    for horizon in horizons:
        check_whole(horizon, "a horizon", source.num_steps)
    return torch.arange(source.num_episodes, device=source.device) * (source.num_steps + 1)


def _by_parts(source: TransitionSource, numbers: Tensor, of: Callable[[Tensor], Tensor]) -> Tensor:
    return torch.cat([of(source.frames(part)) for part in numbers.split(_IMAGES)])


def _ranking_score(found: Ranks, reconstruction: float | None) -> RankingScore:
    def percent(values: Tensor) -> float:
        return 100.0 * float(values.double().mean())

    return RankingScore(
        hits=percent(found.own == 1),
        mrr=percent(1.0 / found.own),
        published_hits=percent(found.published == 1),
        published_mrr=percent(1.0 / found.published),
        reconstruction=reconstruction,
        references=len(found.own),
    )
