"""The header of a data set, and the arrays it holds.

An episode has T actions and T + 1 frames. A frame is kept as the scene it is drawn from (cells,
shapes and colours of the objects, all uint8), which is a hundredth of its pixels; pixels are kept
too where asked for, and for worlds that do not tell their scenes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from interverse._version import __version__
from interverse.core.arrays import Array
from interverse.core.errors import FileFormatError, InvalidValueError, explain
from interverse.core.files.json_text import parse_json, plain
from interverse.sim import raster

FORMAT = "interverse-dataset-1"
MOST_EPISODES = 10_000_000  # of one data set
_VALUES = "values/"


class GridScene(NamedTuple):
    """What pictures are drawn from; leading axes are the same in all three."""

    positions: Array  # (..., n, 2), row and column
    shapes: Array  # (..., n)
    colors: Array  # (..., n, 3) uint8

    def draw(self) -> Array:
        """Returns the pictures, uint8 (..., 50, 50, 3), on the scene's device."""
        lead = tuple(self.shapes.shape[:-1])
        flat = [part.reshape(-1, *part.shape[len(lead) :]) for part in self]
        drawn = raster.draw(_whole(flat[0]), _whole(flat[1]), flat[2])
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


def _whole(array: Array) -> Array:
    """Returns indices as int64: uint8 would be read as a mask by Torch."""
    return array.astype(np.int64) if isinstance(array, np.ndarray) else array.long()


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
            raise FileFormatError(
                explain(f"not a data-set header: {error}", allowed=FORMAT)
            ) from error

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


def fingerprint(header: Header, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Returns a hash of a data set: header and arrays, pixels left out, for they follow."""
    return arrays_hash(arrays, header.key)


def arrays_hash(arrays: Mapping[str, NDArray[Any]], key: str = "") -> str:
    """Returns a hash of arrays by name, with their types and shapes, and of a key before them."""
    digest = hashlib.blake2b(key.encode(), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


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


def plain_options(value: Any) -> Any:
    """Returns options as JSON holds them: arrays and tuples as lists; what is neither raises."""
    return plain(value, _refuse)


def _refuse(value: Any) -> Any:
    raise InvalidValueError(
        explain(f"option of type {type(value).__name__}", allowed="numbers, text, lists, None")
    )
