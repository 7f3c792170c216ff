"""Tensors at rest in the safetensors format, which can hold no code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interverse.core.errors import FileFormatError, explain, missing_extra
from interverse.core.files.atomic import atomic
from interverse.core.files.limits import check_count

try:
    import torch
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import save_file
except ImportError as error:
    raise missing_extra("torch", "torch") from error


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """Returns the tensors in a file by name; anything else raises FileFormatError."""
    source = Path(path)
    try:
        with safe_open(source, framework="pt", device="cpu") as file:
            names = list(file.keys())
            check_count(source.name, len(names))
            return {name: file.get_tensor(name) for name in names}
    except FileFormatError:
        raise
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        raise FileFormatError(explain(f"{source.name} holds no tensors: {error}")) from error


def write_safetensors(path: Path, tensors: Mapping[str, Any]) -> Path:
    """Writes tensors by name, whole or not at all; returns the path."""
    with atomic(path) as partial:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, partial)
    return path
