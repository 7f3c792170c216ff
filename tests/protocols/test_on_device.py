"""Rows of episodes that were played on a device."""

import numpy as np
import pytest

pytest.importorskip("torch")

from interverse.agents.batch.starts import Starts
from interverse.protocols.on_device import DIVERGED, REFUSED, episode_rows
from interverse.protocols.protocol import select_protocols
from interverse.results import Results


def test_an_episode_whose_physics_broke_down_is_refused_with_its_reason() -> None:
    task = "trifinger/pushing-v1"
    starts = Starts({REFUSED: np.array([False, True, False])})
    scores = {"last_fractional_success": np.ones(3), "diverged": np.array([False, False, True])}
    rows = episode_rows(scores, select_protocols(task, "P1"), starts, task=task)
    assert [row["refused"] for row in rows] == [False, True, True]
    assert [row.get("reason") for row in rows] == [None, None, DIVERGED]
    scored = Results.from_rows(rows, {}).scores("last_fractional_success")
    assert np.isnan(scored).tolist() == [False, True, True]
