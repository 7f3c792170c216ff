"""NumPy's npz archives, read without pickles and within limits."""

from __future__ import annotations

import math
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, explain
from interverse.core.files.zip_archive import Source, open_zip

_SUFFIX = ".npy"
_LONGEST_HEADER = 10_000


def read_npz(source: Source, what: str = "") -> dict[str, NDArray[Any]]:
    """Returns the arrays of an archive by name; anything else raises FileFormatError.

    Args:
        source: a path, or the archive's bytes.
        what: what to call it in messages; the path by default.
    """
    with open_zip(source, what) as archive:
        return {
            member.filename.removesuffix(_SUFFIX): _read(archive, member)
            for member in archive.infolist()
        }


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if not member.filename.endswith(_SUFFIX):
        raise FileFormatError(explain(f"the archive has a member {member.filename!r}"))
    try:
        with archive.open(member) as file:
            _check_header(file, member)
        with archive.open(member) as file:
            return np.asarray(npy.read_array(file, allow_pickle=False))
    except FileFormatError:
        raise
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError) as error:
        raise FileFormatError(explain(f"{member.filename} is no array: {error}")) from error


def _check_header(file: Any, member: zipfile.ZipInfo) -> None:
    """Raises unless the array is as large as its bytes: NumPy would make room for it first."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file, max_header_size=_LONGEST_HEADER)
    if dtype.hasobject:
        raise FileFormatError(explain(f"{member.filename} holds Python objects", allowed="numbers"))
    if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize > member.file_size:
        raise FileFormatError(explain(f"{member.filename} is shorter than its shape {shape}"))
