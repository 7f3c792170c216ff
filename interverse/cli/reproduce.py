"""`interverse reproduce`: published tables made again, beside the published numbers.

Each benchmark has flags of its own: those of its settings in the library, and two of the command.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from interverse.cli.flags import AsJson, tell, value_of

# folder of `interverse.benchmarks` -> its settings
_SETTINGS = {
    "causalmbrl": "Settings",
    "causaltriplet": "TripletSettings",
    "causalworld": "CausalWorldSettings",
    "dmcr": "RemasteredSettings",
}
_Benchmark = Literal["causalmbrl", "causaltriplet", "causalworld", "dmcr"]
_WHOSE = "Whose tables. Each has flags of its own: add --benchmark dmcr, say, to --help."


@functools.cache
def command_of(benchmark: str) -> type[Any]:
    """Returns the settings of a benchmark as a command."""
    title = _SETTINGS[benchmark]
    module = importlib.import_module(f"interverse.benchmarks.{benchmark}.settings")
    settings = getattr(module, title)
    flags: list[tuple[str, Any, Any]] = [
        ("benchmark", Annotated[_Benchmark, tyro.conf.arg(help=_WHOSE)], benchmark),
        ("json", AsJson, False),
    ]
    made = make_dataclass(f"{title}Command", flags, bases=(settings,), frozen=True, kw_only=True)
    made.__doc__ = settings.__doc__  # what --help teaches
    return made


def commands() -> list[type[Any]]:
    """Returns the command of every benchmark."""
    return [command_of(benchmark) for benchmark in _SETTINGS]


def choose(words: Sequence[str]) -> tuple[type[Any], Callable[[Any], Any]]:
    """Returns the config whose flags a command's words are, and the function that takes it."""
    benchmark = value_of("--benchmark", words)
    return command_of(benchmark if benchmark in _SETTINGS else "causalmbrl"), reproduce


def reproduce(config: Any) -> dict[str, Any]:
    """Runs it; the log goes to standard error, the summary's text to standard output."""
    run = importlib.import_module(f"interverse.benchmarks.{config.benchmark}.run")
    found: dict[str, Any] = run.reproduce(config)
    summary = Path(found.get("out", config.out)) / "summary.md"
    tell(config, found, *([] if config.json else [summary.read_text().rstrip("\n")]))
    return found
