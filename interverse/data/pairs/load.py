"""Pairs by a world's id or by folder, whatever made them."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from interverse.core.errors import (
    FileFormatError,
    InvalidValueError,
    UnknownNameError,
    explain,
    unknown,
)
from interverse.core.files.atomic import datasets_folder
from interverse.data.collector import HEADER, MANIFEST
from interverse.data.pairs.collect import CollectPairs, collect_pairs
from interverse.data.pairs.dataset import PairDataset, open_pairs
from interverse.data.pairs.header import INDEX
from interverse.data.pairs.official import load_official
from interverse.data.pairs.splits import SHIFTS

PARTS = ("train", "valid", "test_id", "test_ood", "valid_ood")
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
        data = _collected(id, folder, progress=progress, options=options)
    elif options or folder is not None:
        given = ", ".join([*options, *(["folder"] if folder is not None else [])])
        raise InvalidValueError(
            explain(f"{id} is a folder that holds its pairs: {given} cannot be chosen for it")
        )
    else:
        data = (
            open_pairs(id)
            if any((Path(id) / name).exists() for name in (HEADER, INDEX))
            else load_official(id)
        )
    return data if split is None else _part(data, split)


def _collected(
    id: str, folder: str | os.PathLike[str] | None, *, progress: bool, options: dict[str, Any]
) -> PairDataset:
    how = {name: options.pop(name) for name in _HOW if name in options}
    config = CollectPairs(id=id, out=Path(), options=options, progress=progress, **how)
    told = json.dumps(config.header(), sort_keys=True)
    key = hashlib.blake2b(told.encode(), digest_size=5).hexdigest()
    place = datasets_folder() if folder is None else Path(folder)
    out = place / f"{id.replace('/', '-')}.{config.pairs}.{key}"
    if (out / MANIFEST).exists():
        with suppress(FileFormatError):  # half-made, or a house is truncated: made below
            return open_pairs(out)
    return open_pairs(collect_pairs(replace(config, out=out)))


def _part(data: PairDataset, split: str) -> PairDataset:
    shift, _, part = split.partition("/")
    if shift not in SHIFTS or part not in PARTS:
        names = [f"{shift}/{part}" for shift in SHIFTS for part in PARTS]
        raise UnknownNameError(unknown("split", split, names, fix="Leave it out for all pairs"))
    return data.take(getattr(data.split(shift), part))  # type: ignore[arg-type]
