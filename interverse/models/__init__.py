"""World models: encoders, transitions, training, ranking, and what they know of the graph.

Nothing heavy is imported here; a name below loads its module when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from interverse.core.errors import missing_extra
from interverse.models.table import MODELS, ModelEntry

_LAZY = {
    "ArraySource": "interverse.models.source",
    "Fit": "interverse.models.fit",
    "Fitted": "interverse.models.world_fit",
    "RenderedSource": "interverse.models.source",
    "RewardData": "interverse.models.reward",
    "WorldModel": "interverse.models.world_model",
    "WorldModelConfig": "interverse.models.world_model",
    "evaluate_ranking": "interverse.models.ranking",
    "fit_probe": "interverse.models.probe",
    "fit_reward": "interverse.models.reward",
    "fit_world_model": "interverse.models.world_fit",
}

__all__ = ["MODELS", "ModelEntry", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_LAZY[name])
    except ModuleNotFoundError as error:
        if error.name in ("torch", "safetensors"):
            raise missing_extra(error.name, "torch") from error
        raise
    return getattr(module, name)
