"""Every tutorial notebook runs, at its smallest budget, and prints what it shows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import notebooks  # noqa: E402

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
LONGER = {"curriculum", "pairs", "world_model"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in LONGER))
        for path in TUTORIALS
    ],
)
def test_the_notebook_runs_as_it_shows(path, desk, monkeypatch):
    monkeypatch.syspath_prepend("")
    printed = notebooks.run(path)
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    shown = ["".join("".join(out["text"]) for out in cell["outputs"]) for cell in cells]
    if path.stem not in LONGER:  # a network's scores differ between processors
        assert printed == shown


def test_there_is_a_notebook_for_each_task_of_the_site():
    assert {path.stem for path in TUTORIALS} >= {
        "counterfactual_data",
        "curriculum",
        "explain",
        "own_world",
        "pairs",
        "world_model",
    }
