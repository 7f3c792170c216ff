"""Our returns and E_G beside the printed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.agents.pixel.presets import SCHEDULES
from interverse.benchmarks.dmcr.published import TASKS, TITLES, all_rows, printed
from interverse.benchmarks.dmcr.settings import RemasteredSettings
from interverse.benchmarks.dmcr.variants import CONDITIONS, DmcrVariant, row_file, table_variant
from interverse.metrics.bootstrap import Interval
from interverse.metrics.generalisation import generalisation_error_of_runs
from interverse.metrics.student import t_interval
from interverse.models.checkpoint import read_json, write_json

Number = dict[str, Any]
_PERCENT = 100.0


def compare(settings: RemasteredSettings, number: int) -> dict[str, Any]:
    """Returns one table's comparison and writes it as JSON; rows without results are left out."""
    cells = schedule_cells() if number == 3 else _cells(settings, number)
    content = {
        "table": number,
        "title": TITLES[number],
        "budget": settings.budget,
        "comparable": number == 3 or _as_published(settings),
        "cells": cells,
    }
    write_json(settings.out / f"table-{number}.json", content)
    return content


def _as_published(settings: RemasteredSettings) -> bool:
    return settings.budget == "full" and settings.steps is None and settings.runs is None


def records(settings: RemasteredSettings, variant: DmcrVariant) -> list[dict[str, Any]]:
    """Returns the records on disk of a variant, by run."""
    paths = (row_file(settings.out, variant, seed) for seed in range(settings.sizes().runs))
    return [read_json(path) for path in paths if path.exists()]


def returns(found: Sequence[Mapping[str, Any]], protocol: str) -> list[NDArray[np.float64]]:
    """Returns the returns of each run's episodes under a protocol, of the runs that have them."""
    kept = (record["scores"][protocol] for record in found if protocol in record["scores"])
    return [np.array(score["return"]["returns"]) for score in kept]


def scored(found: Sequence[Mapping[str, Any]], protocol: str) -> Number | None:
    """Returns mean return and E_G in percent, of the runs that have both tests; None without one.

    Intervals are Student's t over training runs; a single run has none.
    """
    both = [record for record in found if {protocol, "train"} <= record["scores"].keys()]
    if not both:
        return None
    tested, learned = returns(both, protocol), returns(both, "train")
    values, base = (np.array([run.mean() for run in runs]) for runs in (tested, learned))
    return {
        "return": _interval_entry(t_interval(values), 1.0),
        "E_G": _interval_entry(generalisation_error_of_runs(base, values), _PERCENT),
        "runs": len(tested),
        "episodes": int(sum(len(run) for run in tested)),
    }


def published(table: int, task: str, method: str) -> dict[str, float]:
    """Returns the printed returns of a row by protocol; the two tables differ in a few."""
    names = {**CONDITIONS, "train": "train", "test": "all"}
    return {
        names[row.condition]: row.value
        for row in printed(table)
        if (row.task, row.method, row.metric) == (task, method, "return")
    }


def lost_percent(learned: float | None, tested: float | None) -> float | None:
    """Returns E_G in percent, None where a number is missing or nothing was learned.

    >>> lost_percent(200.0, 50.0)
    75.0
    """
    if learned is None or tested is None or learned <= 0:
        return None
    return _PERCENT * (learned - tested) / learned


def _cells(settings: RemasteredSettings, number: int) -> list[Number]:
    protocols = ("train", "all") if number == 1 else tuple(CONDITIONS.values())
    out = []
    for task, method in all_rows(number):
        found = records(settings, table_variant(task, method))
        theirs = published(number, task, method)
        for protocol in protocols:
            ours = scored(found, protocol)
            if ours is not None:
                out.append(
                    {
                        "task": task,
                        "method": method,
                        "condition": protocol,
                        "ours": ours,
                        "published": _beside(ours, theirs, protocol),
                    }
                )
    return out


def _beside(ours: Number, theirs: Mapping[str, float], protocol: str) -> Number:
    """Returns the printed return and E_G with how far ours are from them; None: none known."""
    printed_return = theirs.get(protocol)
    printed_loss = lost_percent(theirs.get("train"), printed_return)
    return {
        "return": printed_return,
        "return_difference": _difference(ours["return"]["mean"], printed_return),
        "E_G": None if printed_loss is None else round(printed_loss, 1),
        "E_G_difference": _difference(ours["E_G"]["mean"], printed_loss),
    }


def schedule_cells() -> list[Number]:
    """Returns training lengths and frame skips, ours and the printed ones."""
    ours = {
        (title, metric): value
        for title, task in TASKS.items()
        for metric, value in (
            ("training_steps", SCHEDULES[task].steps),
            ("frame_skip", SCHEDULES[task].frame_skip),
        )
    }
    return [
        {
            "task": row.task,
            "metric": row.metric,
            "ours": ours[row.task, row.metric],
            "published": int(row.value),
            "difference": ours[row.task, row.metric] - int(row.value),
        }
        for row in printed(3)
    ]


def _interval_entry(found: Interval, factor: float) -> dict[str, float | None]:
    names = {"mean": found.estimate, "low": found.low, "high": found.high}
    return {
        name: None if np.isnan(value) else round(factor * float(value), 2)
        for name, value in names.items()
    }


def _difference(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else round(ours - theirs, 2)
