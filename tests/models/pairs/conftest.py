"""Toy pairs and a split of them, for every test of recognition models."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from interverse.models.pairs.tensors import PairTensors
from interverse.models.pairs.toy import toy_pairs


@pytest.fixture(scope="session")
def pairs() -> PairTensors:
    return toy_pairs(500, size=32)


@pytest.fixture(scope="session")
def scenes() -> PairTensors:
    return toy_pairs(24, size=96, crop="multi")


@pytest.fixture(scope="session")
def split() -> SimpleNamespace:
    rows = np.random.default_rng(0).permutation(500)
    parts = dict(
        zip(("train", "valid", "test_id", "test_ood"), np.split(rows, [320, 370, 440]), strict=True)
    )
    return SimpleNamespace(**parts)
