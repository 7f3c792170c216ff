"""Baselines of recognition: answers without looking, and pictures cut to what changed."""

from __future__ import annotations

from collections.abc import Callable
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
    images = pairs.images.cpu()
    differs = (images[:, 0] != images[:, 1]).any(dim=1)
    cut = [_cut(pair, mask) for pair, mask in zip(images, differs, strict=True)]
    return replace(pairs, images=torch.stack(cut).to(pairs.images.device), masks=None)


def _cut(pair: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    if not bool(mask.any()):
        return pair
    size = pair.shape[-1]
    rows, columns = (torch.nonzero(mask.any(dim=axis))[:, 0] for axis in (1, 0))
    ends = [(max(int(at[0]) - _MARGIN, 0), int(at[-1]) + 1 + _MARGIN) for at in (rows, columns)]
    (top, bottom), (left, right) = ends
    part = pair[..., top:bottom, left:right].float()
    if part.shape[-2:] == (size, size):
        return pair
    grown = functional.interpolate(part, size=(size, size), mode="bilinear", antialias=True)
    return grown.round().clamp(0, 255).to(torch.uint8)


def _accuracies(
    pairs: PairTensors, split: Any, answers: Callable[[Rows], Rows]
) -> dict[str, float]:
    verb = pairs.verb.cpu().numpy()
    out = {}
    for name in _TESTS:
        rows = np.asarray(getattr(split, name))
        out[name] = round(float(np.mean(answers(rows) == verb[rows])), 6)
    return out
