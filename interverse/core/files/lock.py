"""Locks: one process at a time writes a folder; the system takes a lock back from a killed one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from interverse.core.errors import InvalidValueError, explain
from interverse.core.files.atomic import check_path

_LOCK = ".lock"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Holds a folder for one run; another process that wants it is refused at once."""
    check_path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _LOCK).touch()  # raises where no file can be made
    try:
        with FileLock(folder / _LOCK, blocking=False):
            yield
    except Timeout:
        raise InvalidValueError(
            explain(
                f"another process is at work in {folder}",
                fix="Wait until it ends, or choose another folder",
            )
        ) from None
