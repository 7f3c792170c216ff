"""Zip archives and .npz files, opened only if their members stay within limits."""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError
from interverse.core.files import check_count, check_unfolded

_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    UnicodeDecodeError,  # of a member's name
)
_MOST_MEMBERS = 10_000
Source = str | os.PathLike[str] | bytes


@contextmanager
def open_zip(source: Source, what: str = "") -> Iterator[zipfile.ZipFile]:
    """Yields an open archive; one that is corrupt or unfolds too far raises FileFormatError."""
    name = what or ("the archive" if isinstance(source, bytes) else Path(source).name)
    size = len(source) if isinstance(source, bytes) else Path(source).stat().st_size
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as file:
            members = file.infolist()
            check_count(name, len(members), _MOST_MEMBERS)
            if sum(member.compress_size for member in members) > size:
                raise FileFormatError(f"members of {name} overlap")
            check_unfolded(name, unfolded=sum(m.file_size for m in members), stored=size)
            for member in members:
                path = PurePosixPath(member.filename)
                if path.is_absolute() or ".." in path.parts or "\\" in member.filename:
                    told = f"{name} has a member {member.filename!r}"
                    raise FileFormatError(told, allowed="relative names")
            yield file
    except FileFormatError:
        raise
    except _FAULTS as error:
        raise FileFormatError(f"{name} is no zip archive, or corrupt: {error}") from error


_SUFFIX = ".npy"
_LONGEST_HEADER = 10_000


def read_npz(source: Source, what: str = "") -> dict[str, NDArray[Any]]:
    """Returns the arrays of an archive by name; anything else raises FileFormatError."""
    with open_zip(source, what) as archive:
        return {
            member.filename.removesuffix(_SUFFIX): _read(archive, member)
            for member in archive.infolist()
        }


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if not member.filename.endswith(_SUFFIX):
        raise FileFormatError(f"the archive has a member {member.filename!r}")
    try:
        with archive.open(member) as file:
            # Raises unless the array is as large as its bytes: NumPy would make room for it
            # first.
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = read(file, max_header_size=_LONGEST_HEADER)
            if dtype.hasobject:
                raise FileFormatError(f"{member.filename} holds Python objects", allowed="numbers")
            if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize > member.file_size:
                raise FileFormatError(f"{member.filename} is shorter than its shape {shape}")
        with archive.open(member) as file:
            return np.asarray(npy.read_array(file, allow_pickle=False))
    except FileFormatError:
        raise
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError) as error:
        raise FileFormatError(f"{member.filename} is no array: {error}") from error
