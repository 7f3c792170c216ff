"""`interverse reproduce --benchmark dmcr`: Tables 1 to 3 and the figures, made again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from interverse.cli.reproduced import write_found
from interverse.core.errors import missing_extra

try:
    from interverse.benchmarks.dmcr.run import reproduce as run
    from interverse.benchmarks.dmcr.settings import RemasteredSettings
except ModuleNotFoundError as error:
    if error.name in ("torch", "safetensors"):
        raise missing_extra(error.name, "torch") from error
    raise


@dataclass(frozen=True, kw_only=True)
class ReproduceRemastered(RemasteredSettings):
    """What the library's `RemasteredSettings` say, and how to print."""

    benchmark: Literal["dmcr"] = "dmcr"
    """Whose tables."""
    json: bool = False
    """Write the comparison as one JSON document to standard output."""


ReproduceRemastered.__doc__ = RemasteredSettings.__doc__  # what --help teaches


def reproduce_remastered(config: ReproduceRemastered) -> dict[str, Any]:
    """Runs it; the log goes to standard error, the summary's text to standard output."""
    found = run(config)
    write_found(found, config.out, as_json=config.json)
    return found
