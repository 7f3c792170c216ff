"""Collection of pairs into a folder: one file for each house, resumed after the last whole file.

A file depends on the configuration and the house alone. The data set is the first so many pairs of
consecutive houses, so neither the number of workers nor a restart changes a byte of it, and asking
for more pairs later goes on from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Protocol

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from interverse._version import __version__
from interverse.core.errors import FileFormatError, InvalidValueError, check_whole, explain
from interverse.core.files.atomic import make_folder
from interverse.core.rng import check_seed
from interverse.data.pairs.header import INDEX, PAIRS_OF_A_HOUSE, PairHeader, collection_key
from interverse.data.pairs.shards import ShardInfo, read_info, read_layout, shard_name, write_shard
from interverse.data.schema import MOST_EPISODES, plain_options
from interverse.data.store import file_bytes, locked, write_bytes
from interverse.rollouts.executors import run_units
from interverse.worlds.own_code import data_code
from interverse.worlds.rooms import Pair, Rejection

_EMPTY_HOUSES = 60  # so many in a row without a pair: the options leave nothing to accept


@dataclass(frozen=True, kw_only=True)
class CollectPairs:
    """What to collect. `interverse collect rooms/multi-v1 --pairs 1000 --out DIR` is made of it."""

    id: Annotated[str, tyro.conf.Positional]
    """A world of rooms, such as rooms/multi-v1."""
    out: Path
    """The folder to write."""
    pairs: int = 1000
    """How many pairs. A folder that has fewer is continued."""
    seed: int = 0
    """House h is furnished from the address (seed, h)."""
    workers: int = 1
    """How many houses are drawn at a time; it changes the time, not a byte."""
    cluster: str | None = None
    """A Ray cluster to draw on: local, auto or HOST:PORT; without, this machine's processes."""
    pairs_per_house: int = PAIRS_OF_A_HOUSE
    """The most pairs of a house, 1 to 25; fewer give more houses."""
    first_house: int = 0
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
        for name in ("pairs", "workers", "pairs_per_house"):
            check_whole(getattr(self, name), name, MOST_EPISODES)
        if self.pairs_per_house > PAIRS_OF_A_HOUSE:
            raise InvalidValueError(
                explain(
                    f"pairs_per_house is {self.pairs_per_house}", allowed=f"1 to {PAIRS_OF_A_HOUSE}"
                )
            )
        check_seed(self.first_house, name="first_house")
        check_seed(self.seed)
        object.__setattr__(self, "out", Path(self.out))

    @property
    def shaping(self) -> dict[str, Any]:
        """The options that change a pair, as JSON holds them."""
        told = {n: v for n, v in self.options.items() if n not in ("threads", "device")}
        return dict(plain_options(told))

    @property
    def key(self) -> str:
        """What a shard's content depends on, the house apart."""
        return collection_key(
            id=self.id,
            options=self.shaping,
            seed=int(self.seed),
            depth=self.depth,
            instances=self.instances,
            version=__version__,
            code=data_code(self.id, self.options),
            pairs_per_house=int(self.pairs_per_house),
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
    with locked(config.out):
        held = _held(config)
        if held is not None and held.pairs == config.pairs:
            return config.out
        if source is None:
            from interverse.data.pairs.rooms import RoomsSource  # builds a world: only when needed

            source = RoomsSource.of(config)
        make_folder(config.out)
        _clear_partial(config.out)
        shards = _shards(config, source)
        _remove_others(config.out, {shard.file for shard in shards})
        _header(config, source, shards).save(config.out)
    return config.out


def _header(config: CollectPairs, source: PairSource, shards: list[ShardInfo]) -> PairHeader:
    first = next(shard for shard in shards if shard.pairs)
    layout, size = read_layout(config.out / first.file)
    for shard in shards:
        if shard.pairs and read_layout(config.out / shard.file) != (layout, size):
            raise InvalidValueError(
                explain(
                    f"{config.out / shard.file} differs from {first.file} in picture size or"
                    " variables",
                    allowed="the same in every house",
                )
            )
    return PairHeader(
        id=config.id,
        options=config.shaping,
        seed=int(config.seed),
        pairs=int(config.pairs),
        size=size,
        depth=config.depth,
        instances=config.instances,
        verbs=source.verbs,
        nouns=source.nouns,
        variables=layout,
        graph=source.graph,
        shards=tuple(shards),
        pairs_per_house=int(config.pairs_per_house),
        first_house=int(config.first_house),
        code=data_code(config.id, config.options),
    )


# --------------------------------------------------------------------------- the work


def _shards(config: CollectPairs, source: PairSource) -> list[ShardInfo]:
    """Returns the fewest first shards that hold enough pairs, made where they are missing."""
    shards: list[ShardInfo] = []
    work = (_draw, _missing(config), (config, source))
    drawn = run_units(*work, workers=int(config.workers), cluster=config.cluster)
    with _bar(config) as advance, closing(drawn):
        while not _enough(config, shards, advance):
            house, shard = next(drawn)
            write_bytes(config.out / shard_name(house), shard)
    return shards


def _enough(config: CollectPairs, shards: list[ShardInfo], advance: Callable[[int], None]) -> bool:
    """Adds the shards that follow, as far as they are there; returns whether that is enough."""
    while (found := sum(shard.pairs for shard in shards)) < config.pairs:
        shard = _kept(config, config.first_house + len(shards))
        if shard is None:
            return False
        shards.append(shard)
        advance(found + shard.pairs)
        _check_yield(config, shards)
    return True


def _missing(config: CollectPairs) -> Iterator[int]:
    """Yields the houses that have no shard, one after the other, for as long as one asks."""
    return (house for house in count(config.first_house) if _kept(config, house) is None)


def _kept(config: CollectPairs, house: int) -> ShardInfo | None:
    path = config.out / shard_name(house)
    if not path.exists():
        return None
    try:
        return read_info(path, config.key)
    except FileFormatError:
        path.unlink()  # torn by a full disk or a crash: made again
        return None


def _draw(house: int, shared: tuple[CollectPairs, PairSource]) -> bytes:
    """Returns the file of a house."""
    config, source = shared

    def write(path: Path) -> None:
        found = first_pairs(source(house), config.pairs_per_house)
        write_shard(path, config.key, house, found, instances=config.instances)

    return file_bytes(shard_name(house), write)


def first_pairs(found: Iterable[Pair | Rejection], most: int) -> Iterator[Pair | Rejection]:
    """Yields what a house gives until it has so many pairs."""
    held = 0
    for item in found:
        yield item
        held += isinstance(item, Pair)
        if held == most:
            return


def _check_yield(config: CollectPairs, shards: list[ShardInfo]) -> None:
    last = shards[-_EMPTY_HOUSES:]
    if len(last) < _EMPTY_HOUSES or any(shard.pairs for shard in last):
        return
    why: Counter[str] = Counter()
    for shard in last:
        why.update(shard.rejected)
    raise InvalidValueError(
        explain(
            f"{_EMPTY_HOUSES} houses in a row gave no pair of {config.id} {dict(config.options)}:"
            f" {dict(why.most_common(4))}",
            fix="Change the options that reject them",
        )
    )


# --------------------------------------------------------------------------- the folder


def _held(config: CollectPairs) -> PairHeader | None:
    """Returns the header of what is there, if it can be kept or continued."""
    if not (config.out / INDEX).exists():
        return None
    if config.overwrite:
        (config.out / INDEX).unlink()
        _remove_others(config.out, set())
        return None
    found = PairHeader.load(config.out)
    same = found.key == config.key and found.first_house == config.first_house
    if same and found.pairs <= config.pairs:
        return found
    other = ", other code" * (found.code != data_code(config.id, config.options))
    raise InvalidValueError(
        explain(
            f"{config.out} holds another data set: {found.pairs} pairs of {found.id}"
            f" {dict(found.options)} with seed {found.seed}, version {found.version}{other}",
            fix="Choose another folder, or pass overwrite=True",
        )
    )


def _remove_others(folder: Path, wanted: set[str]) -> None:
    for path in folder.glob("house_*.h5"):
        if path.name not in wanted:
            path.unlink()


def _clear_partial(folder: Path) -> None:
    """Removes what killed processes left; the lock says that none is writing."""
    for path in folder.glob(".house_*.h5.*"):
        path.unlink()


@contextmanager
def _bar(config: CollectPairs) -> Iterator[Callable[[int], None]]:
    if not config.progress:
        yield lambda count: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(f"{config.id} pairs", total=config.pairs)
        yield lambda count: shown.update(task, completed=min(count, config.pairs))
