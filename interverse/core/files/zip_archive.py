"""Zip archives, opened only if their members stay within limits."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from interverse.core.errors import FileFormatError, explain
from interverse.core.files.limits import check_count, check_unfolded

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
    """Yields an open archive; a corrupt one, or one that unfolds too far, raises FileFormatError.

    Args:
        source: a path, or the archive's bytes.
        what: what to call it in messages; the path by default.
    """
    name = what or ("the archive" if isinstance(source, bytes) else Path(source).name)
    size = len(source) if isinstance(source, bytes) else Path(source).stat().st_size
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as file:
            _check(file.infolist(), name, size)
            yield file
    except FileFormatError:
        raise
    except _FAULTS as error:
        raise FileFormatError(explain(f"{name} is no zip archive, or corrupt: {error}")) from error


def _check(members: list[zipfile.ZipInfo], name: str, size: int) -> None:
    check_count(name, len(members), _MOST_MEMBERS)
    if sum(member.compress_size for member in members) > size:
        raise FileFormatError(explain(f"members of {name} overlap"))
    check_unfolded(name, unfolded=sum(member.file_size for member in members), stored=size)
    for member in members:
        path = PurePosixPath(member.filename)
        if path.is_absolute() or ".." in path.parts or "\\" in member.filename:
            raise FileFormatError(
                explain(f"{name} has a member {member.filename!r}", allowed="relative names")
            )
