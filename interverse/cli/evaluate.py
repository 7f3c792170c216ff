"""`interverse evaluate`: a policy under protocols, as a table and Parquet files."""

from __future__ import annotations

import json
import math
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rich.console import Console

from interverse.errors import FileFormatError, InvalidValueError, explain
from interverse.files.json_text import parse_json
from interverse.protocols.evaluate import evaluate as run
from interverse.results import Results


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Scores a policy under protocols; started again, it goes on where it stopped."""

    task: str
    """A world's id, such as trifinger/pushing-v1."""
    policy: str = "random"
    """"random", "scripted", an exported policy's folder, or a zip of Stable-Baselines 2 or 3."""
    protocols: str = "all"
    """"all", "legacy", names separated by commas, or a range such as P0-P11."""
    episodes: int = 200
    """Episodes per protocol and seed."""
    seed: int = 0
    """The first seed."""
    seeds: int = 1
    """How many seeds, counted on from the first."""
    workers: int = 1
    """How many units of 50 episodes run at a time; it never changes a score."""
    cluster: str | None = None
    """A Ray cluster to run them on: local, auto or HOST:PORT; without, this machine's processes."""
    out: Path | None = None
    """A folder for the results; `interverse report` reads it."""
    experiment: str | None = None
    """The name the rows carry; the policy's by default."""
    metrics: tuple[str, ...] = ()
    """Further scores: last20_legacy, peak_success, time_to_success."""
    option: tuple[str, ...] = field(default=())
    """Options of the world, as NAME=VALUE (JSON values), such as skip_frame=3."""
    json: bool = False
    """Write the mean scores as one JSON document to standard output."""


def evaluate(config: Evaluate) -> Results:
    """Runs the evaluation and writes its table."""
    with redirect_stdout(sys.stderr):  # a policy may print, and Ray does when a node dies
        results = run(
            config.policy,
            config.task,
            config.protocols,
            episodes=config.episodes,
            seed=config.seed,
            seeds=config.seeds,
            workers=config.workers,
            cluster=config.cluster,
            out=config.out,
            experiment=config.experiment,
            metrics=config.metrics,
            progress=True,
            **parse_pairs(config.option),
        )
    if config.json:
        sys.stdout.write(json.dumps(summary(results), indent=1) + "\n")
    else:
        Console().print(results.table())
        if config.out is not None:
            Console().print(f"Results in {config.out}. Next: interverse report {config.out}")
    return results


def summary(results: Results) -> list[dict[str, Any]]:
    """Returns one entry per protocol: scored, refused, and each metric's mean."""
    out = []
    for protocol in results.protocols:
        part = results.select(protocol=protocol)
        refused = int(part.refused.sum())
        entry: dict[str, Any] = {"task": results.tasks[0], "protocol": protocol}
        entry |= {"episodes": len(part), "refused": refused}
        for metric in part.metrics:
            scores = part.scores(metric)[~part.refused]
            mean = float(scores.mean()) if len(scores) else math.nan
            entry[metric] = mean if math.isfinite(mean) else None
        out.append(entry)
    return out


def without_pairs(config: Any) -> dict[str, Any]:
    """Returns a config's fields with its `option` words parsed into `options`."""
    given = {item.name: getattr(config, item.name) for item in fields(config)}
    return given | {"options": {**given["options"], **parse_pairs(given.pop("option"))}}


_WORDS = {"True": "true", "False": "false", "None": "null"}


def parse_pairs(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Returns options from NAME=VALUE words; a value that is no JSON is taken as text.

    True, False and None may be written as in Python.
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise InvalidValueError(
                explain(f"option {pair!r}", allowed="NAME=VALUE", fix="For instance skip_frame=3")
            )
        try:
            out[name] = parse_json(_WORDS.get(text, text))
        except FileFormatError:
            out[name] = text
    return out
