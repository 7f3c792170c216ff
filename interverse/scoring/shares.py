"""Shares of trials with their intervals; ranking and in-scene hits, alike in every world."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from interverse.models.ranking import HORIZONS, numbered, ranks
from interverse.scoring.outside import OutsideModel

Score = dict[str, Any]

_Z = 1.959963984540054  # of a 95% interval
PERCENT = 100.0


def wilson(hits: float, trials: int) -> tuple[float, float]:
    """Returns the 95% interval of a share, by Wilson's score; all is open without a trial.

    >>> tuple(round(end, 3) for end in wilson(0, 100))
    (0.0, 0.037)
    """
    if trials == 0:
        return 0.0, 1.0
    share, weight = hits / trials, _Z**2 / trials
    middle = (share + weight / 2) / (1 + weight)
    half = _Z * math.sqrt(share * (1 - share) / trials + weight / (4 * trials)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(found: ArrayLike, *, scale: float = PERCENT) -> Score:
    """Returns value, interval and number of trials of a row of hits and misses."""
    return balanced([found], scale=scale)


def balanced(parts: Sequence[ArrayLike], *, scale: float = PERCENT) -> Score:
    """Returns the mean of the shares of several strata, each with the same weight.

    A stratum without trials is left out. The interval is made of the strata's own: independent
    errors add in squares.
    """
    rows = [np.asarray(part, dtype=bool) for part in parts]
    rows = [row for row in rows if row.size]
    if not rows:
        return {"value": None, "interval": None, "trials": 0}
    shares = np.array([row.mean() for row in rows])
    ends = np.array([wilson(float(row.sum()), row.size) for row in rows])
    middle = float(shares.mean())
    below = math.sqrt(float(((shares - ends[:, 0]) ** 2).sum())) / len(rows)
    above = math.sqrt(float(((ends[:, 1] - shares) ** 2).sum())) / len(rows)
    return {
        "value": rounded(scale * middle),
        "interval": [
            rounded(scale * max(0.0, middle - below)),
            rounded(scale * min(1.0, middle + above)),
        ],
        "trials": sum(row.size for row in rows),
    }


def mean_of(found: ArrayLike) -> float | None:
    """Returns the mean in percent, or None of nothing."""
    values = np.asarray(found, dtype=np.float64)
    return rounded(PERCENT * float(values.mean())) if values.size else None


def absent(reason: str) -> Score:
    """Returns the entry of what a world or a model cannot give."""
    return {"value": None, "absent": reason}


def rounded(value: float) -> float:
    """Returns a number as it is printed and compared."""
    return round(float(value), 6)


# ------------------------------------------------------------- predictions among what else was seen


def score_ranking(
    model: OutsideModel,
    untrained: OutsideModel | None,
    frames: NDArray[Any],
    actions: NDArray[Any],
    units: Callable[[NDArray[Any]], NDArray[Any]],
) -> Score:
    """Returns H@1 and MRR among the ends of other episodes, by horizon.

    Frames are (E, T + 1, ...), actions (E, T, ...). `units` gives what observations (E, ...)
    are compared by without a model, (E, width).
    """
    shown = {horizon: numbered(frames[:, horizon]) for horizon in HORIZONS}

    def ranked(one: OutsideModel) -> dict[int, dict[str, NDArray[np.int64]]]:
        """Returns ranks by horizon: of predictions, of the first latents left, of true latents."""
        first = one.encode(frames[:, 0])
        predicted = one.rollout(first, actions[:, : max(HORIZONS)])
        out = {}
        for horizon in HORIZONS:
            true = one.flat(frames[:, horizon])
            every = {"model": predicted[:, horizon - 1], "nothing": first, "true": true}
            out[horizon] = {n: among(true, part, horizon) for n, part in every.items()}
        return out

    def among(true: Tensor, states: Tensor, horizon: int) -> NDArray[np.int64]:
        own = ranks(true, states.flatten(1).double(), torch.as_tensor(shown[horizon])).own
        return own.numpy()

    own = ranked(model)
    fresh = {} if untrained is None else ranked(untrained)
    found: dict[str, Score] = {}
    for horizon, one in own.items():
        end, start = (torch.as_tensor(units(frames[:, step])) for step in (horizon, 0))
        hits = share(one["model"] == 1)
        found[str(horizon)] = {
            **hits,
            "hits": hits["value"],
            "mrr": mean_of(1.0 / one["model"]),
            "nothing_predicted": mean_of(one["nothing"] == 1),
            "do_nothing": mean_of(among(end, start, horizon) == 1),
            "chance": rounded(PERCENT / len(np.unique(shown[horizon]))),
            "true_world": mean_of(one["true"] == 1),
            **({"untrained": mean_of(fresh[horizon]["model"] == 1)} if fresh else {}),
        }
    return {**found[str(HORIZONS[0])], **found}


def same_pictures(outcomes: NDArray[Any], start: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns (S, A, A + 1): which outcomes, and whether the start, look like each outcome."""
    count, actions = outcomes.shape[:2]
    every = np.concatenate([outcomes, start[:, None]], axis=1)
    numbers = numbered(every.reshape(count * (actions + 1), -1)).reshape(count, actions + 1)
    return numbers[:, :actions, None] == numbers[:, None, :]


def chance_in_scene(same: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Returns (S, A) the share of candidates that look like the outcome, each picture once."""
    return 1.0 / (1 + (~same).sum(2) / same.sum(2).clip(1))


def in_scene_hits(
    model: OutsideModel,
    start: NDArray[Any],
    outcomes: NDArray[Any],
    tried: NDArray[Any],
    same: NDArray[np.bool_],
) -> dict[str, NDArray[np.bool_]]:
    """Returns (S, A): whether no other picture is as near to the prediction as the true outcome.

    Of scenes (S, ...) are given the outcomes (S, A, ...) of the tried actions (S, A, ...), and
    what `same_pictures` says of them.
    """
    count, actions = outcomes.shape[:2]
    latents = model.encode(start)
    begun = latents.flatten(1).double()
    true = model.flat(outcomes.reshape(-1, *start.shape[1:]))
    told = tried.reshape(count * actions, 1, *tried.shape[2:])
    predicted = model.last(latents.repeat_interleave(actions, 0), told)
    true, predicted = (part.reshape(count, actions, -1) for part in (true, predicted))
    candidates = torch.cat([true, begun[:, None]], dim=1)
    every = {"model": predicted, "nothing": begun[:, None].expand(-1, actions, -1), "true": true}
    return {name: _nearest(states, candidates, same) for name, states in every.items()}


def _nearest(states: Tensor, candidates: Tensor, same: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Returns (S, A): whether no candidate of another look is as near as the own true outcome."""
    distances = torch.cdist(states, candidates, compute_mode="donot_use_mm_for_euclid_dist")
    own = distances[:, :, : states.shape[1]].diagonal(dim1=1, dim2=2)[..., None]
    return (~((distances <= own) & torch.as_tensor(~same)).any(2)).numpy()
