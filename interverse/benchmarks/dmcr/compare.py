"""Our returns and E_G beside the printed ones, as JSON, and as people read it.

Pages are one Markdown file, one HTML page and figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.agents.pixel.config import SCHEDULES
from interverse.benchmarks.dmcr.settings import (
    AUGMENTED,
    CONDITIONS,
    SHEETS,
    TASKS,
    TITLES,
    TRAJECTORY,
    DmcrVariant,
    RemasteredSettings,
    all_rows,
    figure_variants,
    printed,
    table_variant,
)
from interverse.benchmarks.driver import SMALL, Tables
from interverse.metrics.bootstrap import Interval, t_interval
from interverse.metrics.generalisation import generalisation_error_of_runs
from interverse.reports.sections import Grid, Section, laid_out

Cell = dict[str, Any]
_PERCENT = 100.0


def compare(settings: RemasteredSettings, number: int) -> dict[str, Any]:
    """Returns one table's comparison; rows without results are left out."""
    full = settings.budget == "full" and settings.steps is None and settings.runs is None
    return {
        "table": number,
        "title": TITLES[number],
        "budget": settings.budget,
        "comparable": number == 3 or full,
        "cells": schedule_cells() if number == 3 else list(_cells(settings, number)),
    }


def returns(found: Sequence[Mapping[str, Any]], protocol: str) -> list[NDArray[np.float64]]:
    """Returns the returns of each run's episodes under a protocol, of the runs that have them."""
    kept = (record["scores"][protocol] for record in found if protocol in record["scores"])
    return [np.array(score["return"]["returns"]) for score in kept]


def scored(found: Sequence[Mapping[str, Any]], protocol: str) -> Cell | None:
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


def _interval_entry(found: Interval, factor: float) -> dict[str, float | None]:
    names = {"mean": found.estimate, "low": found.low, "high": found.high}
    return {
        name: None if np.isnan(value) else round(factor * float(value), 2)
        for name, value in names.items()
    }


def printed_returns(table: int, task: str, method: str) -> dict[str, float]:
    """Returns the printed returns of a row by protocol; the two tables differ in a few."""
    names = {**CONDITIONS, "train": "train", "test": "all"}
    return {
        names[row["condition"]]: row.value
        for row in printed(table)
        if (row["task"], row["method"], row["metric"]) == (task, method, "return")
    }


def lost_percent(learned: float | None, tested: float | None) -> float | None:
    """Returns E_G in percent, None where a number is missing or nothing was learned.

    >>> lost_percent(200.0, 50.0)
    75.0
    """
    if learned is None or tested is None or learned <= 0:
        return None
    return _PERCENT * (learned - tested) / learned


def _cells(settings: RemasteredSettings, number: int) -> Iterator[Cell]:
    for task, method in all_rows(number):
        found = settings.records(table_variant(task, method))
        theirs = printed_returns(number, task, method)
        for protocol in ("train", "all") if number == 1 else CONDITIONS.values():
            ours = scored(found, protocol)
            if ours is None:
                continue
            there = theirs.get(protocol)
            lost = lost_percent(theirs.get("train"), there)
            beside = {
                "return": there,
                "return_difference": _difference(ours["return"]["mean"], there),
                "E_G": None if lost is None else round(lost, 1),
                "E_G_difference": _difference(ours["E_G"]["mean"], lost),
            }
            about = {"task": task, "method": method, "condition": protocol}
            yield {**about, "ours": ours, "published": beside}


def _difference(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else round(ours - theirs, 2)


def schedule_cells() -> list[Cell]:
    """Returns training lengths and frame skips, ours and the printed ones."""
    cells = []
    for row in printed(3):
        own = SCHEDULES[TASKS[row["task"]]]
        ours = own.steps if row["metric"] == "training_steps" else own.frame_skip
        cell = {"task": row["task"], "metric": row["metric"], "ours": ours}
        cells.append(cell | {"published": int(row.value), "difference": ours - int(row.value)})
    return cells


# -------------------------------------------------------------------------------------- the pages

_LEGEND = (
    "Mean return of an episode with its 95% interval over training runs (Student's t; a single run"
    " has none: its episodes do not tell how another run would do), then the published number in"
    " brackets, a dash where we know of none. E_G is the share of the training return that is lost,"
    " in percent; a run counts with both its returns. Runs that lack one of them are left out."
)
_SMALL_FIGURES = (
    "This is not the paper's budget; a task stands for the caption's where the budget has not that."
)
_PICTURES = "Floors and backgrounds are generated ones, not the paper's photographs."
_OWN_PICTURES = "Floors and backgrounds are those of {}."
_SCHEDULES = "Decisions and frame skip; the Hopper's length is damaged in our text of the paper."
_STATES = {**SHEETS, 8: AUGMENTED, 9: TRAJECTORY}  # figures of states, for which nothing is trained


def sections(
    settings: RemasteredSettings, tables: Tables, figures: Sequence[str]
) -> Iterator[Section]:
    """Yields the returns and E_G of each table, and what each figure is of."""
    given = settings.textures
    pictures = _PICTURES if given is None else _OWN_PICTURES.format(given.name)
    for content in tables:
        cells, title = content["cells"], content["title"]
        if content["table"] == 3:
            names = ("task", "metric", "ours", "published", "difference")
            lines = [[str(cell[name]) for name in names] for cell in cells]
            yield title, [_SCHEDULES], [[n.replace("metric", "what") for n in names], *lines]
        elif cells:
            remarks = [_LEGEND, pictures] if content["comparable"] else [_LEGEND, SMALL, pictures]
            yield f"{title}: returns", remarks, numbers(cells, "return")
            tests = [cell for cell in cells if cell["condition"] != "train"]
            yield f"{title}: E_G", [], numbers(tests, "E_G")
    if not figures:
        return
    # Of each figure: its task, agents, their length, and how many are trained.
    sizes, grid = settings.sizes(), [["figure", "task", "agents", "decisions", "runs finished"]]
    for number in sorted(set(settings.figures)):
        if number in _STATES:
            grid.append([str(number), _STATES[number], "none", "", ""])
        by_task: dict[str, list[DmcrVariant]] = {}
        for variant in figure_variants(number, sizes):
            by_task.setdefault(variant.task, []).append(variant)
        for task, shown in by_task.items():
            agents = ", ".join(dict.fromkeys(variant.method for variant in shown))
            steps = settings.training(shown[0], 0).steps
            done = sum("evaluations" in r for v in shown for r in settings.records(v))
            runs = f"{done} of {len(shown) * sizes.runs}"
            grid.append([str(number), task, agents, f"{steps:,}", runs])
    remarks = [pictures] if settings.budget == "full" else [_SMALL_FIGURES, pictures]
    yield "Figures", remarks, grid


def numbers(cells: Sequence[Mapping[str, Any]], metric: str) -> Grid:
    """Returns a row per task and method, a column per condition."""
    laid = []
    for cell in cells:
        ours, theirs = cell["ours"][metric], cell["published"][metric]
        told = "none" if ours["mean"] is None else f"{ours['mean']:.1f}"
        if ours["low"] is not None:
            told += f" [{ours['low']:.1f}, {ours['high']:.1f}]"
        told += " (-)" if theirs is None else f" ({theirs:g})"
        laid.append(((f"{cell['task']} {cell['method']}",), cell["condition"], told))
    return laid_out(laid, ("agent",))
