"""Files that are written whole or not at all; locks of folders; the cache folder."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from interverse.core.errors import InvalidValueError, StorageError

_MARK = re.compile(r"\.([0-9a-f]{6})-(\d+)-[0-9a-f]{8}\.partial")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Yields a path to write to; on success the file takes its place, on failure it is gone.

    With `durable`, bytes and name are on the disk when this returns, the bytes first. A full disk,
    a spent quota or a folder of that name raise StorageError, and nothing is left behind.
    """
    check_path(path)
    if path.is_dir():
        raise StorageError(f"{path} is a folder", allowed="the name of a file")
    mark = f"{_host()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    partial = path.with_name(f".{path.name}.{mark}.partial{path.suffix}")
    with storage(path):
        make_folder(path.parent)
        try:
            yield partial
            if durable:
                _sync(partial)
            os.replace(partial, path)
            if durable:
                _sync(path.parent)  # a name is an entry of its folder
        finally:
            partial.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Makes a folder with those above it; raises StorageError where a file is in the way."""
    check_path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        file = next((part for part in (folder, *folder.parents) if part.is_file()), folder)
        raise StorageError(f"{file} is a file", allowed="a folder") from error


def check_path(path: str | os.PathLike[str]) -> None:
    r"""Raises for a name that no file system takes.

    >>> check_path("scores\0")
    Traceback (most recent call last):
    interverse.core.errors.InvalidValueError: a name is 'scores\x00'. Allowed: whole characters.
    """
    text = os.fspath(path)
    try:
        whole = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        whole = False
    if not whole:
        shown = text if len(text) <= 100 else f"{text[:100]}..."
        raise InvalidValueError(f"a name is {shown!r}", allowed="whole characters")


def write_bytes(path: Path, data: bytes) -> Path:
    """Writes a file, whole or not at all; returns its path."""
    with atomic(path) as partial:
        partial.write_bytes(data)
    return path


def write_text(path: Path, text: str) -> Path:
    """Writes a text file in UTF-8, whole or not at all; returns its path."""
    return write_bytes(path, text.encode())


def write_json(path: Path, value: Any, *, indent: int | None = 1, sort_keys: bool = True) -> Path:
    """Writes a value as JSON, whole or not at all; returns the path."""
    return write_text(path, json.dumps(value, indent=indent, sort_keys=sort_keys))


def file_hash(path: Path) -> str:
    """Returns a hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def remove_stale(folder: Path) -> None:
    """Removes what processes of this machine that were killed left half-written in a folder."""
    for path in folder.glob(".*.partial*") if folder.is_dir() else ():
        found = _MARK.search(path.name)
        if found and found[1] == _host() and not _is_alive(int(found[2])):
            path.unlink(missing_ok=True)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yields a folder that is gone afterwards; those of killed processes are removed first."""
    for path in Path(gettempdir()).glob(f"interverse-{_host()}-*"):
        pid = path.name.split("-")[2]
        if pid.isdigit() and not _is_alive(int(pid)):
            shutil.rmtree(path, ignore_errors=True)
    with TemporaryDirectory(prefix=f"interverse-{_host()}-{os.getpid()}-") as folder:
        yield Path(folder)


@cache
def _host() -> str:
    """Returns a short hash of this machine's name: process ids are its own."""
    return hashlib.blake2b(platform.node().encode(), digest_size=3).hexdigest()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    return True


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turns a full disk, which libraries report in many ways, into one `StorageError`."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:  # each library has a class of its own for it
        if not _is_full(error):
            raise
        raise StorageError(
            f"no space is left to write {path}",
            fix="Free some and start the same command again: what is finished is kept",
        ) from error


@contextmanager
def quiet_threads() -> Iterator[None]:
    """Leaves out the tracebacks of threads that a full disk ends; the main one tells of it."""
    before = threading.excepthook

    def told(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is None or not _is_full(args.exc_value):
            before(args)

    threading.excepthook = told
    try:
        yield
    finally:
        threading.excepthook = before


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
        if any(f"(os error {code})" in str(known) for code in _FULL):
            return True
        known = known.__cause__ or known.__context__
    return False


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_LOCK = ".lock"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Holds a folder for one run; another process that wants it is refused at once."""
    make_folder(folder)
    (folder / _LOCK).touch()  # raises where no file can be made
    try:
        with FileLock(folder / _LOCK, blocking=False):
            yield
    except Timeout:
        raise InvalidValueError(
            f"another process is at work in {folder}",
            fix="Wait until it ends, or choose another folder",
        ) from None


VARIABLE = "INTERVERSE_CACHE"


def cache_folder() -> Path:
    """Returns the folder; it may not exist yet."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else user_cache_path("interverse", appauthor=False)


def datasets_folder() -> Path:
    """Returns the folder data sets are kept in unless another is given."""
    return cache_folder() / "datasets"
