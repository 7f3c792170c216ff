"""Recognition models: which action links a picture before and a picture after?

Nothing heavy is imported here; a name below loads its module when it is first used.
"""

from __future__ import annotations

from interverse.core.registry import lazy_names

_LAZY = {
    "EncoderConfig": "config",
    "PairFit": "config",
    "PairModelConfig": "config",
    "PairRun": "fit",
    "PairTensors": "tensors",
    "SlotTraining": "slots",
    "analyse": "readout",
    "fit_pairs": "fit",
    "recipe": "config",
    "select": "yardsticks",
    "train_slots": "slots",
}

__all__ = list(_LAZY)

__getattr__ = lazy_names(__name__, _LAZY, extra="rooms")
