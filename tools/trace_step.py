"""Traces one step of a world: the files, functions and distinct lines of the library it executes.

Usage: python tools/trace_step.py [ID ...] [--files]

The bar of tests/tools/test_trace_step.py, 12 files and 300 lines in TriFinger, is for default
options: `action_mode="end_effector_positions"` executes about 330 lines, `active_edges=True` 15
files and 340.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # `python tools/trace_step.py` starts with tools/ alone
    sys.path.insert(0, str(ROOT))

import interverse as iv  # noqa: E402

PACKAGE = str(Path(iv.__file__).parent)
WARM_STEPS = 3  # what is worked out once is not part of a step


@dataclass(frozen=True)
class Trace:
    """Lines and functions of the library that one step executed, as (file, line) pairs."""

    lines: frozenset[tuple[str, int]]
    functions: frozenset[tuple[str, int]]

    @property
    def files(self) -> Counter[str]:
        """Distinct lines by file."""
        return Counter(file for file, _ in self.lines)


def trace_step(world_id: str, **options: Any) -> Trace:
    """Returns what one warmed step of a single environment executes.

    Args:
        world_id: an id.
        options: of the world.
    """
    env = iv.make(world_id, **options)
    env.reset(seed=0)
    env.action_space.seed(0)
    action = env.action_space.sample()
    for _ in range(WARM_STEPS):
        env.step(action)
    lines: set[tuple[str, int]] = set()
    functions: set[tuple[str, int]] = set()

    def record(frame: FrameType, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE):
            return None
        place = (name.removeprefix(PACKAGE + "/"), frame.f_lineno)
        if event == "call":
            functions.add(place)
        lines.add(place)
        return record

    sys.settrace(record)
    try:
        env.step(action)
    finally:
        sys.settrace(None)
    env.close()
    return Trace(frozenset(lines), frozenset(functions))


def main() -> int:
    """Prints a line for each id, and with --files one for each file."""
    parser = argparse.ArgumentParser(description="What one step executes.")
    parser.add_argument("ids", nargs="*", default=["trifinger/pushing-v1", "tutorial/slider-v1"])
    parser.add_argument("--files", action="store_true", help="also lines by file")
    asked = parser.parse_args()
    for world_id in asked.ids:
        trace = trace_step(world_id)
        files, functions, lines = len(trace.files), len(trace.functions), len(trace.lines)
        print(f"{world_id}: {files} files, {functions} functions, {lines} lines")
        if asked.files:
            for file, count in sorted(trace.files.items()):
                print(f"  {count:4} {file}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
