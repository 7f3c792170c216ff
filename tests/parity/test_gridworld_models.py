"""World-model losses and ranks against numbers recorded from the original implementation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from interverse.models.losses import contrastive_loss
from interverse.models.ranking import ranks

RECORDED = json.loads((Path(__file__).parent / "data" / "gridworlds.json").read_text())


@pytest.mark.parametrize("case", RECORDED["contrastive_loss"]["cases"])
def test_contrastive_loss(case):
    state, following, predicted = (torch.tensor(case[k]) for k in ("state", "next", "pred"))
    found = contrastive_loss(state, state[torch.tensor(case["perm"])], predicted, following)
    assert float(found.pull) == pytest.approx(case["pos"], abs=2e-7)
    assert float(found.push) == pytest.approx(case["neg"], abs=2e-7)
    assert float(found.total) == pytest.approx(case["total"], abs=2e-7)


@pytest.mark.parametrize("case", RECORDED["ranking"]["cases"], ids=lambda case: case["name"])
def test_ranks(case):
    true, predicted = (torch.tensor(case[k], dtype=torch.float32) for k in ("true_next", "pred"))
    found = ranks(true, predicted).published
    assert found.tolist() == case["ranks"]
    assert float((found == 1).double().mean()) == pytest.approx(case["hits_at_1"])
    assert float((1.0 / found.double()).mean()) == pytest.approx(case["mrr"])
