"""Every script in examples/ runs, fits on a screen, and says how to call it."""

from __future__ import annotations

import ast
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
