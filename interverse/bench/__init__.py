"""Measurements of speed: each a ratio to a baseline in the same run, never a timed test."""

from interverse.core.registry import Entry, Registry

BENCHMARKS = Registry(
    "benchmark",
    {
        "augment": Entry("interverse.bench.augment:augment"),
        "blocks": Entry("interverse.bench.grids:blocks"),
        "chemistry": Entry("interverse.bench.grids:chemistry"),
        "control": Entry("interverse.bench.control:control"),
        "device": Entry("interverse.bench.device:device_rows"),
        "evaluation": Entry("interverse.bench.evaluation:evaluation"),
        "imports": Entry("interverse.bench.imports:imports"),
        "pictures": Entry("interverse.bench.device:picture_rows"),
        "pixels": Entry("interverse.bench.pixels:pixel_updates"),
        "rooms": Entry("interverse.bench.rooms:rooms"),
        "slider": Entry("interverse.bench.slider:slider"),
        "states": Entry("interverse.bench.control:states"),
        "trifinger": Entry("interverse.bench.trifinger:trifinger"),
        "viewer": Entry("interverse.bench.viewer:viewer"),
    },
)
