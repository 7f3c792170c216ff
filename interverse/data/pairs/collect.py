"""Collection of pairs into a folder: one shard for each house.

A shard depends on the configuration and the house alone. The data set is the first so many pairs of
consecutive houses, so neither the number of workers nor a restart changes a byte of it, and asking
for more pairs later goes on from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Protocol, final

import tyro

from interverse.core.errors import InvalidValueError
from interverse.core.type_checks import Seed, validated, whole
from interverse.data.collector import (
    HEADER,
    Count,
    Shard,
    collection,
    collection_header,
    plain_options,
    progress_bar,
)
from interverse.data.pairs.shards import (
    INDEX,
    PAIRS_OF_A_HOUSE,
    read_layout,
    shard_name,
    write_shard,
)
from interverse.envs.build import build_world
from interverse.worlds import WORLDS
from interverse.worlds.rooms import CLASS_NAMES, VERBS, Pair, Rejection, generate_pairs

_EMPTY_HOUSES = 60  # so many in a row without a pair: the options leave nothing to accept


@dataclass(frozen=True, kw_only=True)
@validated
class CollectPairs:
    """What to collect. `interverse collect rooms/multi-v1 --pairs 1000 --out DIR` is made of it."""

    id: Annotated[str, tyro.conf.Positional]
    """A world of rooms, such as rooms/multi-v1."""
    out: Path
    """The folder to write."""
    pairs: Count = 1000
    """How many pairs. A folder that has fewer is continued."""
    seed: Seed = 0
    """House h is furnished from the address (seed, h)."""
    workers: Count = 1
    """How many houses are drawn at a time; it changes the time, not a byte."""
    cluster: str | None = None
    """A Ray cluster to draw on: local, auto or HOST:PORT; without, this machine's processes."""
    pairs_per_house: Annotated[int, whole(PAIRS_OF_A_HOUSE)] = PAIRS_OF_A_HOUSE
    """The most pairs of a house, 1 to 25; fewer give more houses."""
    first_house: Seed = 0
    """The first house; sets with other houses share none."""
    depth: bool = False
    """Keep depth pictures too; they take about as much as the colours."""
    instances: bool = True
    """Keep pictures of all instances, besides the masks of the object acted on."""
    options: Annotated[Mapping[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Options of the world, as for `make`."""
    overwrite: bool = False
    """Replace a folder that holds another data set."""
    progress: Annotated[bool, tyro.conf.Suppress] = False
    """Show a bar on standard error."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", Path(self.out))

    @property
    def shaping(self) -> dict[str, Any]:
        """The options that change a pair, as JSON holds them."""
        told = {n: v for n, v in self.options.items() if n not in ("threads", "device")}
        return dict(plain_options(told))

    def header(self) -> dict[str, Any]:
        """What the pairs depend on, as JSON holds it."""
        return collection_header(
            "pairs",
            self.id,
            self.shaping,
            self.seed,
            pairs=int(self.pairs),
            depth=self.depth,
            instances=self.instances,
            pairs_per_house=int(self.pairs_per_house),
            first_house=int(self.first_house),
        )


class PairSource(Protocol):
    """Where pairs come from: a picklable function of the house, and the names behind numbers."""

    @property
    def verbs(self) -> tuple[str, ...]:
        """Names of the actions."""

    @property
    def nouns(self) -> tuple[str, ...]:
        """Names of the object classes."""

    @property
    def graph(self) -> str:
        """The causal graph of the variables, as JSON."""

    def __call__(self, house: int) -> Iterable[Pair | Rejection]:
        """Yields the pairs of a house, and what was rejected between them."""


def collect_pairs(config: CollectPairs, source: PairSource | None = None) -> Path:
    """Returns the folder of the data set, collected now or, if it is there already, before.

    Args:
        config: what to collect.
        source: where pairs come from; None takes the world that `config.id` names.
    """
    if (config.out / INDEX).exists() and not (config.out / HEADER).exists():
        raise InvalidValueError(
            f"{config.out} is of an earlier version", fix="Choose another folder"
        )
    if source is None:  # a bad id or option raises now
        if not config.id.startswith("rooms/") and config.id in WORLDS:
            raise InvalidValueError(
                f"{config.id} has no pairs", allowed="ids of rooms", fix="See: interverse list"
            )
        world = build_world(config.id, 1, config.options)
        source = RoomsSource(config, world.graph.to_json())
        world.close()
    title = f"{config.id} pairs"
    with (
        collection(config.out, config.header(), grows="pairs", overwrite=config.overwrite) as held,
        progress_bar(title, config.pairs, show=config.progress) as advance,
    ):
        names = map(shard_name, count(config.first_house))
        missing = (
            (shard_name(house), house)
            for house in count(config.first_house)
            if shard_name(house) not in held.shards
        )
        work = (_write, missing, (config, source))
        made = held.make(*work, workers=config.workers, cluster=config.cluster)
        chosen: list[Shard] = []
        found = 0
        with closing(made):
            for name in names:  # the fewest first houses that hold enough
                while name not in held.shards:
                    next(made)
                chosen.append(held.shards[name])
                new = chosen[-1].held["pairs"]
                advance(min(new, config.pairs - found))
                found += new
                if found >= config.pairs:
                    break
                last = [shard.held for shard in chosen[-_EMPTY_HOUSES:]]
                if len(last) == _EMPTY_HOUSES and not any(held["pairs"] for held in last):
                    why = sum((Counter(held["rejected"]) for held in last), Counter[str]())
                    told = f"{_EMPTY_HOUSES} houses in a row gave no pair of {config.id}"
                    told += f" {dict(config.options)}: {dict(why.most_common(4))}"
                    raise InvalidValueError(told, fix="Change the options that reject them")
        held.finish([shard.file for shard in chosen], **_told(config, source, chosen))
    return config.out


def _told(config: CollectPairs, source: PairSource, shards: list[Shard]) -> dict[str, Any]:
    """Returns what only the finished pairs tell."""
    full = [shard for shard in shards if shard.held["pairs"]]
    for shard in full:
        if shard.held["layout"] != full[0].held["layout"]:
            raise InvalidValueError(
                f"{config.out / shard.file} differs from {full[0].file} in picture size or"
                " variables",
                allowed="the same in every house",
            )
    layout, size = read_layout(config.out / full[0].file)
    rejected = sum((Counter(shard.held["rejected"]) for shard in shards), Counter[str]())
    made = sum(shard.held["pairs"] for shard in shards)
    tries = made + rejected.total()
    return {
        "size": size,
        "verbs": list(source.verbs),
        "nouns": list(source.nouns),
        "variables": layout.to_json(),
        "graph": source.graph,
        "tries": tries,
        "rejected": dict(sorted(rejected.items())),
        "acceptance": made / tries,
    }


def _write(path: Path, house: int, shared: tuple[CollectPairs, PairSource]) -> dict[str, Any]:
    """Writes the shard of a house: what it gives until it has enough pairs."""
    config, source = shared

    def found() -> Iterator[Pair | Rejection]:
        held = 0
        for item in source(house):
            yield item
            held += isinstance(item, Pair)
            if held == config.pairs_per_house:
                return

    return write_shard(path, house, found(), instances=config.instances)


@final
@dataclass(frozen=True)
class RoomsSource:
    """The pairs of a world of rooms, by house."""

    config: CollectPairs
    graph: str
    verbs = tuple(verb.name for verb in VERBS)
    nouns = CLASS_NAMES

    def __call__(self, house: int) -> Iterable[Pair | Rejection]:
        """Returns what a house gives."""
        asked, options = self.config, dict(self.config.options)
        return generate_pairs(asked.id, asked.seed, house, options=options, depth=asked.depth)
