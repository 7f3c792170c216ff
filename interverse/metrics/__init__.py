"""Metrics: pure functions of arrays, by name. Importing this loads none of them.

Tags say what a metric takes: `steps` (..., step) of success or rewards and a length, `table`
(..., run, task) of scores, `two` sets of scores, `representation` latents and true factors,
`segments` two labelings of the same pixels.

>>> METRICS.load("last_fractional_success")([[0.2, 0.7]]).tolist()
[0.7]
"""

from __future__ import annotations

from interverse.registry import Entry, Registry

METRICS = Registry(
    "metric",
    {
        "block_mcc": Entry("interverse.metrics.representation:block_mcc", tags=("representation",)),
        "compare": Entry("interverse.metrics.comparison:compare", tags=("two",)),
        "dci": Entry("interverse.metrics.disentanglement:dci", tags=("representation",)),
        "explicitness": Entry(
            "interverse.metrics.disentanglement:explicitness", tags=("representation",)
        ),
        "foreground_ari": Entry(
            "interverse.metrics.segmentation:foreground_ari", tags=("segments",)
        ),
        "generalisation_error": Entry(
            "interverse.metrics.generalisation:generalisation_error", tags=("two",)
        ),
        "iqm": Entry("interverse.metrics.statistics:iqm", tags=("table",)),
        "last20_fractional_success": Entry(
            "interverse.metrics.success:last_20", tags=("steps", "success")
        ),
        "last_fractional_success": Entry(
            "interverse.metrics.success:last", tags=("steps", "success")
        ),
        "mcc": Entry("interverse.metrics.representation:mcc", tags=("representation",)),
        "mean": Entry("interverse.metrics.statistics:mean", tags=("table",)),
        "mean_fractional_success": Entry(
            "interverse.metrics.success:mean", tags=("steps", "success")
        ),
        "mean_iou": Entry("interverse.metrics.segmentation:mean_iou", tags=("segments",)),
        "median": Entry("interverse.metrics.statistics:median", tags=("table",)),
        "median_task": Entry("interverse.metrics.statistics:median_task", tags=("table",)),
        "mig": Entry("interverse.metrics.disentanglement:mig", tags=("representation",)),
        "modularity": Entry(
            "interverse.metrics.disentanglement:modularity", tags=("representation",)
        ),
        "optimality_gap": Entry("interverse.metrics.statistics:optimality_gap", tags=("table",)),
        "probability_of_improvement": Entry(
            "interverse.metrics.statistics:probability_of_improvement", tags=("two",)
        ),
        "r2_matrix": Entry("interverse.metrics.representation:r2_matrix", tags=("representation",)),
        "return": Entry("interverse.metrics.success:episode_return", tags=("steps", "rewards")),
        "sap": Entry("interverse.metrics.disentanglement:sap", tags=("representation",)),
        "time_to_success": Entry(
            "interverse.metrics.success:time_to_success", tags=("steps", "success")
        ),
    },
)

__all__ = ["METRICS"]
