"""Metrics: pure functions of arrays, by name. Importing this loads none of them.

`METRICS` are the scores of an episode: what `evaluate(metrics=[...])` takes, by name. Their tags
say what they are functions of: `success` or `rewards`, (..., step) and a length, or `episode`, the
`interverse.protocols.measures.Steps` of one. `STATISTICS` are of (..., run, task) scores (tag
`table`) or of two sets of them (`two`); `REPRESENTATIONS` of latents and true factors
(`representation`) or of two labelings of the same pixels (`segments`).

>>> METRICS.load("last_fractional_success")([[0.2, 0.7]]).tolist()
[0.7]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from interverse.core.registry import Entry, Registry

Of = Literal["success", "rewards", "episode"]
Better = Literal["more", "less"]


def metric(
    target: str,
    of: Of,
    about: str,
    *,
    label: str = "",
    range: tuple[float, float] | None = None,
    better: Better = "more",
) -> Entry:
    """Returns the row that declares a score: all that tables, plots and help say of it.

    Args:
        target: "module:function".
        of: what it is a function of.
        about: what it is, for `--metrics help`.
        label: of axes and heads of tables; the name by default.
        range: the least and the greatest score in any task, where there are such.
        better: whether more of it is better, or less.
    """
    told = {"about": about, "label": label, "range": range, "better": better}
    return Entry(target, options=told, tags=(of,))


_SUCCESS = "interverse.metrics.success"


def _fraction(name: str, about: str, label: str = "") -> Entry:
    """Returns the row of a score of the fraction of success, from 0 to 1."""
    return metric(f"{_SUCCESS}:{name}", "success", about, label=label, range=(0.0, 1.0))


METRICS = Registry(
    "metric",
    {
        "last20_fractional_success": _fraction(
            "last_20",
            "the fraction of success, mean of the last 20 steps",
            "Fraction, last 20 steps",
        ),
        "last20_legacy": _fraction(
            "last_20_legacy",
            "the same over the first step and the last 19, as CausalWorld computed it",
        ),
        "last_fractional_success": _fraction(
            "last", "the fraction of success at the end", "Fraction at the end"
        ),
        "mean_fractional_success": _fraction(
            "mean", "the fraction of success, mean of all steps", "Fraction, whole episode"
        ),
        "peak_success": _fraction("peak", "the greatest fraction of success"),
        "return": metric(
            f"{_SUCCESS}:episode_return", "rewards", "the sum of the rewards", label="Return"
        ),
        "solved": _fraction(
            "solved", "whether the fraction of success at the end is above .9", "Solved"
        ),
        "time_to_success": metric(
            f"{_SUCCESS}:time_to_success",
            "success",
            "steps until the fraction of success first reached .99; infinite where it never did",
            better="less",
        ),
    },
)


def metric_facts(name: str) -> Mapping[str, Any]:
    """Returns what the row of a metric says beside its function; nothing of one without a row.

    >>> metric_facts("time_to_success")["better"], dict(metric_facts("my_own"))
    ('less', {})
    """
    return METRICS[name].options if name in METRICS else {}


def _row(target: str, tag: str) -> Entry:
    return Entry(f"interverse.metrics.{target}", tags=(tag,))


STATISTICS = Registry(
    "statistic",
    {
        "compare": _row("comparison:compare", "two"),
        "generalisation_error": _row("generalisation:generalisation_error", "two"),
        "iqm": _row("statistics:iqm", "table"),
        "mean": _row("statistics:mean", "table"),
        "median": _row("statistics:median", "table"),
        "median_task": _row("statistics:median_task", "table"),
        "optimality_gap": _row("statistics:optimality_gap", "table"),
        "probability_of_improvement": _row("statistics:probability_of_improvement", "two"),
    },
)

REPRESENTATIONS = Registry(
    "metric of representations",
    {
        "block_mcc": _row("representation:block_mcc", "representation"),
        "dci": _row("disentanglement:dci", "representation"),
        "explicitness": _row("disentanglement:explicitness", "representation"),
        "foreground_ari": _row("segmentation:foreground_ari", "segments"),
        "mcc": _row("representation:mcc", "representation"),
        "mean_iou": _row("segmentation:mean_iou", "segments"),
        "mig": _row("disentanglement:mig", "representation"),
        "modularity": _row("disentanglement:modularity", "representation"),
        "r2_matrix": _row("representation:r2_matrix", "representation"),
        "sap": _row("disentanglement:sap", "representation"),
    },
)

__all__ = ["METRICS", "REPRESENTATIONS", "STATISTICS", "metric", "metric_facts"]
