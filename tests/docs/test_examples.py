"""Every script in examples/ and every tutorial notebook runs, and shows what it says."""

import ast
import json
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from interverse.worlds import WORLDS

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
MOST_LINES = 60
A_WORLD = {"own_world.py": 120}  # a whole world takes two screens
# What makes a script small enough for a test; the others take no argument.
ARGUMENTS = {
    "collect_and_fit.py": ["--episodes", "8", "--epochs", "1"],
    "evaluate_policy.py": ["--episodes", "4"],
    "train_ppo_sb3.py": ["--steps", "256", "--episodes", "2"],
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_example_runs(desk, monkeypatch, capsys, script):
    mpl.use("Agg")
    monkeypatch.setattr(WORLDS, "_rows", dict(WORLDS._rows))  # what it registers is forgotten again
    monkeypatch.setattr(sys, "argv", [script.name, *ARGUMENTS.get(script.name, [])])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip(), "an example shows something"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_example_fits_on_a_screen(script):
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= A_WORLD.get(script.name, MOST_LINES)
    assert f"python examples/{script.name}" in (ast.get_docstring(ast.parse(text)) or "")


def test_every_argument_belongs_to_a_script():
    assert set(ARGUMENTS) <= {script.name for script in SCRIPTS}


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
