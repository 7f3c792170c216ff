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


_SUCCESS, _UNIT = "interverse.metrics.success", (0.0, 1.0)
METRICS = Registry(
    "metric",
    {
        "last20_fractional_success": metric(
            f"{_SUCCESS}:last_20",
            "success",
            "the fraction of success, mean of the last 20 steps",
            label="Fraction, last 20 steps",
            range=_UNIT,
        ),
        "last20_legacy": metric(
            f"{_SUCCESS}:last_20_legacy",
            "success",
            "the same over the first step and the last 19, as CausalWorld computed it",
            range=_UNIT,
        ),
        "last_fractional_success": metric(
            f"{_SUCCESS}:last",
            "success",
            "the fraction of success at the end",
            label="Fraction at the end",
            range=_UNIT,
        ),
        "mean_fractional_success": metric(
            f"{_SUCCESS}:mean",
            "success",
            "the fraction of success, mean of all steps",
            label="Fraction, whole episode",
            range=_UNIT,
        ),
        "peak_success": metric(
            f"{_SUCCESS}:peak", "success", "the greatest fraction of success", range=_UNIT
        ),
        "return": metric(
            f"{_SUCCESS}:episode_return", "rewards", "the sum of the rewards", label="Return"
        ),
        "solved": metric(
            f"{_SUCCESS}:solved",
            "success",
            "whether the fraction of success at the end is above .9",
            label="Solved",
            range=_UNIT,
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


STATISTICS = Registry(
    "statistic",
    {
        "compare": Entry("interverse.metrics.comparison:compare", tags=("two",)),
        "generalisation_error": Entry(
            "interverse.metrics.generalisation:generalisation_error", tags=("two",)
        ),
        "iqm": Entry("interverse.metrics.statistics:iqm", tags=("table",)),
        "mean": Entry("interverse.metrics.statistics:mean", tags=("table",)),
        "median": Entry("interverse.metrics.statistics:median", tags=("table",)),
        "median_task": Entry("interverse.metrics.statistics:median_task", tags=("table",)),
        "optimality_gap": Entry("interverse.metrics.statistics:optimality_gap", tags=("table",)),
        "probability_of_improvement": Entry(
            "interverse.metrics.statistics:probability_of_improvement", tags=("two",)
        ),
    },
)

REPRESENTATIONS = Registry(
    "metric of representations",
    {
        "block_mcc": Entry("interverse.metrics.representation:block_mcc", tags=("representation",)),
        "dci": Entry("interverse.metrics.disentanglement:dci", tags=("representation",)),
        "explicitness": Entry(
            "interverse.metrics.disentanglement:explicitness", tags=("representation",)
        ),
        "foreground_ari": Entry(
            "interverse.metrics.segmentation:foreground_ari", tags=("segments",)
        ),
        "mcc": Entry("interverse.metrics.representation:mcc", tags=("representation",)),
        "mean_iou": Entry("interverse.metrics.segmentation:mean_iou", tags=("segments",)),
        "mig": Entry("interverse.metrics.disentanglement:mig", tags=("representation",)),
        "modularity": Entry(
            "interverse.metrics.disentanglement:modularity", tags=("representation",)
        ),
        "r2_matrix": Entry("interverse.metrics.representation:r2_matrix", tags=("representation",)),
        "sap": Entry("interverse.metrics.disentanglement:sap", tags=("representation",)),
    },
)

__all__ = ["METRICS", "REPRESENTATIONS", "STATISTICS", "metric", "metric_facts"]
