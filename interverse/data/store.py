"""Data sets of grid worlds at rest: their header, and their arrays in HDF5.

An episode has T actions and T + 1 frames. A frame is kept as the scene it is drawn from (cells,
shapes and colours of the objects, all uint8), which is a hundredth of its pixels; pixels are kept
too where asked for, and for worlds that do not tell their scenes: one episode a chunk, compressed
by threads and copied between files as compressed. Every other array is small; it is compressed with
a checksum. Files are written whole or not at all, and checked when read.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final, runtime_checkable

import h5py
import numpy as np
from numpy.typing import NDArray

from interverse._version import __version__
from interverse.core.arrays import Array
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError, explain
from interverse.core.files.hdf5 import HDF5_ERRORS, new_hdf5, open_hdf5
from interverse.core.files.json_text import parse_json
from interverse.data.collector import read_collection
from interverse.sim import raster

FORMAT = "interverse-dataset-1"
PIXELS = ("images", "target_images")
_VALUES = "values/"
_LEVEL = 1  # pixels are mostly black: more effort gains little and costs much
_HASH = "hash"
_CHECKS = "checks"  # of the pictures, one an episode


class GridScene(NamedTuple):
    """What pictures are drawn from; leading axes are the same in all three."""

    positions: Array  # (..., n, 2), row and column
    shapes: Array  # (..., n)
    colors: Array  # (..., n, 3) uint8

    def draw(self) -> Array:
        """Returns the pictures, uint8 (..., 50, 50, 3), on the scene's device."""
        lead = tuple(self.shapes.shape[:-1])
        flat = [part.reshape(-1, *part.shape[len(lead) :]) for part in self]
        # Indices as int64: uint8 would be read as a mask by Torch.
        whole = [a.astype(np.int64) if isinstance(a, np.ndarray) else a.long() for a in flat[:2]]
        drawn = raster.draw(whole[0], whole[1], flat[2])
        return drawn.reshape(*lead, *drawn.shape[1:])


@final
class Drawn:
    """The pictures of a scene as rows that are drawn when asked for."""

    def __init__(self, scene: GridScene) -> None:
        self._scene = scene
        self.shape = (*scene.shapes.shape[:-1], raster.SIZE, raster.SIZE, 3)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, row: int) -> NDArray[np.uint8]:
        return np.asarray(GridScene(*(part[row : row + 1] for part in self._scene)).draw()[0])


@runtime_checkable
class SceneWorld(Protocol):
    """A world that tells what its pictures are drawn from, so that none need be stored."""

    def scenes(self) -> Mapping[str, tuple[Array, Array, Array]]:
        """Returns positions, shapes and uint8 colours behind `image` and, if any, `target`."""

    def state(self) -> Array:
        """Returns the observation's `state`."""


@runtime_checkable
class ContactWorld(Protocol):
    """A world that tells which actions move two things at once."""

    def pushes(self) -> Array:
        """Returns (N, actions): whether an action would push something now."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What made a data set. Two data sets of equal headers are equal.

    Attributes:
        id: the world's id; `options`: what `make` was given, so that make(id, **options) rebuilds.
        seed: episode e is `reset(seed=seed, options={"episode": e})`.
        episodes: how many; `steps`: actions per episode.
        images: whether pixels are stored. targets: whether episodes have a target picture.
        actions: how many actions there are to choose from.
        palette: the name of the colours.
        graph: the causal graph, as `CausalGraph.to_json` writes it.
        contacts: how often a push is chosen where there is one; see `Collect`.
        source: "collected" by playing, or "imported" from a file of the original's layout.
        version: the package version that wrote it; `code`: a hash of that code and of the world's
            own, empty in files from before it was written down.
    """

    id: str
    options: Mapping[str, Any]
    seed: int
    episodes: int
    steps: int
    images: bool
    targets: bool
    actions: int
    palette: str
    graph: str
    source: str = "collected"
    version: str = __version__
    code: str = ""
    contacts: float = 0.0

    def to_json(self) -> str:
        """Returns the header as JSON, keys sorted."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Header:
        """Returns the header that `to_json` wrote; anything else raises FileFormatError."""
        try:
            data = parse_json(text, "the header")
            data = {"code": "", "contacts": 0.0, **data}  # files from before they were written down
            return cls(**{item.name: data[item.name] for item in fields(cls)})
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(f"not a data-set header: {error}", allowed=FORMAT) from error

    @property
    def key(self) -> str:
        """What the content depends on, as JSON: everything but who wrote it."""
        told = {n: v for n, v in asdict(self).items() if n not in ("version", "code")}
        if not self.contacts:  # as before there was a choice
            del told["contacts"]
        return json.dumps(told, sort_keys=True)

    @property
    def short_hash(self) -> str:
        """Ten hexadecimal digits that stand for the content, for file names."""
        return hashlib.blake2b(self.key.encode(), digest_size=5).hexdigest()

    @property
    def file_name(self) -> str:
        """The content and the code that wrote it, short: two files of one name are equal."""
        code = hashlib.blake2b(self.code.encode(), digest_size=5).hexdigest()
        return f"{self.short_hash}-{self.version}-{code}"


def arrays_hash(arrays: Mapping[str, NDArray[Any]], key: str = "") -> str:
    """Returns a hash of arrays by name, with their types and shapes, and of a key before them."""
    digest = hashlib.blake2b(key.encode(), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


def chosen(rows: Any, count: int, name: str) -> NDArray[np.int64]:
    """Returns the numbers of rows: of a slice, a mask or indices; None is all of them."""
    everyone = np.arange(count)
    try:
        return everyone if rows is None else np.atleast_1d(everyone[rows])
    except (IndexError, TypeError) as error:
        allowed = f"a slice, a mask or indices below {count}"
        raise InvalidValueError(f"{name} is {rows!r}", allowed=allowed) from error


def value_path(variable: str) -> str:
    """Returns where a variable's values lie in the file.

    A slash would make a folder, and `edge_0_1` cannot be one beside `edge_0_1/delay`.

    >>> value_path("block_0/weight")
    'values/block_0:weight'
    """
    return _VALUES + variable.replace("/", ":")


def variable_at(path: str) -> str | None:
    """Returns the variable whose values lie at a path; None if other things do."""
    return path[len(_VALUES) :].replace(":", "/") if path.startswith(_VALUES) else None


# ------------------------------------------------------------------------------------------ files


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
        file.attrs["fingerprint"] = arrays_hash(small, header.key)
        checks: dict[str, NDArray[np.uint32]] = {}
        start = 0
        for part in parts:
            with open_hdf5(part, lazy=PIXELS) as source:
                for name in (name for name in PIXELS if name in source):
                    table = checks.setdefault(name, np.zeros(header.episodes, np.uint32))
                    packed = source[name]
                    if name not in file:
                        _create_pixels(file, name, (len(table), *packed.shape[1:]))
                    for row in range(len(packed)):
                        mask, data = _packed_row(packed, row)
                        origin = (start + row, *(0,) * (packed.ndim - 1))
                        file[name].id.write_direct_chunk(origin, data, mask)
                        table[start + row] = zlib.crc32(data)
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
        if (found := file.attrs.get("format")) != FORMAT:
            raise ValueError(f"format {found!r}")
        return Header.from_json(file.attrs["header"])


def read_dataset(path: Path) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Returns header and arrays (pixels left out) of a file or folder, checked against hashes."""
    if path.is_dir():
        told, shards = read_collection(path, "grid")
        return Header.from_json(json.dumps(told)), _join_small([path / s.file for s in shards])
    header = read_header(path)
    with opened(path) as file:
        arrays = read_small(file)
        if arrays_hash(arrays, header.key) != file.attrs["fingerprint"]:
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
        checks = {name: table[()] for name, table in file[_CHECKS].items()}
        if arrays_hash(checks) != file.attrs[_CHECKS]:
            raise ValueError("the checksums of the pictures were changed")
        pixels = file[name]
        out = np.empty((len(episodes), *pixels.shape[1:]), dtype=np.uint8)
        for row, episode in enumerate(episodes.tolist()):
            if zlib.crc32(_packed_row(pixels, episode)[1]) != checks[name][episode]:
                raise ValueError(f"the pictures of episode {episode} were changed")
            pixels.read_direct(out, np.s_[episode], np.s_[row])
        return out


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
            f"{path} is no data set, or is corrupt: {error}",
            allowed=f"an HDF5 file of {wanted}",
            fix="Delete it and collect it again; import_original reads files of CausalMBRL",
        ) from error
