"""Measurements of speed: each a ratio to a baseline in the same run, never a timed test."""

from interverse.core.registry import Entry, Registry

BENCHMARKS = Registry(
    "benchmark",
    {
        "augment": Entry("interverse.bench.learning:augment"),
        "blocks": Entry("interverse.bench.worlds:blocks"),
        "chemistry": Entry("interverse.bench.worlds:chemistry"),
        "control": Entry("interverse.bench.control:control"),
        "device": Entry("interverse.bench.device:device_rows"),
        "evaluation": Entry("interverse.bench.library:evaluation"),
        "imports": Entry("interverse.bench.library:imports"),
        "pictures": Entry("interverse.bench.device:picture_rows"),
        "pixels": Entry("interverse.bench.learning:pixel_updates"),
        "rooms": Entry("interverse.bench.worlds:rooms"),
        "slider": Entry("interverse.bench.worlds:slider"),
        "states": Entry("interverse.bench.control:states"),
        "trifinger": Entry("interverse.bench.trifinger:trifinger"),
        "viewer": Entry("interverse.bench.library:viewer"),
    },
)
