"""Results of a pixel agent's training run, from the curves it writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interverse.core.errors import FileFormatError, explain
from interverse.core.files.json_text import read_json
from interverse.results.results import Results

CURVES_FILE, CONFIG_FILE = "curves.json", "train.json"


def from_curves(folder: Path) -> Results:
    """Returns the scores of a run's evaluations, with the training step of each.

    Episode number n is the same one at every step. Before the first evaluation it is the episodes
    of exploration that are returned. The experiment is the algorithm with the hyper-parameters that
    were given, the seed is the run's, so that runs which differ in the seed are one experiment.
    """
    curves, config = _read(folder / CURVES_FILE), _read(folder / CONFIG_FILE)
    try:
        given = [f"{name}={value}" for name, value in sorted(config["hyper"].items())]
        rows = _evaluations(curves["evaluations"]) or _explorations(curves["episodes"])
        about = {
            "experiment": " ".join([config["algorithm"], *given]),
            "task": config["task"],
            "seed": config["seed"],
        }
        return Results.from_rows([about | row for row in rows], {"training": config})
    except (AttributeError, KeyError, TypeError) as error:
        problem = f"{folder} does not hold the curves of a training run: {error!r}"
        raise FileFormatError(explain(problem, fix="Name a folder of `interverse train`")) from None


def _evaluations(rows: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"protocol": "evaluation", "step": row["step"], "episode": number, "return": score}
        for row in rows
        for number, score in enumerate(row["returns"])
    ]


def _explorations(rows: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the episodes of exploration; actors may end several at one step."""
    return [
        {"protocol": "exploration", "episode": number, **row} for number, row in enumerate(rows)
    ]


def _read(file: Path) -> Any:
    try:
        return read_json(file)
    except (OSError, FileFormatError) as error:
        raise FileFormatError(
            explain(f"{file} cannot be read: {error}", fix="Name a folder of `interverse train`")
        ) from error
