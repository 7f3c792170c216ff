"""Nested states of learners as the flat tensors of a checkpoint, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def split(
    tree: Mapping[Any, Any], prefix: str = ""
) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Returns copies of the tensors and arrays of nested dicts by path, and all the rest by path.

    >>> split({"a": {0: torch.zeros(1)}, "rate": 0.1})
    ({'a|#0': tensor([0.])}, {'rate': 0.1})
    """
    tensors: dict[str, torch.Tensor] = {}
    plain: dict[str, Any] = {}
    for key, value in tree.items():
        path = f"{prefix}{'#' if isinstance(key, int) else ''}{key}"
        if isinstance(value, np.ndarray):
            tensors[path] = torch.tensor(value)
        elif isinstance(value, torch.Tensor):
            tensors[path] = value.detach().clone()
        elif isinstance(value, Mapping):
            inner = split(value, path + "|")
            tensors |= inner[0]
            plain |= inner[1]
            if not value:
                plain[path] = {}
        else:
            plain[path] = value
    return tensors, plain


def join(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the nested dicts that `split` took apart."""
    out: dict[Any, Any] = {}
    for path, value in (item for part in parts for item in part.items()):
        *parents, last = (int(k[1:]) if k.startswith("#") else k for k in path.split("|"))
        node = out
        for key in parents:
            node = node.setdefault(key, {})
        node[last] = value
    return out
