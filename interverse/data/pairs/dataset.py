"""A data set of before/after pairs: columns in memory, pictures decoded when asked for.

Collected folders, the official release and Epic-Kitchens all become this one type.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, UnknownNameError, unknown
from interverse.data.dataset import chosen
from interverse.data.pairs.pictures import (
    CACHE,
    COLOURS,
    DEPTHS,
    INSTANCES,
    MASKS,
    Job,
    PairArrays,
    PairPictures,
    PairShape,
    decode,
    load_tensors,
)
from interverse.data.pairs.shards import (
    PairHeader,
    ShardPictures,
    picture_kinds,
    read_columns,
)
from interverse.data.pairs.splits import Labels, Split, SplitConfig, split_pairs
from interverse.scm.graph import CausalGraph
from interverse.worlds.rooms import Address, Origin, Pair

Rows = Any  # a slice, a mask, an index array or None for all
_BY_ROW = (
    *("rows", "verb", "noun", "scene", "box_before", "box_after", "address"),
    *("factors_before", "factors_after", "nuisance"),
)
_KINDS = (*COLOURS, *MASKS, *INSTANCES, *DEPTHS)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairDataset:
    """N pairs, a row each.

    Attributes:
        path: the folder. pictures: where the encoded pictures are. rows: which of those.
        verbs, nouns: names. verb, noun: (N,) numbers of them.
        scene: (N,) names of the house or video.
        width, height: of the pictures, in pixels; 0 where they differ.
        box_before, box_after: (N, 4) xmin, ymin, xmax, ymax; None where there are no boxes.
        factors_before, factors_after: every variable of the world, (N, *shape); empty where a data
            set does not tell them.
        nuisance: for each variable, (N,) whether it changed besides what the action changes.
        address: (N, 4) seed, house, round, index; None in other data sets than ours.
        header: what made it; None in other data sets than ours.
    """

    path: Path
    pictures: PairPictures
    rows: NDArray[np.int64]
    verbs: tuple[str, ...]
    nouns: tuple[str, ...]
    verb: NDArray[np.int64]
    noun: NDArray[np.int64]
    scene: NDArray[np.str_]
    width: int
    height: int
    box_before: NDArray[np.int64] | None = None
    box_after: NDArray[np.int64] | None = None
    factors_before: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    factors_after: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    nuisance: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    address: NDArray[np.int64] | None = None
    header: PairHeader | None = None

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.verb)

    def __repr__(self) -> str:
        """Names the folder and the sizes; the arrays stand in its fields."""
        kinds = f"{len(self.verbs)} verbs, {len(self.nouns)} nouns"
        return f"PairDataset({self.path.name}, {len(self)} pairs, {kinds})"

    @property
    def verb_names(self) -> NDArray[np.str_]:
        """(N,) the action of each pair, by name."""
        return np.asarray(self.verbs, dtype=np.str_)[self.verb]

    @property
    def noun_names(self) -> NDArray[np.str_]:
        """(N,) the object class of each pair, by name."""
        return np.asarray(self.nouns, dtype=np.str_)[self.noun]

    @property
    def graph(self) -> CausalGraph:
        """The causal graph of the world it was collected in."""
        if self.header is None:
            raise InvalidValueError(f"{self.path} comes without a causal graph")
        return CausalGraph.from_json(self.header.graph)

    @property
    def labels(self) -> Labels:
        """What `split_pairs` takes."""
        return Labels(
            verb=self.verb,
            noun=self.noun,
            box=self.box_after,
            verbs=self.verbs,
            width=self.width,
            height=self.height,
            house=np.unique(self.scene, return_inverse=True)[1].astype(np.int64),
        )

    def split(
        self,
        shift: Literal["comp", "loca", "noun", "random", "verb"] = "comp",
        seed: int = 0,
        **sizes: Any,
    ) -> Split:
        """Returns the rows of each part under a shift; `sizes` are fields of `SplitConfig`."""
        return split_pairs(self.labels, SplitConfig(shift=shift, **sizes), seed, str(self.path))

    def tensors(
        self,
        size: int = 64,
        crop: Literal["multi", "single"] = "multi",
        *,
        mask_size: int | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> PairArrays:
        """Returns uint8 arrays of all pairs, decoded on the first call and read on the next.

        Args:
            size: edge of the pictures; they are resized without keeping the aspect.
            crop: "multi" the whole picture, "single" cut to the object's box after the action.
            mask_size: edge of the masks; None takes `size`, 0 leaves masks out.
            cache: folder to keep them in; None takes `.tensors` in the data set's folder.
        """
        shape = PairShape(size=size, crop=crop, mask_size=mask_size)
        job = Job(pictures=self.pictures, rows=self.rows, boxes=self.box_after, shape=shape)
        return load_tensors(job, self.path / CACHE if cache is None else Path(cache))

    def images(self, kind: str = "before", rows: Rows = None) -> list[NDArray[Any]]:
        """Returns pictures of some pairs at full size, decoded now.

        Args:
            kind: "before", "after", and where there are any "mask_...", "instances_...",
                "depth_..." of both.
            rows: a slice, a mask or indices; None is all.
        """
        if kind not in self.pictures.kinds:
            held = self.pictures.kinds.intersection(_KINDS)
            raise UnknownNameError(unknown("picture", kind, held, fix=f"In {self.path}"))
        wanted = self.rows[chosen(rows, len(self), "rows")]
        data = self.pictures.read(kind, wanted)
        where = (self.pictures.where(kind, row) for row in wanted.tolist())
        return [decode(kind, item, name) for item, name in zip(data, where, strict=True)]

    def pair(self, row: int) -> Pair:
        """Returns one pair of a collected data set, which `counterfactual` takes."""
        if self.header is None or self.address is None:
            raise InvalidValueError(
                f"{self.path} does not tell how its pairs were drawn",
                allowed="data sets that `interverse collect` wrote",
            )
        (at,) = chosen(row, len(self), "rows").tolist()
        kinds = [kind for kind in _KINDS if kind in self.pictures.kinds]
        pictures: dict[str, Any] = {kind: self.images(kind, [at])[0] for kind in kinds}
        if "instances_before" not in pictures:
            for when in ("before", "after"):
                pictures[f"instances_{when}"] = np.where(pictures[f"mask_{when}"], 0, -1)
        boxes: dict[str, Any] = {
            name: tuple(getattr(self, name)[at].tolist()) for name in ("box_before", "box_after")
        }
        return Pair(
            **pictures,
            **boxes,
            verb=int(self.verb[at]),
            cls=int(self.noun[at]),
            factors_before={name: values[at] for name, values in self.factors_before.items()},
            factors_after={name: values[at] for name, values in self.factors_after.items()},
            nuisance=tuple(name for name, changed in self.nuisance.items() if changed[at]),
            address=Address(*self.address[at].tolist()),
            origin=Origin(world_id=self.header.id, options=self.header.options),
        )

    def take(self, rows: Rows) -> PairDataset:
        """Returns the data set of some pairs; its tensors are decoded and kept on their own."""
        wanted = chosen(rows, len(self), "rows")

        def cut(held: Any) -> Any:
            if isinstance(held, Mapping):
                return {name: array[wanted] for name, array in held.items()}
            return None if held is None else held[wanted]

        return replace(self, **{name: cut(getattr(self, name)) for name in _BY_ROW})


def open_pairs(folder: str | os.PathLike[str]) -> PairDataset:
    """Returns the data set that `collect_pairs` wrote to a folder."""
    path = Path(folder)
    header = PairHeader.load(path)
    counts, left = dict[str, int](), header.pairs
    for shard in header.shards:  # all pairs but what is too many in the last
        if count := min(shard.held["pairs"], left):
            counts[shard.file] = count
            left -= count
    parts = [read_columns(path / file, count) for file, count in counts.items()]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    layout = header.variables
    values = {
        when: layout.unpack(columns[f"values/{when}/real"], columns[f"values/{when}/whole"])
        for when in ("before", "after")
    }
    return PairDataset(
        path=path,
        pictures=ShardPictures(
            root=path,
            files=tuple(counts),
            counts=tuple(counts.values()),
            kinds=picture_kinds(path / next(iter(counts))),
            fingerprint=" ".join(shard.hash for shard in header.shards),
        ),
        rows=np.arange(header.pairs),
        verbs=header.verbs,
        nouns=header.nouns,
        verb=columns["verb"],
        noun=columns["noun"],
        scene=np.char.mod("house_%05d", columns["address"][:, 1]),
        width=header.size,
        height=header.size,
        box_before=columns["box_before"],
        box_after=columns["box_after"],
        factors_before=values["before"],
        factors_after=values["after"],
        nuisance=dict(zip(layout.names, columns["nuisance"].T, strict=True)),
        address=columns["address"],
        header=header,
    )
