"""Yardsticks of recognition: rules of epoch selection, answers without looking, cut pictures.

The published tables fit the rule `best_each` (Table 4, most of 2 and 3) or `best_id` (slots): rules
that look at the test sets. `best_valid` and `last` do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from interverse.models.pairs.tensors import PairTensors

Rows = NDArray[Any]
_MARGIN = 2  # pixels around what changed
_TESTS = ("test_id", "test_ood")
RULES = ("last", "best_valid", "best_id", "best_each")
"""last epoch; best on validation; best on the ID test; best per test set, on the set itself."""


def select(history: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Returns ID and OOD accuracy by rule; the first of equal epochs is taken.

    Args:
        history: one row per epoch with `epoch`, `valid`, `test_id`, `test_ood`.

    >>> rows = [{"epoch": 1, "valid": 0.5, "test_id": 0.6, "test_ood": 0.4},
    ...         {"epoch": 2, "valid": 0.7, "test_id": 0.6, "test_ood": 0.2}]
    >>> select(rows)["best_each"], select(rows)["best_valid"]["test_ood"]
    ({'test_id': 0.6, 'test_ood': 0.4, 'epoch_id': 1, 'epoch_ood': 1}, 0.2)
    """
    names = ("valid", *_TESTS)
    best = {name: int(np.argmax([row[name] for row in history])) for name in names}
    epochs = {
        "last": (len(history) - 1,) * 2,
        "best_valid": (best["valid"],) * 2,
        "best_id": (best["test_id"],) * 2,
        "best_each": (best["test_id"], best["test_ood"]),
    }
    return {
        rule: {
            "test_id": history[own]["test_id"],
            "test_ood": history[other]["test_ood"],
            "epoch_id": history[own]["epoch"],
            "epoch_ood": history[other]["epoch"],
        }
        for rule, (own, other) in epochs.items()
    }


def constant_answer(pairs: PairTensors, split: Any) -> dict[str, float]:
    """Returns the accuracy of always naming the commonest action of the training rows."""
    verb = pairs.verb.cpu().numpy()
    answer = int(np.bincount(verb[split.train]).argmax())
    return _accuracies(pairs, split, lambda rows: np.full(len(rows), answer))


def object_only(pairs: PairTensors, split: Any) -> dict[str, float]:
    """Returns the accuracy of naming, for each object, its commonest action in training.

    An object that was never trained on gets the commonest action of all.
    """
    verb, noun = pairs.verb.cpu().numpy(), pairs.noun.cpu().numpy()
    counts = np.zeros((len(pairs.nouns), len(pairs.verbs)))
    np.add.at(counts, (noun[split.train], verb[split.train]), 1)
    counts[counts.sum(axis=1) == 0] = counts.sum(axis=0)
    table = counts.argmax(axis=1)
    return _accuracies(pairs, split, lambda rows: table[noun[rows]])


def changed_crop(pairs: PairTensors) -> PairTensors:
    """Returns the pairs cut to the box of the pixels that differ, both pictures alike.

    Without masks: they would have to be cut too. Pictures that do not differ stay whole.
    """
    images = pairs.images.cpu().clone()
    size = images.shape[-1]
    for pair, differs in zip(images, (images[:, 0] != images[:, 1]).any(dim=1), strict=True):
        if not bool(differs.any()):
            continue
        spans = []
        for axis in (1, 0):
            at = torch.nonzero(differs.any(dim=axis))[:, 0]
            spans.append(slice(max(int(at[0]) - _MARGIN, 0), int(at[-1]) + 1 + _MARGIN))
        part = pair[..., spans[0], spans[1]].float()
        if part.shape[-2:] != (size, size):
            shown = functional.interpolate(part, (size, size), mode="bilinear", antialias=True)
            pair.copy_(shown.round().clamp(0, 255))
    return replace(pairs, images=images.to(pairs.images.device), masks=None)


def _accuracies(
    pairs: PairTensors, split: Any, answers: Callable[[Rows], Rows]
) -> dict[str, float]:
    verb = pairs.verb.cpu().numpy()
    out = {}
    for name in _TESTS:
        rows = np.asarray(getattr(split, name))
        out[name] = round(float(np.mean(answers(rows) == verb[rows])), 6)
    return out
