"""Recognition models: which action links a picture before and a picture after?

Nothing heavy is imported here; a name below loads its module when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from interverse.core.errors import missing_extra

_LAZY = {
    "EncoderConfig": "interverse.models.pairs.config",
    "PairFit": "interverse.models.pairs.config",
    "PairModelConfig": "interverse.models.pairs.config",
    "PairRun": "interverse.models.pairs.fit",
    "PairTensors": "interverse.models.pairs.tensors",
    "SlotTraining": "interverse.models.pairs.slot_training",
    "analyse": "interverse.models.pairs.analysis",
    "fit_pairs": "interverse.models.pairs.fit",
    "recipe": "interverse.models.pairs.recipes",
    "select": "interverse.models.pairs.selection",
    "train_slots": "interverse.models.pairs.slot_training",
}

__all__ = list(_LAZY)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_LAZY[name])
    except ModuleNotFoundError as error:
        if error.name in ("torch", "safetensors"):
            raise missing_extra(error.name, "rooms") from error
        raise
    return getattr(module, name)
