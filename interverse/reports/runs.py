"""Scores of the folders that `evaluate` and `train` write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from interverse.core.errors import FileFormatError, explain
from interverse.core.files.json_text import read_json, read_json_object
from interverse.protocols.evaluate import COMMAND_FILE, EVALUATION_FILE, RESULT_FILE
from interverse.protocols.fingerprint import fingerprint
from interverse.protocols.record import RUN_FILE
from interverse.results import Results

CURVES_FILE, CONFIG_FILE = "curves.json", "train.json"


def read_folder(folder: Path) -> Results:
    """Returns the results of an evaluation's or a training's folder, with their command."""
    if (folder / EVALUATION_FILE).exists():
        results = Results.from_parquet(folder / EVALUATION_FILE)
        runs = results.provenance.get("runs")
        if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
            file = folder / EVALUATION_FILE
            raise FileFormatError(explain(f"{file} does not say how it was made"))
        runs = [{**run, "source": str(folder / "policy")} for run in runs]  # the exported one
        results = replace(results, provenance={**results.provenance, "runs": runs})
    elif (folder / CURVES_FILE).exists():
        results = from_curves(folder)
    else:
        results = Results.from_parquet(folder / RESULT_FILE)
    file = folder / COMMAND_FILE
    if file.exists():
        told = read_json_object(file).get("command")
        if not isinstance(told, str):
            raise FileFormatError(f"{file} holds no command", fix="Delete it")
        results = replace(results, provenance={**results.provenance, "command": told})
    return results


def run_scores(run: Path, policy: Path) -> Results | None:
    """Returns the scores of a run's final policy; None where it was never scored.

    The largest evaluation in a folder of the run, of this policy and no other, comes before the
    scores of the last checkpoint.
    """
    folders = [file.parent for file in sorted(run.glob(f"*/{RUN_FILE}"))]
    parts = [read_folder(folder) for folder in folders if (folder / RESULT_FILE).exists()]
    parts = [part for part in parts if is_of_policy(part, policy)]
    if parts:
        return max(parts, key=len)
    if any((run / name).exists() for name in (EVALUATION_FILE, CURVES_FILE)):
        return read_folder(run).final()
    return None


def is_of_policy(results: Results, policy: Path) -> bool:
    """Returns whether results are the scores of the policy in a folder and of no other."""
    runs = results.provenance.get("runs") or [{}]
    return {run.get("policy") for run in runs} == {fingerprint(policy)}


def from_curves(folder: Path) -> Results:
    """Returns the scores of a run's evaluations, with the training step of each.

    Episode number n is the same one at every step. Before the first evaluation it is the episodes
    of exploration that are returned. The experiment is the algorithm with the hyper-parameters that
    were given, the seed is the run's, so that runs which differ in the seed are one experiment.
    """
    curves, config = _read(folder / CURVES_FILE), _read(folder / CONFIG_FILE)
    try:
        given = [f"{name}={value}" for name, value in sorted(config["hyper"].items())]
        rows: list[dict[str, Any]] = [
            {"protocol": "evaluation", "step": row["step"], "episode": number, "return": score}
            for row in curves["evaluations"]
            for number, score in enumerate(row["returns"])
        ]
        rows = rows or [  # actors may end several at one step
            {"protocol": "exploration", "episode": number, **row}
            for number, row in enumerate(curves["episodes"])
        ]
        about = {
            "experiment": " ".join([config["algorithm"], *given]),
            "task": config["task"],
            "seed": config["seed"],
        }
        return Results.from_rows([about | row for row in rows], {"training": config})
    except (AttributeError, KeyError, TypeError) as error:
        problem = f"{folder} does not hold the curves of a training run: {error!r}"
        raise FileFormatError(problem, fix="Name a folder of `interverse train`") from None


def _read(file: Path) -> Any:
    try:
        return read_json(file)
    except (OSError, FileFormatError) as error:
        raise FileFormatError(
            f"{file} cannot be read: {error}", fix="Name a folder of `interverse train`"
        ) from error
