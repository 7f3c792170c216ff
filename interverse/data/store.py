"""Arrays in HDF5: written whole or not at all, checked when read.

Pixels are compressed one episode a chunk, by threads, and copied between files as compressed.
Every other array is small; it is compressed with a checksum, and a hash of all stands beside them.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError, explain
from interverse.core.files.hdf5 import HDF5_ERRORS, new_hdf5, open_hdf5
from interverse.data.collector import read_collection
from interverse.data.schema import FORMAT, Drawn, Header, arrays_hash, fingerprint

PIXELS = ("images", "target_images")
_LEVEL = 1  # pixels are mostly black: more effort gains little and costs much
_HASH = "hash"
_CHECKS = "checks"  # of the pictures, one an episode


def write_part(path: Path, arrays: Mapping[str, NDArray[Any] | Drawn]) -> None:
    """Writes the arrays of some episodes; pixels may be drawn while they are written."""
    small = {name: np.asarray(array) for name, array in arrays.items() if name not in PIXELS}
    with new_hdf5(path) as file:
        for name, array in small.items():
            _write_small(file, name, array)
        checks = {
            name: _write_pixels(_create_pixels(file, name, arrays[name].shape), arrays[name])
            for name in PIXELS
            if name in arrays
        }
        _write_checks(file, checks)
        file.attrs[_HASH] = arrays_hash(small)


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
        _write_checks(file, checks)


def _write_checks(file: h5py.File, checks: Mapping[str, NDArray[np.uint32]]) -> None:
    for name, table in checks.items():
        _write_small(file, f"{_CHECKS}/{name}", table)
    if checks:
        file.attrs[_CHECKS] = arrays_hash(checks)


def _join_small(parts: Sequence[Path]) -> dict[str, NDArray[Any]]:
    read = []
    for part in parts:
        with opened(part) as source:
            read.append(read_small(source))
            if arrays_hash(read[-1]) != source.attrs[_HASH]:
                raise ValueError("the arrays do not match their hash")
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


def _write_pixels(pixels: h5py.Dataset, rows: NDArray[np.uint8] | Drawn) -> NDArray[np.uint32]:
    """Writes rows of pixels; returns the checksum of each, packed."""

    def pack(row: int) -> bytes:
        return zlib.compress(np.ascontiguousarray(rows[row]).data, _LEVEL)

    chunks, origin = pixels.id, (0,) * (len(rows.shape) - 1)
    checks = np.zeros(len(rows), np.uint32)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        for i, data in enumerate(pool.map(pack, range(len(rows)))):
            chunks.write_direct_chunk((i, *origin), data)
            checks[i] = zlib.crc32(data)
    return checks


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
    """Returns header and arrays (pixels left out) of a file or folder, checked against hashes."""
    if path.is_dir():
        told, shards = read_collection(path, "grid")
        return Header.from_json(json.dumps(told)), _join_small([path / s.file for s in shards])
    with opened(path) as file:
        header, arrays = _header(file), read_small(file)
        if fingerprint(header, arrays) != file.attrs["fingerprint"]:
            raise ValueError("the arrays do not match their fingerprint")
        return header, arrays


def read_pixels(path: Path, name: str, episodes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Returns the pixels of some episodes, in the order asked."""
    if path.is_dir():
        _, shards = read_collection(path, "grid")
        starts = np.cumsum([0, *(shard.held["episodes"] for shard in shards)])
        places = np.searchsorted(starts, episodes, side="right") - 1
        if not len(episodes):
            return read_pixels(path / shards[0].file, name, episodes)
        order = np.argsort(places, kind="stable")
        parts = [
            read_pixels(path / shards[place].file, name, there - starts[place])
            for place in np.unique(places).tolist()
            for there in (episodes[places == place],)
        ]
        return np.concatenate(parts)[np.argsort(order)]
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
                fix="Delete it and collect it again; import_original reads files of CausalMBRL",
            )
        ) from error
