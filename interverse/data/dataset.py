"""Data sets of grid worlds: their header, their arrays in HDF5 and in memory.

An episode has T actions and T + 1 frames. A frame is kept as the scene it is drawn from (cells,
shapes and colours of the objects, all uint8), which is a hundredth of its pixels; pixels are kept
too where asked for, and for worlds that do not tell their scenes: one episode a chunk, compressed
by threads and copied between files as compressed. Every other array is small; it is compressed with
a checksum. Files are written whole or not at all, and checked when read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
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
from interverse.scm.graph import CausalGraph
from interverse.sim import raster

FORMAT = "interverse-dataset-1"
PIXELS = ("images", "target_images")
_VALUES = "values/"
_LEVEL = 1  # pixels are mostly black: more effort gains little and costs much
_HASH = "hash"
_CHECKS = "checks"  # of the pictures, one an episode
_FRAMES_AT_ONCE = 4096
Episodes = Any  # a slice, an index array or None for all


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
    def file_name(self) -> str:
        """The content and the code that wrote it, short: two files of one name are equal."""
        digits = [
            hashlib.blake2b(t.encode(), digest_size=5).hexdigest() for t in (self.key, self.code)
        ]
        return f"{digits[0]}-{self.version}-{digits[1]}"


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


# -------------------------------------------------------------------------------------- in memory


class Transitions(NamedTuple):
    """What a world model trains on; the two arguments of `interverse.models`' ArraySource."""

    images: NDArray[np.uint8]  # (E, T + 1, 50, 50, 3)
    actions: NDArray[np.int64]  # (E, T)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """E episodes of T actions each.

    Attributes:
        header: what made it. path: where it lies.
        actions: (E, T). rewards: (E, T), after each action.
        states: (E, T + 1, ...), the observation's `state`; empty in an imported set.
        seeds, episodes: (E,), the noise address of each episode.
        scene: what the frames are drawn from, (E, T + 1, ...), or None where pixels are stored.
        target: what the target pictures are drawn from, (E, ...), or None.
        values: every variable at the start of each episode, (E, *shape).
    """

    header: Header
    path: Path
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    states: NDArray[Any]
    seeds: NDArray[np.int64]
    episodes: NDArray[np.int64]
    scene: GridScene | None
    target: GridScene | None
    values: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        """How many episodes there are."""
        return len(self.actions)

    def __repr__(self) -> str:
        """Names the world and the sizes; the arrays stand in its fields."""
        count, steps = self.actions.shape[:2]
        return f"Dataset({self.header.id}, {count} episodes of {steps} actions, {self.path.name})"

    @property
    def graph(self) -> CausalGraph:
        """The causal graph of the world it was collected in."""
        return CausalGraph.from_json(self.header.graph)

    def images(self, episodes: Episodes = None) -> NDArray[np.uint8]:
        """Returns the frames of some episodes, (e, T + 1, 50, 50, 3)."""
        return self._pictures("images", self.scene, episodes)

    def target_images(self, episodes: Episodes = None) -> NDArray[np.uint8]:
        """Returns the target pictures of some episodes, (e, 50, 50, 3)."""
        if not self.header.targets:
            raise InvalidValueError(f"{self.header.id} {dict(self.header.options)} has no target")
        return self._pictures("target_images", self.target, episodes)

    def _pictures(self, kind: str, scene: GridScene | None, episodes: Episodes) -> Any:
        """Returns stored pictures, or draws some thousand at a time: little else is held."""
        rows = chosen(episodes, len(self), "episodes")
        if self.header.images or scene is None:
            return read_pixels(self.path, kind, rows)
        lead = scene.shapes.shape[1:-1]
        out = np.empty((len(rows), *lead, raster.SIZE, raster.SIZE, 3), dtype=np.uint8)
        at_once = max(1, _FRAMES_AT_ONCE // math.prod(lead))
        for start in range(0, len(rows), at_once):
            some = slice(start, start + at_once)
            out[some] = _rows(scene, rows[some]).draw()
        return out

    def transitions(self, episodes: Episodes = None) -> Transitions:
        """Returns frames and actions of some episodes."""
        rows = chosen(episodes, len(self), "episodes")
        return Transitions(self.images(rows), self.actions[rows])

    def scene_arrays(self) -> dict[str, NDArray[np.uint8]]:
        """Returns what `draw_frames` takes, (E, T + 1, ...) each, for drawing on a device."""
        if self.scene is None:
            raise InvalidValueError(
                f"{self.path} holds pixels, not the scenes behind them",
                fix="Use images() instead",
            )
        return self.scene._asdict()

    def take(self, episodes: Episodes) -> Dataset:
        """Returns the data set of some of the episodes; its pictures are drawn, not read."""
        rows = chosen(episodes, len(self), "episodes")
        self.scene_arrays()  # raises where there is nothing to draw from
        by_row = ("actions", "rewards", "states", "seeds", "episodes")
        return replace(
            self,
            header=replace(self.header, episodes=len(rows), images=False),
            scene=None if self.scene is None else _rows(self.scene, rows),
            target=None if self.target is None else _rows(self.target, rows),
            values={name: array[rows] for name, array in self.values.items()},
            **{name: getattr(self, name)[rows] for name in by_row},
        )


def draw_frames(rows: Mapping[str, Array]) -> Array:
    """Returns uint8 pictures (B, 50, 50, 3) of rows of `Dataset.scene_arrays`, on their device."""
    return GridScene(**rows).draw()


def open_dataset(path: str | os.PathLike[str]) -> Dataset:
    """Returns the data set in a file; a corrupt or foreign file raises FileFormatError."""
    path = Path(path)
    if path.is_dir():
        told, shards = read_collection(path, "grid")
        header = Header.from_json(json.dumps(told))
        arrays = _join_small([path / shard.file for shard in shards])
    else:
        header = read_header(path)
        with opened(path) as file:
            arrays = read_small(file)
            if arrays_hash(arrays, header.key) != file.attrs["fingerprint"]:
                raise ValueError("the arrays do not match their fingerprint")

    def scene(group: str) -> GridScene | None:
        held = [arrays.get(f"{group}/{part}") for part in GridScene._fields]
        return None if held[0] is None else GridScene(*held)

    starts = {name: array for name, array in arrays.items() if name.startswith(_VALUES)}
    return Dataset(
        header=header,
        path=path,
        actions=arrays["actions"],
        rewards=arrays["rewards"],
        states=arrays["states"],
        seeds=arrays["seeds"],
        episodes=arrays["episodes"],
        scene=scene("scene"),
        target=scene("target"),
        values={n.removeprefix(_VALUES).replace(":", "/"): a for n, a in starts.items()},
    )


def _rows(scene: GridScene, rows: NDArray[np.int64]) -> GridScene:
    return GridScene(*(part[rows] for part in scene))
