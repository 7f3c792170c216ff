"""Parts of every training: its record, its run in a folder, its state as flat tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from interverse._version import __version__
from interverse.core.files.json_text import plain
from interverse.core.run import Display, Run

PLACES = ("out", "wandb")  # settings that tell no training from another


def record_of(
    config: Any, more: Mapping[str, Any] | None = None, *, without: Collection[str] = PLACES
) -> dict[str, Any]:
    """Returns the settings that tell a training from others, and more, JSON-ready."""
    whole = {**asdict(config), **(more or {})}
    return dict(plain({name: value for name, value in whole.items() if name not in without}))


def trained_by(record: Mapping[str, Any], steps: int, **more: Any) -> dict[str, Any]:
    """Returns what the card of a policy says of its training."""
    return {"config": record, "steps": steps, "version": __version__, **more}


def run_of(
    config: Any,
    record: Mapping[str, Any],
    code: Mapping[str, Any],
    *,
    total: int,
    display: Display,
    every: int | None = None,
    title: str = "",
) -> Run:
    """Returns the run of a training in its folder, told from others by record and own code."""
    return Run(
        config.out,
        {**record, "code": code},
        title=title or f"{config.algorithm} {config.task}",
        total=total,
        every=every,
        display=display,
        wandb=config.wandb,
    )


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
