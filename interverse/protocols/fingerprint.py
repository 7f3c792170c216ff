"""Which policy it is: a hash of what decides its actions, so that a folder holds one policy."""

from __future__ import annotations

import hashlib
import pickle
import types
from pathlib import Path
from typing import Any

import numpy as np

from interverse.rollouts.policy import PolicyLike


def fingerprint(policy: PolicyLike) -> str:
    """Returns a hash of a policy's name, files, weights, or code with what it closes over.

    >>> def make(gain):
    ...     return lambda seen: gain * seen
    >>> fingerprint(make(0.0)) == fingerprint(make(1.0))
    False
    """
    digest = hashlib.blake2b(digest_size=8)
    _add(digest, policy, depth=0)
    return digest.hexdigest()


def _add(digest: Any, value: Any, depth: int) -> None:
    digest.update(type(value).__qualname__.encode())
    if isinstance(value, str | Path) and Path(value).is_file():
        digest.update(Path(value).read_bytes())
    elif isinstance(value, str | Path) and Path(value).is_dir():
        for file in sorted(p for p in Path(value).rglob("*") if p.is_file()):
            digest.update(file.name.encode() + file.read_bytes())
    elif isinstance(value, np.ndarray):
        digest.update(str(value.dtype).encode() + np.ascontiguousarray(value).tobytes())
    elif callable(getattr(value, "state_dict", None)) and depth < _DEEP:
        _add_weights(digest, value.state_dict())
    elif callable(getattr(getattr(value, "policy", None), "state_dict", None)):  # an SB3 model
        _add_weights(digest, value.policy.state_dict())
    elif isinstance(value, types.FunctionType) and depth < _DEEP:
        _add_function(digest, value, depth)
    else:
        digest.update(_bytes(value))


_DEEP = 4  # closures within closures are followed so far


def _add_weights(digest: Any, weights: Any) -> None:
    for name, tensor in weights.items():
        digest.update(str(name).encode())
        if callable(getattr(tensor, "detach", None)):
            digest.update(tensor.detach().cpu().numpy().tobytes())


def _add_function(digest: Any, function: types.FunctionType, depth: int) -> None:
    code = function.__code__
    digest.update(code.co_code + repr(code.co_names).encode())
    for constant in code.co_consts:
        held = constant.co_code if isinstance(constant, types.CodeType) else repr(constant).encode()
        digest.update(held)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    for value in (*cells, *(function.__defaults__ or ())):
        _add(digest, value, depth + 1)


def _bytes(value: Any) -> bytes:
    """Returns an object's bytes; one that cannot be pickled is known by its class alone."""
    try:
        return pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        return type(value).__qualname__.encode()
