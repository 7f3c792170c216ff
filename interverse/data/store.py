"""Arrays in HDF5: written whole or not at all, checked when read.

Pixels are compressed one episode a chunk, by threads, and copied between files as compressed.
Every other array is small; it is compressed with a checksum, and a hash of all stands beside them.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError, explain
from interverse.core.files.atomic import (
    atomic,
    check_path,
    make_folder,
    remove_stale,
    scratch_folder,
    storage,
    write_bytes,
)
from interverse.core.files.hdf5 import HDF5_ERRORS, new_hdf5, open_hdf5
from interverse.data.schema import FORMAT, Drawn, Header, arrays_hash, fingerprint

__all__ = ["PIXELS", "atomic", "file_bytes", "locked", "opened", "write_bytes"]

PIXELS = ("images", "target_images")
_LEVEL = 1  # pixels are mostly black: more effort gains little and costs much
_HASH = "hash"
_CHECKS = "checks"  # of the pictures, one an episode


def file_bytes(name: str, write: Callable[[Path], object]) -> bytes:
    """Returns the bytes of the file that `write` writes, for whoever keeps it to write down.

    Args:
        name: of the file; a format may tell it in what it writes.
        write: called with a path in a folder that is gone afterwards.
    """
    with scratch_folder() as folder:
        path = folder / name
        write(path)
        return path.read_bytes()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the right to write a file; the system takes it back from a killed process."""
    if not path.name:
        raise InvalidValueError(explain(f"out is {path}", allowed="a name"))
    check_path(path)
    with storage(path):
        make_folder(path.parent)
        lock = path.with_name(f".{path.name}.lock")
        lock.touch()  # raises where no file can be made; the lock would wait for ever
        with FileLock(lock):
            remove_stale(path.parent)
            yield
            lock.unlink(missing_ok=True)


def write_part(path: Path, arrays: Mapping[str, NDArray[Any] | Drawn]) -> None:
    """Writes the arrays of some episodes; pixels may be drawn while they are written."""
    with new_hdf5(path) as file:
        small, pixels = {}, 0
        for name, array in arrays.items():
            if name in PIXELS:
                pixels = _write_pixels(_create_pixels(file, name, array.shape), array, pixels)
            else:
                small[name] = np.asarray(array)
                _write_small(file, name, small[name])
        file.attrs[_HASH] = f"{arrays_hash(small)} {pixels:08x}"


def is_whole_part(path: Path) -> bool:
    """Returns whether a part is there and holds what was written: its hash says so."""
    try:
        with open_hdf5(path, lazy=PIXELS) as file:
            pixels = 0
            for name in (name for name in PIXELS if name in file):
                for row in range(len(file[name])):
                    pixels = zlib.crc32(_packed_row(file[name], row)[1], pixels)
            return file.attrs.get(_HASH) == f"{arrays_hash(read_small(file))} {pixels:08x}"
    except HDF5_ERRORS:
        return False


def write_dataset(path: Path, header: Header, parts: Sequence[Path]) -> None:
    """Writes a data set from its parts, in order."""
    with new_hdf5(path) as file:
        file.attrs["format"] = FORMAT
        file.attrs["header"] = header.to_json()
        small = _join_small(parts)
        for name, array in small.items():
            _write_small(file, name, array)
        file.attrs["fingerprint"] = fingerprint(header, small)
        checks: dict[str, NDArray[np.uint32]] = {}
        start = 0
        for part in parts:
            with open_hdf5(part, lazy=PIXELS) as source:
                for name in (name for name in PIXELS if name in source):
                    table = checks.setdefault(name, np.zeros(header.episodes, np.uint32))
                    _copy_pixels(source[name], file, name, table, start)
                start += len(source["actions"])
        for name, table in checks.items():
            _write_small(file, f"{_CHECKS}/{name}", table)
        if checks:
            file.attrs[_CHECKS] = arrays_hash(checks)


def _join_small(parts: Sequence[Path]) -> dict[str, NDArray[Any]]:
    read = []
    for part in parts:
        with open_hdf5(part, lazy=PIXELS) as source:
            read.append(read_small(source))
    return {name: np.concatenate([arrays[name] for arrays in read]) for name in sorted(read[0])}


def _write_small(file: h5py.File, name: str, array: NDArray[Any]) -> None:
    packed = {}
    if array.size:
        packed = dict(compression="gzip", compression_opts=1, shuffle=True, fletcher32=True)
    file.create_dataset(name, data=array, **packed)


def _create_pixels(file: h5py.File, name: str, shape: tuple[int, ...]) -> h5py.Dataset:
    return file.create_dataset(
        name,
        shape,
        dtype=np.uint8,
        chunks=(1, *shape[1:]),
        compression="gzip",
        compression_opts=_LEVEL,
    )


def _write_pixels(pixels: h5py.Dataset, rows: NDArray[np.uint8] | Drawn, check: int) -> int:
    """Writes rows of pixels; returns the checksum of their packed bytes, begun with `check`."""

    def pack(row: int) -> bytes:
        return zlib.compress(np.ascontiguousarray(rows[row]).data, _LEVEL)

    chunks, origin = pixels.id, (0,) * (len(rows.shape) - 1)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        for i, data in enumerate(pool.map(pack, range(len(rows)))):
            chunks.write_direct_chunk((i, *origin), data)
            check = zlib.crc32(data, check)
    return check


def _packed_row(pixels: h5py.Dataset, row: int) -> tuple[int, bytes]:
    return pixels.id.read_direct_chunk((row, *(0,) * (pixels.ndim - 1)))


def _copy_pixels(
    source: h5py.Dataset, file: h5py.File, name: str, checks: NDArray[np.uint32], start: int
) -> None:
    """Copies packed rows, from a row on, and writes down the checksum of each."""
    if name not in file:
        _create_pixels(file, name, (len(checks), *source.shape[1:]))
    origin, out = (0,) * (source.ndim - 1), file[name].id
    for i in range(len(source)):
        mask, data = _packed_row(source, i)
        out.write_direct_chunk((start + i, *origin), data, mask)
        checks[start + i] = zlib.crc32(data)


def read_small(file: h5py.File, without: str = "\0") -> dict[str, NDArray[Any]]:
    """Returns every array of an open file but the pixels and those below a path, by path."""
    arrays: dict[str, NDArray[Any]] = {}

    def visit(name: str, item: Any) -> None:
        left_out = name in PIXELS or name.startswith((f"{_CHECKS}/", without))
        if isinstance(item, h5py.Dataset) and not left_out:
            arrays[name] = item[()]

    file.visititems(visit)
    return arrays


def read_header(path: Path) -> Header:
    """Returns the header of a data set's file."""
    with opened(path) as file:
        return _header(file)


def read_dataset(path: Path) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Returns header and arrays (pixels left out), checked against their hash."""
    with opened(path) as file:
        header, arrays = _header(file), read_small(file)
        if fingerprint(header, arrays) != file.attrs["fingerprint"]:
            raise ValueError("the arrays do not match their fingerprint")
        return header, arrays


def read_pixels(path: Path, name: str, episodes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Returns the pixels of some episodes, in the order asked."""
    with opened(path) as file:
        pixels, checks = file[name], _checks(file)
        out = np.empty((len(episodes), *pixels.shape[1:]), dtype=np.uint8)
        for row, episode in enumerate(episodes.tolist()):
            if zlib.crc32(_packed_row(pixels, episode)[1]) != checks[name][episode]:
                raise ValueError(f"the pictures of episode {episode} were changed")
            pixels.read_direct(out, np.s_[episode], np.s_[row])
        return out


def _checks(file: h5py.File) -> dict[str, NDArray[np.uint32]]:
    """Returns the checksum of each episode's pictures."""
    checks = {name: table[()] for name, table in file[_CHECKS].items()}
    if arrays_hash(checks) != file.attrs[_CHECKS]:
        raise ValueError("the checksums of the pictures were changed")
    return checks


def _header(file: h5py.File) -> Header:
    found = file.attrs.get("format")
    if found != FORMAT:
        raise ValueError(f"format {found!r}")
    return Header.from_json(file.attrs["header"])


@contextmanager
def opened(path: Path, wanted: str = f"format {FORMAT}") -> Iterator[h5py.File]:
    """Yields an open file; what is missing, corrupt or foreign raises with its name."""
    if not path.is_file():
        raise FileNotFoundError(
            explain(f"there is no file {path}", fix="Make it with `interverse collect`")
        )
    try:
        with open_hdf5(path, lazy=PIXELS) as file:
            yield file
    except (InvalidValueError, UnknownNameError):  # what was asked of a sound file
        raise
    except HDF5_ERRORS as error:
        raise FileFormatError(
            explain(
                f"{path} is no data set, or is corrupt: {error}",
                allowed=f"an HDF5 file of {wanted}",
                fix="Delete it and collect it again",
            )
        ) from error
