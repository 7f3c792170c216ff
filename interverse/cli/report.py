"""`interverse report`: from results to one HTML page."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from interverse.errors import InvalidValueError, explain
from interverse.protocols.evaluate import COMMAND_FILE, EVALUATION_FILE, RESULT_FILE
from interverse.reports.page import report as write_page
from interverse.results import Results
from interverse.results.training import CURVES_FILE, from_curves


@dataclass(frozen=True, kw_only=True)
class Report:
    """Makes one static HTML page with tables and plots from evaluations."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that `interverse evaluate --out` or `train --out` wrote; several are compared."""
    out: Path | None = None
    """Where to put the page; by default a folder `report` in the first one."""
    metric: str | None = None
    """The score that is plotted; the first that the results hold by default."""
    episodes: bool = True
    """Play the best, the median and the worst episode again and show them."""


def report(config: Report) -> Path:
    """Writes the page and says where it is."""
    if not config.folders:
        raise InvalidValueError(explain("no folder was given", fix="Name an evaluation's folder"))
    results = Results.concat(read_folder(folder) for folder in config.folders)
    target = config.folders[0] / "report" if config.out is None else config.out
    page = write_page(results, target, metric=config.metric, episodes=config.episodes)
    Console().print(f"{page}", soft_wrap=True)
    return page


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
        results = replace(
            results, provenance={**results.provenance, **json.loads(file.read_text())}
        )
    return results


def _of_training(folder: Path) -> Results:
    """Returns the scores of a run's checkpoints; its policy is the exported one."""
    results = Results.from_parquet(folder / EVALUATION_FILE)
    runs = [{**run, "source": str(folder / "policy")} for run in results.provenance["runs"]]
    return replace(results, provenance={**results.provenance, "runs": runs})
