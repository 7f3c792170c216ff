"""One step stays short under default options: few files, few lines."""

from __future__ import annotations

import pytest

from interverse.worlds import WORLDS
from tools.trace_step import USES, main, trace_step

TRIFINGER = [name for name in WORLDS if name.startswith("trifinger/")]


@pytest.mark.parametrize("world_id", [*TRIFINGER, "tutorial/slider-v1"])
def test_a_step_with_default_options_executes_few_files_and_lines(world_id):
    files, lines = (12, 300) if world_id in TRIFINGER else (9, 155)
    trace = trace_step(world_id)
    assert len(trace.files) <= files, sorted(trace.files)
    assert len(trace.lines) <= lines, trace.files.most_common()


@pytest.mark.parametrize(
    ("world_id", "use", "files", "lines"),
    [
        ("trifinger/pushing-v1", "do", 13, 320),
        ("trifinger/pushing-v1", "make", 27, 515),
        ("trifinger/pushing-v1", "reset", 13, 265),
        ("trifinger/pushing-v1", "update", 14, 340),
        ("tutorial/slider-v1", "do", 12, 265),
        ("tutorial/slider-v1", "evaluate", 39, 1495),
    ],
)
def test_a_use_executes_no_more_files_and_lines_than_it_did(world_id, use, files, lines):
    found = USES[use](world_id)
    assert len(found.files) <= files, sorted(found.files)
    assert len(found.lines) <= lines, found.files.most_common()


def test_it_prints_a_line_for_each_id(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["trace_step", "tutorial/slider-v1", "--files"])
    assert main() == 0
    printed = capsys.readouterr().out
    assert printed.startswith("tutorial/slider-v1 step: ")
    assert "worlds/tutorial/world.py" in printed
