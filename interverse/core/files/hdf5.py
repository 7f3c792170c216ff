"""HDF5 files: opened only if all that they hold is inside and within limits; written whole."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from interverse.core.errors import FileFormatError, explain
from interverse.core.files import NAMES, check_count, check_unfolded
from interverse.core.files.atomic import atomic

HDF5_ERRORS = (OSError, KeyError, ValueError, RuntimeError, TypeError, AttributeError, MemoryError)
_DEEPEST = 12
_LARGEST_CHUNK = 64 * 2**20
_LONGEST_ATTRIBUTE = 8 * 2**20
_KINDS = "biufS"  # numbers and text of fixed length


@contextmanager
def open_hdf5(path: str | os.PathLike[str], *, lazy: tuple[str, ...] = ()) -> Iterator[h5py.File]:
    """Yields an open file whose links, types and sizes were checked.

    Links to other files, data stored outside, virtual data, Python objects and arrays that would
    unfold to far more than the file holds raise FileFormatError before anything is read. Top-level
    arrays that are read row by row (`lazy`) may unfold to any size.
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(explain(f"there is no file {source}"))
    with h5py.File(source, "r") as file:
        _Check(source, file).group(file, lazy=lazy)
        yield file


@contextmanager
def new_hdf5(path: Path) -> Iterator[h5py.File]:
    """Yields a new file to write; on success it takes its place, on failure it is gone."""
    with atomic(path) as partial, _Sink(partial, "w+") as sink:
        with h5py.File(sink, "w") as file:
            yield file
        if sink.fault is not None:
            raise sink.fault


class _Sink(io.FileIO):
    """A file that remembers the first failed write and takes all later ones for done.

    HDF5 cannot give up a file that it could not write: it tries again until the process crashes.
    """

    fault: OSError | None = None

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while len(left) and self.fault is None:
            try:
                left = left[super().write(left) :]
            except OSError as error:
                self.fault = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.fault = self.fault or error
            return size or 0


class _Check:
    """Goes through a file once and adds up what it would take in memory."""

    def __init__(self, path: Path, root: h5py.File) -> None:
        self._name = path.name
        self._stored = path.stat().st_size
        self._count = self._unfolded = 0
        self._places = {h5py.h5o.get_info(root.id).addr}

    def group(self, group: Any, depth: int = 0, lazy: tuple[str, ...] = ()) -> None:
        self._attributes(group)
        if depth > _DEEPEST:
            self._refuse(f"groups more than {_DEEPEST} levels deep")
        for name in group:
            self._count += 1
            check_count(self._name, self._count, NAMES)
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                self._refuse(f"a link {name!r} to elsewhere")
            item = group[name]
            place = h5py.h5o.get_info(item.id).addr
            if place in self._places:
                self._refuse(f"two names for one object, {name!r}")
            self._places.add(place)
            if isinstance(item, h5py.Group):
                self.group(item, depth + 1)
            elif isinstance(item, h5py.Dataset):
                self._array(name, item, whole=name not in lazy)
            else:
                self._refuse(f"{name!r}, which is no array")

    def _array(self, name: str, item: h5py.Dataset, *, whole: bool) -> None:
        self._attributes(item)
        if item.is_virtual or item.external:
            self._refuse(f"an array {name!r} stored in another file")
        text = h5py.check_string_dtype(item.dtype)
        if item.shape is None or (item.dtype.kind not in _KINDS and text is None):
            self._refuse(f"an array {name!r} of {item.dtype}")
        width = item.dtype.itemsize
        if item.chunks and math.prod(item.chunks) * width > _LARGEST_CHUNK:
            self._refuse(f"an array {name!r} in chunks of {item.chunks}")
        self._unfolded += math.prod(item.shape) * width if whole else 0
        check_unfolded(self._name, unfolded=self._unfolded, stored=self._stored)

    def _attributes(self, item: Any) -> None:
        check_count(self._name, len(item.attrs))
        for name in item.attrs:
            if item.attrs.get_id(name).get_storage_size() > _LONGEST_ATTRIBUTE:
                self._refuse(f"an attribute {name!r} of more than {_LONGEST_ATTRIBUTE:,} bytes")

    def _refuse(self, what: str) -> None:
        raise FileFormatError(
            f"{self._name} has {what}", fix="Do not trust this file; make it again"
        )
