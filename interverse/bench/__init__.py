"""Measurements of speed: each a ratio to a baseline in the same run, never a timed test."""

from interverse.registry import Entry, Registry

BENCHMARKS = Registry(
    "benchmark",
    {
        "chemistry": Entry("interverse.bench.grids:chemistry"),
        "imports": Entry("interverse.bench.imports:imports"),
        "slider": Entry("interverse.bench.slider:slider"),
        "trifinger": Entry("interverse.bench.trifinger:trifinger"),
    },
)
