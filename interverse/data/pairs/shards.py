"""Pairs at rest: a header, and one HDF5 file a house, written whole or not at all.

Encoded pictures of a kind lie end to end in one array, with the offsets beside them. The other
arrays are small, and a hash of them is an attribute of the file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse._version import __version__
from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.core.files.hdf5 import new_hdf5
from interverse.core.files.json_text import parse_json, read_json_object
from interverse.data.collector import HEADER, Shard, read_collection
from interverse.data.dataset import arrays_hash, opened, read_small
from interverse.data.pairs.pictures import COLOURS, DEPTHS, INSTANCES, MASKS, encode
from interverse.worlds.rooms import Pair, Rejection

FORMAT = "interverse-pairs-1"
INDEX = "index.json"  # of folders from before there was a manifest
PAIRS_OF_A_HOUSE = 25
"""The most pairs that a house gives, as in the published set."""
_UP = ("", ".", "..")
_SMALL = ("verb", "noun", "box_before", "box_after", "address", "nuisance")


Values = Mapping[str, NDArray[Any]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairLayout:
    """Which variables there are: their shapes, and which of them hold whole numbers.

    Those of many pairs are two matrices, real and whole numbers: as arrays of their own, some
    hundred variables would take longer to open than the pictures to decode.
    """

    shapes: Mapping[str, tuple[int, ...]]
    whole: frozenset[str]

    @classmethod
    def of(cls, values: Values) -> PairLayout:
        """Returns the layout of one pair's variables."""
        arrays = {name: np.asarray(values[name]) for name in sorted(values)}
        return cls(
            shapes={name: array.shape for name, array in arrays.items()},
            whole=frozenset(n for n, array in arrays.items() if array.dtype.kind in "iub"),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, sorted: the order of everything that is kept by variable."""
        return tuple(self.shapes)

    def to_json(self) -> dict[str, Any]:
        """Returns what JSON can hold; `from_json` reads it."""
        return {
            name: {"shape": list(shape), "whole": name in self.whole}
            for name, shape in self.shapes.items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PairLayout:
        """Returns the layout that `to_json` told of."""
        return cls(
            shapes={name: tuple(data[name]["shape"]) for name in sorted(data)},
            whole=frozenset(name for name in data if data[name]["whole"]),
        )

    def pack(self, rows: Sequence[Values]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Returns two matrices, one row a pair; a pair of another layout raises."""
        for other in map(PairLayout.of, rows):
            if other == self:
                continue
            whole = ", ".join(sorted(self.whole ^ other.whole))
            told = f"{whole} are whole numbers in one and not in another"
            for name in sorted({*self.shapes, *other.shapes}, reverse=True):
                mine, theirs = self.shapes.get(name), other.shapes.get(name)
                if mine != theirs:
                    told = f"{name} has shape {mine} in one and {theirs} in another"
            raise InvalidValueError(
                f"pairs differ in their variables: {told}",
                allowed="the same names, shapes and kinds in every pair of a data set",
            )
        parts: dict[bool, list[Any]] = {False: [], True: []}
        for name, shape in self.shapes.items():
            column = np.array([row[name] for row in rows]).reshape(len(rows), math.prod(shape))
            parts[name in self.whole].append(column)
        nothing = np.zeros((len(rows), 0))
        real = np.concatenate([nothing, *parts[False]], axis=1)
        return real, np.concatenate([nothing.astype(np.int64), *parts[True]], axis=1)

    def unpack(self, real: NDArray[np.float64], whole: NDArray[np.int64]) -> dict[str, Any]:
        """Returns each variable's values, (N, *shape)."""
        out: dict[str, Any] = {}
        at = {False: 0, True: 0}
        for name, shape in self.shapes.items():
            group = name in self.whole
            start, at[group] = at[group], at[group] + math.prod(shape)
            source = whole if group else real
            out[name] = source[:, start : at[group]].reshape(len(source), *shape)
        return out


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairHeader:
    """What made a data set of pairs, and what it holds.

    Attributes:
        id: the world's id. options: what `make` takes. seed: of the data set.
        pairs: how many. size: edge of the pictures, in pixels.
        depth, instances: whether those pictures are kept.
        verbs, nouns: names behind the numbers of a row's verb and noun.
        variables: every variable of the world, with shape and kind.
        graph: the causal graph of the world, as `CausalGraph.to_json` writes it.
        shards: the files, in order, with house, pairs and reasons of rejection. The last may hold
            more pairs than are counted.
        version: the package version that wrote it.
        pairs_per_house: the most pairs of a house. first_house: number of the first.
        code: a hash of the code that wrote it; empty in folders from before it was written down.
        tries, rejected, acceptance: how often a pair was tried in the houses visited, and stopped
            by each reason; the share that gave one.
    """

    id: str
    options: Mapping[str, Any]
    seed: int
    pairs: int
    size: int
    depth: bool
    instances: bool
    verbs: tuple[str, ...]
    nouns: tuple[str, ...]
    variables: PairLayout
    graph: str
    shards: tuple[Shard, ...]
    version: str = __version__
    pairs_per_house: int = PAIRS_OF_A_HOUSE
    first_house: int = 0
    code: str = ""
    tries: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    acceptance: float = 0.0

    @classmethod
    def load(cls, folder: Path) -> PairHeader:
        """Returns the header of a folder; none, or that of something else, raises with its name."""
        earlier = (folder / INDEX).is_file() and not (folder / HEADER).exists()
        path = folder / (INDEX if earlier else HEADER)
        try:
            if earlier:
                given = read_json_object(path)
                if given["format"] != FORMAT:
                    raise ValueError(f"format {given['format']!r}")
                shards = tuple(
                    Shard(
                        file=one["file"],
                        bytes=0,
                        hash=one["fingerprint"],
                        held={name: one[name] for name in ("house", "pairs", "rejected")},
                    )
                    for one in given["shards"]
                )
                for file in (shard.file for shard in shards):
                    if not isinstance(file, str) or Path(file).name != file or file in _UP:
                        raise ValueError(f"a shard {file!r} outside the folder")
                given = {**given, "shards": shards}
            else:
                told, shards = read_collection(folder, "pairs")
                given = {**told, "shards": shards}
            return cls(
                **{item.name: given[item.name] for item in fields(cls) if item.name in given}
                | {
                    "verbs": tuple(given["verbs"]),
                    "nouns": tuple(given["nouns"]),
                    "variables": PairLayout.from_json(given["variables"]),
                }
            )
        except FileFormatError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileFormatError(
                f"{path} is no header of pairs: {error!r}",
                fix="Collect into another folder",
            ) from error


def shard_name(house: int) -> str:
    """Returns the name of a house's file.

    >>> shard_name(12)
    'house_00012.h5'
    """
    return f"house_{house:05d}.h5"


def write_shard(
    path: Path, house: int, found: Iterable[Pair | Rejection], *, instances: bool = True
) -> dict[str, Any]:
    """Writes what one house gave; returns what that is, for the manifest.

    The pictures of all instances are kept besides the object's masks where `instances` says so.
    """
    rejected = Counter[str]()
    rows: dict[str, list[Any]] = {name: [] for name in (*_SMALL, "values_before", "values_after")}
    pictures: dict[str, list[bytes]] = {}  # encoded at once: a house's arrays are never all held
    size = 0
    for item in found:
        if isinstance(item, Rejection):
            rejected[item.reason] += 1
            continue
        kinds = [*COLOURS, *MASKS, *(INSTANCES if instances else ())]
        kinds += [kind for kind in DEPTHS if getattr(item, kind) is not None]
        for kind in kinds:
            array = getattr(item, kind)
            if array.shape[:2] != item.before.shape[:2]:
                raise InvalidValueError(
                    f"{kind} of pair {tuple(item.address)} is {array.shape[:2]},"
                    f" its picture {item.before.shape[:2]}",
                    allowed="pictures of one size",
                )
            pictures.setdefault(kind, []).append(encode(kind, array))
        size = size or len(item.before)
        rows["noun"].append(item.cls)
        for when in ("before", "after"):
            rows[f"values_{when}"].append(getattr(item, f"factors_{when}"))
        for name in ("verb", "box_before", "box_after", "address", "nuisance"):
            rows[name].append(getattr(item, name))
    count = len(rows["verb"])
    layout = PairLayout.of(rows["values_before"][0] if count else {})
    arrays = _arrays(rows, layout)
    labels = arrays_hash(arrays)
    for kind, parts in sorted(pictures.items()):
        arrays[f"pictures/{kind}/bytes"] = np.frombuffer(b"".join(parts), dtype=np.uint8)
        arrays[f"pictures/{kind}/offsets"] = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    told = json.dumps(layout.to_json(), sort_keys=True)
    with new_hdf5(path) as file:
        file.attrs["format"] = FORMAT
        file.attrs["layout"] = told
        file.attrs["size"] = size
        file.attrs["labels"] = labels
        for name, array in arrays.items():
            packed = {} if name.startswith("pictures/") or not array.size else _PACKED
            file.create_dataset(name, data=array, **packed)
    layout_hash = hashlib.blake2b(f"{size} {told}".encode(), digest_size=8).hexdigest()
    return {
        "house": house,
        "pairs": count,
        "rejected": dict(sorted(rejected.items())),
        "layout": layout_hash if count else "",
    }


_PACKED = dict(compression="gzip", compression_opts=4, shuffle=True, fletcher32=True)


def read_layout(path: Path) -> tuple[PairLayout, int]:
    """Returns the variables of a shard that holds pairs, and the edge of its pictures."""
    with opened(path, f"format {FORMAT}") as file:
        layout = parse_json(file.attrs["layout"], "its layout")
        return PairLayout.from_json(layout), int(file.attrs["size"])


def read_columns(path: Path, count: int) -> dict[str, NDArray[Any]]:
    """Returns what is known of a shard's first `count` pairs besides their pictures, checked."""
    with opened(path, f"format {FORMAT}") as file:
        if (found := file.attrs.get("format")) != FORMAT:
            raise FileFormatError(f"format {found!r}")
        key = str(file.attrs.get("key", ""))  # files of earlier versions have one
        held = read_small(file, without="pictures/")
        if arrays_hash(held, key) != file.attrs["labels"]:
            raise FileFormatError("its labels do not match their fingerprint")
        return {name: array[:count] for name, array in held.items()}


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ShardPictures:
    """Pictures in shards. Rows count through the shards, in order.

    Attributes:
        root: the folder. files: the shards that hold pairs. counts: pairs to take of each.
        kinds: which pictures there are. fingerprint: what their bytes depend on.
    """

    root: Path
    files: tuple[str, ...]
    counts: tuple[int, ...]
    kinds: frozenset[str]
    fingerprint: str

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    def read(self, kind: str, rows: NDArray[np.int64]) -> Iterator[bytes]:
        """Yields the encoded pictures of some rows; consecutive rows of a shard are one read."""
        shards = np.searchsorted(self._starts, rows, side="right") - 1
        for run in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(shards)) + 1):
            if not len(run):
                continue
            shard = int(shards[run[0]])
            with opened(self.root / self.files[shard], f"format {FORMAT}") as file:
                group, wanted = file[f"pictures/{kind}"], rows[run] - self._starts[shard]
                ends = group["offsets"][()]
                first = int(ends[wanted.min()])
                data = group["bytes"][first : int(ends[wanted.max() + 1])].tobytes()
            yield from (data[ends[r] - first : ends[r + 1] - first] for r in wanted.tolist())

    def where(self, kind: str, row: int) -> str:
        """Returns a picture's shard and row."""
        shard = int(np.searchsorted(self._starts, row, side="right")) - 1
        file = self.root / self.files[shard]
        return f"{file} {kind} row {row - self._starts[shard]}"


def picture_kinds(path: Path) -> frozenset[str]:
    """Returns which pictures a shard holds."""
    with opened(path, f"format {FORMAT}") as file:
        return frozenset(file["pictures"])


def _arrays(rows: Mapping[str, list[Any]], layout: PairLayout) -> dict[str, NDArray[Any]]:
    """Returns what a shard holds besides pictures: small enough to check at every opening."""
    count, names = len(rows["verb"]), {name: k for k, name in enumerate(layout.names)}
    nuisance = np.zeros((count, len(names)), dtype=bool)
    for row, changed in enumerate(rows["nuisance"]):
        nuisance[row, [names[name] for name in changed]] = True
    out: dict[str, NDArray[Any]] = {"nuisance": nuisance}
    for name in ("verb", "noun"):
        out[name] = np.array(rows[name], dtype=np.int64)
    for name in ("box_before", "box_after", "address"):
        out[name] = np.array(rows[name], dtype=np.int64).reshape(count, 4)
    for when in ("before", "after"):
        packed = layout.pack(rows[f"values_{when}"])
        out[f"values/{when}/real"], out[f"values/{when}/whole"] = packed
    return out
