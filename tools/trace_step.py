"""Traces what one use of the library executes: files, functions and distinct lines.

Usage: python tools/trace_step.py [ID ...] [--use step,do,make,reset,evaluate] [--files]

Imports are no part of it, and what is worked out once is warmed first, but for `make`.
The bars of tests/tools/test_house_check.py are for default options.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
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
    """Lines and functions of the library that were executed, as (file, line) pairs."""

    lines: frozenset[tuple[str, int]]
    functions: frozenset[tuple[str, int]]

    @property
    def files(self) -> Counter[str]:
        """Distinct lines by file."""
        return Counter(file for file, _ in self.lines)


def trace(use: Callable[[], object]) -> Trace:
    """Returns what a call executes in the library, the bodies of modules left out."""
    lines: set[tuple[str, int]] = set()
    functions: set[tuple[str, int]] = set()

    def record(frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name == "<module>":
            return None
        place = (code.co_filename.removeprefix(PACKAGE + "/"), frame.f_lineno)
        if event == "call":
            functions.add(place)
        lines.add(place)
        return record

    sys.settrace(record)
    try:
        use()
    finally:
        sys.settrace(None)
    return Trace(frozenset(lines), frozenset(functions))


def trace_step(world_id: str, **options: Any) -> Trace:
    """Returns what one warmed step of a single environment executes."""
    env = _warm(world_id, **options)
    action = env.action_space.sample()
    with env:
        return trace(lambda: env.step(action))


def trace_do(world_id: str) -> Trace:
    """Returns what an intervention on one number executes: the first variable with spaces."""
    env = _warm(world_id)
    variables = env.unwrapped.variables
    name = next(n for n in MASSES if n in variables)
    low, high = variables[name].space_a.low, variables[name].space_a.high
    env.unwrapped.do({name: (low + high) / 2})
    with env:
        return trace(lambda: env.unwrapped.do({name: low + (high - low) / 4}))


def trace_reset(world_id: str) -> Trace:
    """Returns what a reset with a seed executes."""
    with _warm(world_id) as env:
        return trace(lambda: env.reset(seed=1))


def trace_make(world_id: str) -> Trace:
    """Returns what making an environment executes."""
    _warm(world_id).close()
    return trace(lambda: iv.make(world_id).close())


def trace_evaluate(world_id: str) -> Trace:
    """Returns what scoring one episode of the first protocol executes, in this process."""

    def use() -> object:
        return iv.evaluate("random", task=world_id, protocols="P0", episodes=1)

    use()
    return trace(use)


MASSES = ("block_0/mass", "tool_block/mass", "box/mass", "finger_0/upper/mass", "block_0/weight")


def trace_update(world_id: str) -> Trace:
    """Returns the trace of one horizon and one update of PPO beside the worlds."""
    from interverse.actors.curriculum import paper_curriculum
    from interverse.agents.batch.ppo import DevicePpo, PpoSettings
    from interverse.agents.batch.starts import curriculum_starts, make_arena

    options = {"skip_frame": 3}
    starts = curriculum_starts(world_id, paper_curriculum(0), 1, seed=0, options=options)
    arena = make_arena(world_id, starts, num_worlds=8, device="torch", groups=1, options=options)
    learner = DevicePpo(arena, PpoSettings(horizon=4, hidden=(8,)), seed=0)

    def use() -> None:
        learner.collect()
        learner.update(0.0)

    try:
        use()
        return trace(use)
    finally:
        arena.close()


USES: dict[str, Callable[[str], Trace]] = {
    "do": trace_do,
    "evaluate": trace_evaluate,
    "make": trace_make,
    "reset": trace_reset,
    "step": trace_step,
    "update": trace_update,
}


def _warm(world_id: str, **options: Any) -> Any:
    env = iv.make(world_id, **options)
    env.reset(seed=0)
    env.action_space.seed(0)
    action = env.action_space.sample()
    for _ in range(WARM_STEPS):
        env.step(action)
    return env


def main() -> int:
    """Prints a line for each id and use, and with --files one for each file."""
    parser = argparse.ArgumentParser(description="What one use of the library executes.")
    parser.add_argument("ids", nargs="*", default=["trifinger/pushing-v1", "tutorial/slider-v1"])
    parser.add_argument("--use", default="step", help=f"of {', '.join(USES)}, with commas")
    parser.add_argument("--files", action="store_true", help="also lines by file")
    asked = parser.parse_args()
    for world_id in asked.ids:
        for use in asked.use.split(","):
            found = USES[use](world_id)
            files, functions, lines = len(found.files), len(found.functions), len(found.lines)
            print(f"{world_id} {use}: {files} files, {functions} functions, {lines} lines")
            if asked.files:
                for file, count in sorted(found.files.items()):
                    print(f"  {count:4} {file}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
