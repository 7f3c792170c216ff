"""Heads trained at once equal heads trained one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from interverse.core.errors import InvalidValueError
from interverse.data.pairs import SplitConfig, split_pairs
from interverse.models.pairs import fit_pairs, recipe
from interverse.models.pairs.stacked import HeadJob, fit_heads
from interverse.models.pairs.toy import toy_pairs

_BASE = recipe("lite0")
_TINY = replace(_BASE.model, encoder=replace(_BASE.model.encoder, scale="tiny"))
_FIT = replace(_BASE.fit, epochs=3, batch_size=32)


def _jobs(pairs):
    kinds = [("noun", 0.0, 0.0), ("noun", 0.05, 0.0), ("noun", 0.0, 10.0), ("comp", 0.0, 0.0)]
    for shift, independence, sparsity in kinds:
        config = replace(_TINY, independence=independence, sparsity=sparsity)
        split = split_pairs(pairs.labels, SplitConfig(shift=shift, variant="mended", valid=20), 1)
        yield HeadJob(config=config, split=split, seed=1)


def test_a_stack_equals_its_heads_one_by_one():
    pairs = toy_pairs(300, size=32, seed=0)
    jobs = list(_jobs(pairs))  # sets of unequal size, so batches are filled up
    for job, run in zip(jobs, fit_heads(jobs, pairs, fit=_FIT), strict=True):
        alone = fit_pairs(job.config, pairs, job.split, fit=_FIT, seed=job.seed)
        for name, value in alone.work.weights().items():
            torch.testing.assert_close(run.work.weights()[name], value, rtol=1e-3, atol=1e-4)
        assert len(run.history) == len(alone.history)
        for mine, theirs in zip(run.history, alone.history, strict=True):
            assert mine.keys() == theirs.keys()
            for name in mine.keys() - {"seconds"}:
                assert mine[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-3)


def test_models_that_cannot_share_features_are_refused():
    pairs = toy_pairs(300, size=32, seed=0)
    first, *_, last = _jobs(pairs)
    with pytest.raises(InvalidValueError, match="differ"):
        fit_heads([first, replace(last, config=replace(_TINY, width=32))], pairs, fit=_FIT)
    with pytest.raises(InvalidValueError, match="random"):
        fit_heads([first, replace(last, seed=2)], pairs, fit=_FIT)
