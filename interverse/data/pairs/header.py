"""The index of a folder of pairs: `index.json`, written last, names every file of a house."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, final

from interverse._version import __version__
from interverse.core.errors import FileFormatError, explain
from interverse.core.files.json_text import read_json_object
from interverse.data.pairs.shards import FORMAT, ShardInfo
from interverse.data.pairs.values import PairLayout
from interverse.data.store import atomic

INDEX = "index.json"
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
        shards: the files, in order. The last may hold more pairs than are counted.
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
    shards: tuple[ShardInfo, ...]
    version: str = __version__
    pairs_per_house: int = PAIRS_OF_A_HOUSE
    first_house: int = 0
    code: str = ""

    @property
    def key(self) -> str:
        """What the pairs depend on, as JSON; two data sets of one key are one longer than other."""
        return collection_key(
            id=self.id,
            options=self.options,
            seed=self.seed,
            depth=self.depth,
            instances=self.instances,
            version=self.version,
            code=self.code,
            pairs_per_house=self.pairs_per_house,
        )

    @property
    def tries(self) -> int:
        """How often a pair was tried in the houses visited."""
        return sum(shard.tries for shard in self.shards)

    @property
    def rejected(self) -> dict[str, int]:
        """How often each reason stopped a try."""
        total: Counter[str] = Counter()
        for shard in self.shards:
            total.update(shard.rejected)
        return dict(sorted(total.items()))

    @property
    def acceptance(self) -> float:
        """The share of tries that gave a pair."""
        return sum(shard.pairs for shard in self.shards) / max(self.tries, 1)

    def save(self, folder: Path) -> None:
        """Writes the index of a folder, whole or not at all."""
        told = {
            "format": FORMAT,
            **asdict(self),
            "variables": self.variables.to_json(),
            "tries": self.tries,
            "rejected": self.rejected,
            "acceptance": self.acceptance,
        }
        with atomic(folder / INDEX) as partial:
            partial.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")

    @classmethod
    def load(cls, folder: Path) -> PairHeader:
        """Returns the index of a folder; none, or another file, raises with its name."""
        path = folder / INDEX
        if not path.is_file():
            raise FileNotFoundError(
                explain(
                    f"there is no {path}",
                    fix="Make it with `interverse collect`, which also finishes a half-made folder",
                )
            )
        try:
            data = read_json_object(path)
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']!r}")
            given = {item.name: data[item.name] for item in fields(cls) if item.name in data}
            for name in (shard["file"] for shard in given["shards"]):
                if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
                    raise ValueError(f"a shard {name!r} outside the folder")
            return cls(
                **given
                | {
                    "verbs": tuple(given["verbs"]),
                    "nouns": tuple(given["nouns"]),
                    "variables": PairLayout.from_json(given["variables"]),
                    "shards": tuple(ShardInfo(**shard) for shard in given["shards"]),
                }
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileFormatError(
                explain(
                    f"{path} is no index of pairs: {error!r}",
                    allowed=FORMAT,
                    fix="Collect into the folder again: finished shards are kept",
                )
            ) from error


def collection_key(*, pairs_per_house: int = PAIRS_OF_A_HOUSE, **parts: Any) -> str:
    """Returns JSON that stands for what a shard's content depends on, the house apart."""
    if pairs_per_house != PAIRS_OF_A_HOUSE:
        parts["pairs_per_house"] = pairs_per_house
    if not parts.get("code"):  # folders from before it was written down
        parts.pop("code", None)
    return json.dumps(parts, sort_keys=True)
