"""`interverse reproduce`: published tables made again, beside the published numbers.

Each benchmark has flags of its own: those of its settings in the library, and two of the command.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from interverse.cli.flags import print_json

# config dataclass -> (folder of `interverse.benchmarks`, its settings)
_SETTINGS = {
    "Reproduce": ("causalmbrl", "Settings"),
    "ReproduceCausalWorld": ("causalworld", "CausalWorldSettings"),
    "ReproduceTriplet": ("causaltriplet", "TripletSettings"),
    "ReproduceRemastered": ("dmcr", "RemasteredSettings"),
}
_Benchmark = Literal["causalmbrl", "causaltriplet", "causalworld", "dmcr"]
_WHOSE = "Whose tables. Each has flags of its own: add --benchmark dmcr, say, to --help."
_AS_JSON = "Write the comparison as one JSON document to standard output."


def __getattr__(name: str) -> Any:
    if name not in _SETTINGS:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    benchmark, title = _SETTINGS[name]
    settings = getattr(
        importlib.import_module(f"interverse.benchmarks.{benchmark}.settings"), title
    )
    flags: list[tuple[str, Any, Any]] = [
        ("benchmark", Annotated[_Benchmark, tyro.conf.arg(help=_WHOSE)], benchmark),
        ("json", Annotated[bool, tyro.conf.arg(help=_AS_JSON)], False),
    ]
    made = make_dataclass(name, flags, bases=(settings,), frozen=True, kw_only=True)
    made.__doc__ = settings.__doc__  # what --help teaches
    globals()[name] = made
    return made


def reproduce(config: Any) -> dict[str, Any]:
    """Runs it; the log goes to standard error, the summary's text to standard output."""
    run = importlib.import_module(f"interverse.benchmarks.{config.benchmark}.run")
    found: dict[str, Any] = run.reproduce(config)
    if config.json:
        print_json(found)
    else:
        folder = Path(found.get("out", config.out))
        sys.stdout.write((folder / "summary.md").read_text())
    return found
