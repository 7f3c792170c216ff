"""Data sets to take away: training and test folders with houses of their own, card, checksums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from interverse.core.errors import InvalidValueError, UnknownNameError, explain, unknown
from interverse.core.files.atomic import atomic, write_text
from interverse.data.collector import file_hash
from interverse.data.pairs.collect import CollectPairs, collect_pairs
from interverse.data.pairs.dataset import PairDataset, open_pairs

_PAIRS_A_SECOND = 6.0  # of one processor at 224 px, measured on 2,000 pairs
_BYTES_A_PAIR = 84_000  # at 224 px, likewise
_MOST_PAIRS = 10_000_000
_TEST_HOUSES = 10_000  # from here on rooms are of space B
Say = Callable[[str], None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairPreset:
    """Sizes and options of a data set: pairs to train on, pairs of other houses to test on."""

    train: int
    test: int
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All pairs."""
        return self.train + self.test

    def scaled(self, pairs: int) -> PairPreset:
        """Returns the same proportion of another number of pairs, at least one in each part."""
        if not 2 <= pairs <= _MOST_PAIRS:
            raise InvalidValueError(explain(f"pairs is {pairs}", allowed=f"2 to {_MOST_PAIRS:,}"))
        test = max(1, round(pairs * self.test / self.total))
        return replace(self, train=pairs - test, test=test)


PRESETS: Mapping[str, PairPreset] = MappingProxyType(
    {
        "triplet-30k": PairPreset(
            train=25_000, test=5_000, options={"image_size": 224, "pair_nuisance": "both"}
        )
    }
)


def preset_cost(preset: PairPreset, workers: int) -> str:
    """Returns a sentence on the time and the space that a preset takes.

    >>> preset_cost(PRESETS["triplet-30k"], workers=8)
    '30000 pairs: about 10 minutes with 8 processes, 2.5 GB'
    """
    minutes = preset.total / _PAIRS_A_SECOND / workers / 60
    size = preset.total * _BYTES_A_PAIR / 1e9
    return (
        f"{preset.total} pairs: about {minutes:.0f} minutes with {workers} processes, {size:.1f} GB"
    )


def collect_preset(
    name: str,
    how: CollectPairs,
    say: Say,
    preset: PairPreset | None = None,
    pairs: int | None = None,
) -> Path:
    """Returns the folder of a preset: `train`, `test`, `README.md`, `SHA256SUMS`, `index.parquet`.

    Started again, it goes on where it stopped.

    Args:
        name: of the preset.
        how: the world, the folder, the seed and the workers; sizes and options are the preset's.
        say: is told the cost before it starts.
        preset: taken in place of the one of that name.
        pairs: fewer or more pairs than the preset's, in its proportion of training and test.
    """
    if preset is None and name not in PRESETS:
        raise UnknownNameError(unknown("preset", name, PRESETS))
    chosen = PRESETS[name] if preset is None else preset
    if pairs is not None:
        chosen = chosen.scaled(pairs)
    if how.options or how.first_house:
        raise InvalidValueError(
            explain(f"preset {name} has its own options and houses", fix="Leave them out")
        )
    say(preset_cost(chosen, how.workers))
    shared = replace(how, options=dict(chosen.options))
    train = replace(shared, out=how.out / "train", pairs=chosen.train)
    test = replace(shared, out=how.out / "test", pairs=chosen.test, first_house=_TEST_HOUSES)
    sets = {part.out.name: open_pairs(collect_pairs(part)) for part in (train, test)}
    _write_index(how.out / "index.parquet", sets)
    write_text(how.out / "README.md", _card(name, how, chosen, sets))
    kinds = (".h5", ".json", ".jsonl", ".md", ".parquet")
    sums = [
        f"{file_hash(path)}  {path.relative_to(how.out).as_posix()}\n"
        for path in sorted(how.out.rglob("*"))
        if path.suffix in kinds
    ]
    write_text(how.out / "SHA256SUMS", "".join(sums))
    return how.out


def _card(name: str, how: CollectPairs, preset: PairPreset, sets: Mapping[str, PairDataset]) -> str:
    """Returns the data set's card, its numbers counted from the data."""
    lines = [f"# {name}", "", f"Before/after pairs of `{how.id}`, seed {how.seed}.", ""]
    lines += [
        f"Options: {dict(preset.options)}. Made with `interverse collect --preset {name}`.",
        "",
    ]
    lines += ["| part | pairs | houses | actions | object classes |", "|---|---|---|---|---|"]
    for part, data in sets.items():
        counts = (len(data), *(len(set(a.tolist())) for a in (data.scene, data.verb, data.noun)))
        lines.append("| " + " | ".join([part, *map(str, counts)]) + " |")
    lines += ["", "No house is in both parts. Pairs by action:", ""]
    for part, data in sets.items():
        held = ", ".join(
            f"{verb} {n}" for verb, n in sorted(Counter(data.verb_names.tolist()).items())
        )
        lines.append(f"- {part}: {held}")
    lines += [
        "",
        "`interverse.data.pairs.open_pairs` reads a part; `index.parquet` lists every pair;",
    ]
    lines += ["`sha256sum -c SHA256SUMS` checks the files."]
    return "\n".join(lines) + "\n"


def _write_index(path: Path, sets: Mapping[str, PairDataset]) -> None:
    """Writes one row for each pair: part, house, action, object class, boxes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for part, data in sets.items():
        columns = {
            "part": [part] * len(data),
            "row": list(range(len(data))),
            "house": data.scene.tolist(),
            "verb": data.verb_names.tolist(),
            "noun": data.noun_names.tolist(),
        }
        for name in ("box_before", "box_after"):
            boxes = getattr(data, name)
            columns[name] = boxes.tolist()
        tables.append(pa.table(columns))
    with atomic(path) as partial:
        pq.write_table(pa.concat_tables(tables), partial)
