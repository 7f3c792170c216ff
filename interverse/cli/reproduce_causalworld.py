"""`interverse reproduce --benchmark causalworld`: Figs. 5, 6 and 11, made again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from interverse.cli.reproduced import write_found
from interverse.core.errors import missing_extra

try:
    from interverse.benchmarks.causalworld.run import reproduce as run
    from interverse.benchmarks.causalworld.settings import CausalWorldSettings
except ModuleNotFoundError as error:
    if error.name in ("torch", "safetensors"):
        raise missing_extra(error.name, "torch") from error
    raise


@dataclass(frozen=True, kw_only=True)
class ReproduceCausalWorld(CausalWorldSettings):
    """What the library's `CausalWorldSettings` say, and how to print."""

    benchmark: Literal["causalworld"] = "causalworld"
    """Whose figures."""
    json: bool = False
    """Write the runs as one JSON document to standard output."""


ReproduceCausalWorld.__doc__ = CausalWorldSettings.__doc__  # what --help teaches


def reproduce_causalworld(config: ReproduceCausalWorld) -> dict[str, Any]:
    """Runs it; the log goes to standard error, the summary's text to standard output."""
    found = run(config)
    write_found(found, config.out, as_json=config.json)
    return found
