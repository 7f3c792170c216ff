"""Files that Torch saved: no code of theirs is run, and they unfold no further than their size."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from interverse.core.errors import FileFormatError, explain, missing_extra
from interverse.core.files.zip_archive import open_zip

try:
    import torch
except ImportError as error:
    raise missing_extra("torch", "torch") from error


def read_torch(source: str | os.PathLike[str] | bytes, what: str = "") -> Mapping[str, Any]:
    """Returns the mapping in a file that Torch saved; anything else raises FileFormatError.

    Args:
        source: a path, or the file's bytes.
        what: what to call it in messages; the path by default.
    """
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
        raise FileFormatError(explain(problem, fix="Save a state dict")) from error
    if not isinstance(found, Mapping):
        raise FileFormatError(
            explain(f"{name} holds a {type(found).__name__}", allowed="a mapping")
        )
    for part in _tensors(found):
        if part.numel() * part.element_size() > part.untyped_storage().nbytes():
            raise FileFormatError(explain(f"{name} has a tensor that is larger than its bytes"))
    return found


def _tensors(found: Any) -> Iterator[torch.Tensor]:
    """Yields the tensors in mappings and lists, however deep."""
    if isinstance(found, torch.Tensor):
        yield found
    elif isinstance(found, Mapping | list | tuple):
        for part in found.values() if isinstance(found, Mapping) else found:
            yield from _tensors(part)
