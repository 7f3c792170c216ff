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

from interverse.core.registry import Entry, Registry

METRICS = Registry(
    "metric",
    {
        "last20_fractional_success": Entry("interverse.metrics.success:last_20", tags=("success",)),
        "last20_legacy": Entry("interverse.metrics.success:last_20_legacy", tags=("success",)),
        "last_fractional_success": Entry("interverse.metrics.success:last", tags=("success",)),
        "mean_fractional_success": Entry("interverse.metrics.success:mean", tags=("success",)),
        "peak_success": Entry("interverse.metrics.success:peak", tags=("success",)),
        "return": Entry("interverse.metrics.success:episode_return", tags=("rewards",)),
        "time_to_success": Entry("interverse.metrics.success:time_to_success", tags=("success",)),
    },
)

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

__all__ = ["METRICS", "REPRESENTATIONS", "STATISTICS"]
