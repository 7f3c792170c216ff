"""The typed header of a folder of pairs, with its manifest of houses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, final

from interverse._version import __version__
from interverse.core.errors import FileFormatError, explain
from interverse.core.files.json_text import read_json_object
from interverse.data.collector import HEADER, Shard, read_collection
from interverse.data.pairs.shards import FORMAT, PairLayout

INDEX = "index.json"  # of folders from before there was a manifest
PAIRS_OF_A_HOUSE = 25
"""The most pairs that a house gives, as in the published set."""


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

    @property
    def tries(self) -> int:
        """How often a pair was tried in the houses visited."""
        return self._made + sum(self.rejected.values())

    @property
    def rejected(self) -> dict[str, int]:
        """How often each reason stopped a try."""
        total: Counter[str] = Counter()
        for shard in self.shards:
            total.update(shard.held["rejected"])
        return dict(sorted(total.items()))

    @property
    def acceptance(self) -> float:
        """The share of tries that gave a pair."""
        return self._made / max(self.tries, 1)

    @property
    def _made(self) -> int:
        return sum(shard.held["pairs"] for shard in self.shards)

    @classmethod
    def load(cls, folder: Path) -> PairHeader:
        """Returns the header of a folder; none, or that of something else, raises with its name."""
        earlier = (folder / INDEX).is_file() and not (folder / HEADER).exists()
        path = folder / (INDEX if earlier else HEADER)
        try:
            if earlier:
                given = _earlier(folder)
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
                explain(
                    f"{path} is no header of pairs: {error!r}",
                    fix="Collect into another folder",
                )
            ) from error


def _earlier(folder: Path) -> dict[str, Any]:
    """Returns the header of a folder from before there was a manifest."""
    told = read_json_object(folder / INDEX)
    if told["format"] != FORMAT:
        raise ValueError(f"format {told['format']!r}")
    shards = []
    for one in told["shards"]:
        file, held = one["file"], {name: one[name] for name in ("house", "pairs", "rejected")}
        if not isinstance(file, str) or Path(file).name != file or file in ("", ".", ".."):
            raise ValueError(f"a shard {file!r} outside the folder")
        shards.append(Shard(file=file, bytes=0, hash=one["fingerprint"], held=held))
    return {**told, "shards": tuple(shards)}
