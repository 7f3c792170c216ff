"""`interverse reproduce --benchmark causaltriplet`: Tables 2 to 4, made again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from interverse.cli.reproduced import write_found
from interverse.core.errors import missing_extra

try:
    from interverse.benchmarks.causaltriplet.run import reproduce as run
    from interverse.benchmarks.causaltriplet.settings import TripletSettings
except ModuleNotFoundError as error:
    if error.name in ("torch", "safetensors", "PIL"):
        raise missing_extra(error.name, "rooms") from error
    raise


@dataclass(frozen=True, kw_only=True)
class ReproduceTriplet(TripletSettings):
    """What the library's `TripletSettings` say, and how to print."""

    benchmark: Literal["causaltriplet"] = "causaltriplet"
    """Whose tables."""
    json: bool = False
    """Write the comparison as one JSON document to standard output."""


ReproduceTriplet.__doc__ = TripletSettings.__doc__  # what --help teaches


def reproduce_triplet(config: ReproduceTriplet) -> dict[str, Any]:
    """Runs it; the log goes to standard error, the summary's text to standard output."""
    found = run(config)
    write_found(found, config.out, as_json=config.json)
    return found
