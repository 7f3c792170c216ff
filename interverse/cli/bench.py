"""`interverse bench`: speed, each number beside a baseline measured in the same run."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from interverse.bench import BENCHMARKS
from interverse.bench.measure import Row
from interverse.cli.flags import AsJson, sheet, tell
from interverse.core.errors import InvalidValueError

_ON_DEVICE = ("device", "pictures")
_GPU_ONLY = (*_ON_DEVICE, "pixels")


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measures speed; timings are noisy, so read the ratios."""

    only: tuple[str, ...] = ()
    """Which benchmarks; all by default."""
    device: str = "cpu"
    """Where: cpu runs every benchmark but `device`, `pictures` and `pixels` (the learner of
    pictures); cuda runs these three; warp runs `device` and `pictures` on the CPU for a trial."""
    json: AsJson = False
    out: Path | None = None
    """Also write the JSON to this file."""


def bench(config: Bench) -> list[Row]:
    """Runs the benchmarks and writes their rows."""
    console = Console(stderr=True)
    rows: list[Row] = []
    for name, run in _chosen(config).items():
        with console.status(f"measuring {name}"):
            rows += run()
    told = [row.to_json() for row in rows]
    if config.out is not None:
        config.out.write_text(json.dumps(told, indent=1) + "\n")
    cells = []
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        value = f"{row.value:{',.3g' if row.value < 1e4 else ',.0f'}} {row.unit}"
        cells.append((f"{row.name}.{row.metric}", value, ratio, row.baseline, row.target))
    tell(config, told, sheet(("name.metric", "value", "ratio", "baseline", "target"), cells))
    return rows


def _chosen(config: Bench) -> dict[str, Callable[[], list[Row]]]:
    """Returns what to run, by name."""
    if config.device == "cpu":
        names = config.only or tuple(name for name in BENCHMARKS if name not in _GPU_ONLY)
        return {name: BENCHMARKS.load(name) for name in names}
    runs = {n: functools.partial(BENCHMARKS.load(n), config.device) for n in _ON_DEVICE}
    if config.device == "cuda":
        runs["pixels"] = BENCHMARKS.load("pixels")
    if unknown := set(config.only) - set(runs):
        given = f"only {', '.join(sorted(unknown))} on {config.device}"
        raise InvalidValueError(given, allowed=", ".join(runs))
    return {name: run for name, run in runs.items() if name in (config.only or runs)}
