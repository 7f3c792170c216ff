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
LONGER = {"curriculum", "pairs", "world_model"}  # trained networks, or rooms


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


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_ends_with_a_figure_of_its_own(path):
    drawn = notebooks.pictures("".join(map("".join, (c["source"] for c in notebooks._cells(path)))))
    assert drawn == [f"tutorial_{path.stem}.png"]
    assert (ROOT / "docs" / "images" / drawn[0]).stat().st_size > 10_000


def test_there_is_a_notebook_for_each_task_of_the_site():
    assert {path.stem for path in TUTORIALS} >= {
        "counterfactual_data",
        "curriculum",
        "explain",
        "own_world",
        "pairs",
        "world_model",
    }
