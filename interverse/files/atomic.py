"""Atomic writes: a file appears under its name when it is complete, or not at all."""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from interverse.errors import StorageError, explain

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Yields a path to write to; on success the file takes its place, on failure it is gone.

    Args:
        path: the file to make; its folder is made too.
        durable: whether the bytes must be on the disk before the name is.

    Raises:
        StorageError: if the disk is full or a quota is spent; nothing is left behind.
    """
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.partial{path.suffix}")
    with storage(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            if durable:
                _sync(partial)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> Path:
    """Writes a file, whole or not at all; returns its path."""
    with atomic(path) as partial:
        partial.write_bytes(data)
    return path


def write_text(path: Path, text: str) -> Path:
    """Writes a text file in UTF-8, whole or not at all; returns its path."""
    return write_bytes(path, text.encode())


def write_json(path: Path, value: Any, *, indent: int | None = 1) -> Path:
    """Writes a value as JSON, keys sorted, whole or not at all; returns the path."""
    return write_text(path, json.dumps(value, indent=indent, sort_keys=True))


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turns a full disk, which libraries report in many ways, into one `StorageError`."""
    try:
        yield
    except StorageError:
        raise
    except (OSError, RuntimeError) as error:
        if not _is_full(error):
            raise
        raise StorageError(
            explain(
                f"no space is left to write {path}",
                fix="Free some and start the same command again: what is finished is kept",
            )
        ) from error


def _is_full(error: BaseException) -> bool:
    """Returns whether an error, or what caused it, says that the disk is full.

    HDF5 and Rust wrap the system's error in text of their own.
    """
    known: BaseException | None = error
    while known is not None:
        if isinstance(known, OSError) and known.errno in _FULL:
            return True
        if any(f"errno = {code}" in str(known) for code in _FULL):
            return True
        if "No space left on device" in str(known):
            return True
        known = known.__cause__ or known.__context__
    return False


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
