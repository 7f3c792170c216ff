"""Scores of the folders that `evaluate` and `train` write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from interverse.core.errors import FileFormatError, explain
from interverse.core.files.json_text import read_json_object
from interverse.protocols.evaluate import COMMAND_FILE, EVALUATION_FILE, RESULT_FILE
from interverse.protocols.fingerprint import fingerprint
from interverse.protocols.folder import RUN_FILE
from interverse.results import Results
from interverse.results.training import CURVES_FILE, from_curves


def read_folder(folder: Path) -> Results:
    """Returns the results of an evaluation's or a training's folder, with their command."""
    if (folder / EVALUATION_FILE).exists():
        results = _of_training(folder)
    elif (folder / CURVES_FILE).exists():
        results = from_curves(folder)
    else:
        results = Results.from_parquet(folder / RESULT_FILE)
    file = folder / COMMAND_FILE
    if file.exists():
        told = read_json_object(file).get("command")
        if not isinstance(told, str):
            raise FileFormatError(explain(f"{file} holds no command", fix="Delete it"))
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


def _of_training(folder: Path) -> Results:
    """Returns the scores of a run's checkpoints; its policy is the exported one."""
    results = Results.from_parquet(folder / EVALUATION_FILE)
    runs = results.provenance.get("runs")
    if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        raise FileFormatError(explain(f"{folder / EVALUATION_FILE} does not say how it was made"))
    runs = [{**run, "source": str(folder / "policy")} for run in runs]
    return replace(results, provenance={**results.provenance, "runs": runs})
