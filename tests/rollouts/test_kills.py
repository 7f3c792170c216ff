"""Kills at random moments: what is started again ends as what was never killed."""

import json

import pytest

from tools.kill_matrix import CASES, FILE, ROOT, kill_case, table


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CASES)
def test_kills_change_nothing(tmp_path, name):
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("ray")
    row = kill_case(name, tmp_path, kills=3)
    assert row["kills"] >= 3


def test_the_page_shows_the_figures_of_the_last_run():
    assert table(json.loads(FILE.read_text())) in (ROOT / "results" / "kill_matrix.md").read_text()
