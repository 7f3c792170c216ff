"""Weights in files: safetensors, and PyTorch's own format read without running code."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from interverse.core.errors import FileFormatError, missing_extra
from interverse.core.files import check_count
from interverse.core.files.atomic import atomic
from interverse.core.files.zip_archive import open_zip

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
        raise FileFormatError(f"{source.name} holds no tensors: {error}") from error


def write_safetensors(path: Path, tensors: Mapping[str, Any], *, durable: bool = False) -> Path:
    """Writes tensors by name, whole or not at all (see `atomic`); returns the path."""
    with atomic(path, durable=durable) as partial:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, partial)
    return path


def read_torch(source: str | os.PathLike[str] | bytes, what: str = "") -> Mapping[str, Any]:
    """Returns the mapping in a file or bytes of Torch; all else raises FileFormatError."""
    name = what or ("the file" if isinstance(source, bytes) else Path(source).name)
    opened = io.BytesIO(source if isinstance(source, bytes) else Path(source).read_bytes())
    if zipfile.is_zipfile(opened):
        with open_zip(source, name):
            pass  # its members stay within limits
    opened.seek(0)
    try:
        found = torch.load(opened, map_location="cpu", weights_only=True)
    except Exception as error:  # Torch raises whatever its unpickler does, pickle.UnpicklingError
        problem = f"{name} cannot be read: it is corrupt, or holds more than tensors"
        raise FileFormatError(problem, fix="Save a state dict") from error
    if not isinstance(found, Mapping):
        raise FileFormatError(f"{name} holds a {type(found).__name__}", allowed="a mapping")
    for part in _tensors(found):
        if part.numel() * part.element_size() > part.untyped_storage().nbytes():
            raise FileFormatError(f"{name} has a tensor that is larger than its bytes")
    return found


def _tensors(found: Any) -> Iterator[torch.Tensor]:
    """Yields the tensors in mappings and lists, however deep."""
    if isinstance(found, torch.Tensor):
        yield found
    elif isinstance(found, Mapping | list | tuple):
        for part in found.values() if isinstance(found, Mapping) else found:
            yield from _tensors(part)
