"""Pairs by a world's id or by folder, whatever made them, and data sets to take away.

These are training and test folders with houses of their own, a card and checksums.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

from interverse.core.errors import (
    FileFormatError,
    InvalidValueError,
    UnknownNameError,
    unknown,
)
from interverse.core.files.atomic import atomic, datasets_folder, write_text
from interverse.data.collector import HEADER, file_hash
from interverse.data.pairs.dataset import PairDataset, open_pairs
from interverse.data.pairs.official import load_official
from interverse.data.pairs.shards import INDEX
from interverse.data.pairs.splits import SHIFTS

if TYPE_CHECKING:
    from interverse.data.pairs.collect import CollectPairs

PARTS = ("train", "valid", "test_id", "test_ood", "valid_ood")
_PAIRS_A_SECOND = 6.0  # of one processor at 224 px, measured on 2,000 pairs
_BYTES_A_PAIR = 84_000  # at 224 px, likewise
_MOST_PAIRS = 10_000_000
_TEST_HOUSES = 10_000  # from here on rooms are of space B
Say = Callable[[str], None]
_HOW = ("pairs", "seed", "workers", "depth", "instances", "pairs_per_house", "first_house")


def load_pairs(
    id: str,
    split: str | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **options: Any,
) -> PairDataset:
    """Returns pairs of a world, collected now if they are not in the folder yet, or of a folder.

    Args:
        id: a world of rooms; or a folder that `collect` wrote, or one in the official layout.
        split: None is all pairs; "comp/train", "noun/test_ood" and so on are a shift and a part
            of it, with seed 0. `PairDataset.split` has all its settings. This is the reference
            variant, whose "valid_ood" may overlap "test_ood", and is the same rows where all OOD
            rows are tested: choose nothing by it; variant "mended" keeps them apart.
        folder: where a world's data sets are kept; None takes the user's cache folder.
        progress: show a bar on standard error while they are collected.
        **options: for a world: `pairs`, `seed`, `workers`, `depth`, `instances`,
            `pairs_per_house`, `first_house` as in `CollectPairs`; all others are options of the
            world, as for `make`.
    """
    if not Path(id).is_dir():
        from interverse.data.pairs.collect import CollectPairs, collect_pairs

        how = {name: options.pop(name) for name in _HOW if name in options}
        config = CollectPairs(id=id, out=Path(), options=options, progress=progress, **how)
        told = json.dumps(config.header(), sort_keys=True)
        key = hashlib.blake2b(told.encode(), digest_size=5).hexdigest()
        place = datasets_folder() if folder is None else Path(folder)
        out = place / f"{id.replace('/', '-')}.{config.pairs}.{key}"
        try:  # a folder that is half-made, or whose house is truncated, is finished
            data = open_pairs(out)
        except (FileFormatError, FileNotFoundError):
            data = open_pairs(collect_pairs(replace(config, out=out)))
    elif options or folder is not None:
        given = ", ".join([*options, *(["folder"] if folder is not None else [])])
        raise InvalidValueError(
            f"{id} is a folder that holds its pairs: {given} cannot be chosen for it"
        )
    else:
        data = (
            open_pairs(id)
            if any((Path(id) / name).exists() for name in (HEADER, INDEX))
            else load_official(id)
        )
    if split is None:
        return data
    shift, _, part = split.partition("/")
    if shift not in SHIFTS or part not in PARTS:
        names = [f"{shift}/{part}" for shift in SHIFTS for part in PARTS]
        raise UnknownNameError(unknown("split", split, names, fix="Leave it out for all pairs"))
    return data.take(getattr(data.split(shift), part))  # type: ignore[arg-type]


# --------------------------------------------------------------------------- presets


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
            raise InvalidValueError(f"pairs is {pairs}", allowed=f"2 to {_MOST_PAIRS:,}")
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
    from interverse.data.pairs.collect import collect_pairs

    if preset is None and name not in PRESETS:
        raise UnknownNameError(unknown("preset", name, PRESETS))
    chosen = PRESETS[name] if preset is None else preset
    if pairs is not None:
        chosen = chosen.scaled(pairs)
    if how.options or how.first_house:
        raise InvalidValueError(
            f"preset {name} has its own options and houses", fix="Leave them out"
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

    tables = [
        pa.table(
            {
                "part": [part] * len(data),
                "row": list(range(len(data))),
                "house": data.scene.tolist(),
                "verb": data.verb_names.tolist(),
                "noun": data.noun_names.tolist(),
                **{n: getattr(data, n).tolist() for n in ("box_before", "box_after")},
            }
        )
        for part, data in sets.items()
    ]
    with atomic(path) as partial:
        pq.write_table(pa.concat_tables(tables), partial)
