"""Features of a frozen encoder, computed once for many heads and seeds."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from interverse.models.checkpoint import read_tensors, write_tensors
from interverse.models.pairs.config import PairModelConfig
from interverse.models.pairs.tensors import PairTensors

_MOST = 3  # sets of features in memory
_held: OrderedDict[str, Tensor] = OrderedDict()


def features_key(
    config: PairModelConfig, data: PairTensors, source: str, *, seed: int | None
) -> str:
    """Returns a name for the features: equal for equal pictures and encoders.

    Args:
        config: the model; of it, only what makes features counts.
        data: the pairs.
        source: where the encoder's weights came from, and its precision.
        seed: what weights or slots are drawn from; None where nothing is drawn.
    """
    names = ("encoder", "pairing", "match", "min_mask")
    made = {name: value for name, value in config.record().items() if name in names}
    told = json.dumps([made, source, seed], sort_keys=True)
    digest = hashlib.blake2b(told.encode(), digest_size=12)
    digest.update(np.ascontiguousarray(data.images.cpu().numpy()).data)
    if config.pairing == "mask" and data.masks is not None:
        digest.update(np.ascontiguousarray(data.masks.cpu().numpy()).data)
    return digest.hexdigest()


def kept_features(key: str, compute: Callable[[], Tensor], folder: Path | None) -> Tensor:
    """Returns features from memory, from a folder, or computed now and kept in both.

    Args:
        key: their name, of `features_key`.
        compute: makes them.
        folder: where files lie; None keeps them in memory alone.
    """
    if key not in _held:
        file = None if folder is None else folder / f"{key}.safetensors"
        if file is not None and file.exists():
            _held[key] = read_tensors(file)["features"]
        else:
            _held[key] = compute().cpu()
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                write_tensors(file, {"features": _held[key]})
    _held.move_to_end(key)
    while len(_held) > _MOST:
        _held.popitem(last=False)
    return torch.as_tensor(_held[key])
