"""Baselines: what they answer, and the pixels that changed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch

from interverse.models.pairs.tensors import from_arrays
from interverse.models.pairs.yardsticks import changed_crop, constant_answer, object_only


def small():
    before = np.zeros((6, 3, 16, 16), np.uint8)
    after = before.copy()
    after[:, :, 4:8, 10:13] = 200
    after[5] = 0  # nothing changed
    verb = ["open", "open", "open", "close", "close", "open"]
    noun = ["Box", "Box", "Safe", "Safe", "Safe", "Book"]
    return from_arrays(before, after, verb=verb, noun=noun, crop="single")


def test_answers_without_looking():
    split = SimpleNamespace(train=[0, 1, 3, 4, 2], test_id=[0, 3], test_ood=[2, 5])
    assert constant_answer(small(), split) == {"test_id": 0.5, "test_ood": 1.0}
    # Safe was closed more often than opened; Book was never seen, so it gets the commonest action.
    assert object_only(small(), split) == {"test_id": 1.0, "test_ood": 0.5}


def test_pictures_are_cut_to_what_changed():
    pairs = small()
    cut = changed_crop(pairs)
    assert cut.images.shape == pairs.images.shape
    assert (cut.images[0, 1] > 100).float().mean() > (pairs.images[0, 1] > 100).float().mean() * 3
    assert int(cut.images[0, 0].max()) == 0
    assert torch.equal(cut.images[5], pairs.images[5])
