"""`interverse reproduce`: published tables made again, beside the published numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from interverse.cli.reproduced import write_found
from interverse.core.errors import missing_extra

try:
    from interverse.benchmarks.causalmbrl.run import reproduce as run
    from interverse.benchmarks.causalmbrl.settings import Settings
except ModuleNotFoundError as error:
    if error.name in ("torch", "safetensors"):
        raise missing_extra(error.name, "torch") from error
    raise


@dataclass(frozen=True, kw_only=True)
class Reproduce(Settings):
    """What the library's `Settings` say, and how to print."""

    benchmark: Literal["causalmbrl", "causaltriplet", "causalworld", "dmcr"] = "causalmbrl"
    """Whose tables. The others have flags of their own: add --benchmark dmcr, say, to --help."""
    json: bool = False
    """Write the comparison as one JSON document to standard output."""


Reproduce.__doc__ = Settings.__doc__  # what --help teaches


def reproduce(config: Reproduce) -> dict[str, Any]:
    """Runs it; the log goes to standard error, the summary's text to standard output."""
    found = run(config)
    write_found(found, config.out, as_json=config.json)
    return found
