"""Printed numbers of DMC-GB, SGQN and DMC-GB2, and an evaluation beside them."""

from __future__ import annotations

from interverse.protocols.protocol import select_protocols
from interverse.reports.page import report
from interverse.results import Results
from interverse.results.published import beside_printed, printed_returns
from interverse.worlds import WORLDS

TASK = "control/walker_walk-v1"


def evaluated(task: str, protocol: str, metric: str = "return") -> Results:
    rows = [
        {"task": task, "protocol": protocol, "seed": 0, "episode": i, "experiment": "mine"}
        | {"refused": False, "length": 9, metric: 100.0 + i}
        for i in range(5)
    ]
    return Results.from_rows(rows)


def test_printed_numbers_are_of_tasks_and_protocols_that_are_here():
    rows = printed_returns()
    assert len({tuple(row.at.values()) for row in rows}) == len(rows) == 370
    for task, protocol in {(f"control/{row['task']}-v1", row["protocol"]) for row in rows}:
        assert task in WORLDS
        assert select_protocols(task, protocol)[0].name == protocol
    assert all(0 <= row.value <= 1000 and row.spread >= 0 for row in rows)


def test_they_are_what_the_sources_print_of_them():
    """Its own sums: SGQN prints how far it is ahead of the best other, and its average."""
    found = {
        (r["protocol"], r["task"], r["method"]): r.value
        for r in printed_returns()
        if r["source"] == "SGQN"
    }
    ahead = {"video_easy": [82, -11, 11, 15, 72], "video_hard": [354, 104, 284, 134, 319]}
    for protocol, gaps in ahead.items():
        tasks = [task for mode, task, method in found if (mode, method) == (protocol, "SAC")]
        others = ("SAC", "RAD", "SODA", "SVEA")
        best = [max(found[protocol, task, name] for name in others) for task in tasks]
        own = [found[protocol, task, "SGQN"] for task in tasks]
        assert [a - b for a, b in zip(own, best, strict=True)] == gaps
        assert round(sum(own) / 5) == {"video_easy": 828, "video_hard": 688}[protocol]


def test_an_evaluation_stands_beside_them(tmp_path):
    table = beside_printed(evaluated(TASK, "color_hard"))
    assert table.rows[0][:3] == (TASK, "color_hard", "mine")
    assert table.rows[0][3].startswith("102 [")
    assert (TASK, "color_hard", "SVEA (conv)", "760 ± 145", "DMC-GB") in table.rows
    assert (TASK, "color_hard", "SADA", "825 ± 72", "DMC-GB2") in table.rows
    assert len(table.rows) == 1 + 8 + 4
    page = report(evaluated(TASK, "color_hard"), tmp_path, episodes=False)
    assert "Published numbers" in page.read_text()


def test_other_results_have_no_such_table():
    for other in (("control/acrobot_swingup-v1", "color_hard"), (TASK, "camera")):
        assert not beside_printed(evaluated(*other)).rows
    assert not beside_printed(evaluated(TASK, "color_hard", "last_fractional_success")).rows
