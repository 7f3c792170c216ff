"""CausalWorld's figures at the smoke budget: runs, resumes, draws; published scores are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from interverse.core.errors import UnknownNameError

pytest.importorskip("torch")

from interverse.benchmarks.causalworld.pages import released_scores
from interverse.benchmarks.causalworld.run import reproduce
from interverse.benchmarks.causalworld.settings import CausalWorldSettings


def test_smoke_writes_tables_and_figures_once(tmp_path: Path) -> None:
    settings = CausalWorldSettings(out=tmp_path, task=("pushing",), curriculum=(1,))
    found = reproduce(settings)
    assert found["complete"]
    assert found["runs"][0]["contact"] == "convex"
    text = (tmp_path / "summary.md").read_text()
    assert "released by the original" in text
    assert {f.name for f in tmp_path.glob("*.png")} == {
        f"pushing_{kind}.png" for kind in ("bars", "curves", "radar")
    }
    scores = tmp_path / "runs" / "pushing_c1_s0" / "scores.json"
    before = scores.stat().st_mtime_ns
    reproduce(settings)
    assert scores.stat().st_mtime_ns == before
    assert (tmp_path / "summary.md").read_text() == text


def test_a_task_without_figures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="towers"):
        CausalWorldSettings(out=tmp_path, task=("towers",))


def test_released_scores_are_shares() -> None:
    scores = released_scores()
    assert set(scores) == {("pushing", 1), ("picking", 1), ("pick_and_place", 0), ("stacking2", 1)}
    assert all(0.0 <= v <= 1.0 for table in scores.values() for v in table.values())
