"""World models: encoders, transitions, training, ranking, and what they know of the graph.

Nothing heavy is imported here; a name below loads its module when it is first used.
"""

from __future__ import annotations

from interverse.core.registry import lazy_names
from interverse.models.table import MODELS, ModelEntry

_LAZY = {
    "ArraySource": "source",
    "Fit": "fit",
    "Fitted": "world_fit",
    "RenderedSource": "source",
    "RewardData": "heads",
    "WorldModel": "world_model",
    "WorldModelConfig": "world_model",
    "evaluate_ranking": "ranking",
    "fit_probe": "heads",
    "fit_reward": "heads",
    "fit_world_model": "world_fit",
}

__all__ = ["MODELS", "ModelEntry", *_LAZY]

__getattr__ = lazy_names(__name__, _LAZY, extra="torch")
