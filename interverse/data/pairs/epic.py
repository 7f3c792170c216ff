"""EPIC-KITCHENS-100 as pairs: the frames at which an annotated action starts and stops.

The published 2632 pairs and their detector scores were never released. With a table of scores of
your own (`narration_id, start_score, stop_score`) the published filter applies; without, every
annotated action is a pair.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from interverse.core.errors import FileFormatError, explain, unknown
from interverse.data.pairs.dataset import PairDataset
from interverse.data.pairs.official import PairRow, numbered, read_rows
from interverse.data.pairs.pictures import COLOURS, file_pictures

TABLES = ("EPIC_100_train.csv", "EPIC_100_validation.csv")
_CLASSES = {"verb": "EPIC_100_verb_classes.csv", "noun": "EPIC_100_noun_classes.csv"}
_ENDS = ("start_frame", "stop_frame")
_NEEDED = ("narration_id", "participant_id", "video_id", *_ENDS, "verb_class", "noun_class")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EpicFilter:
    """Which annotated actions become pairs."""

    scores: Path | None = None
    """A CSV table of `narration_id, start_score, stop_score`; actions it lacks are left out."""
    threshold: float = 0.5
    """Both scores must be above; the published code has 0.5, the paper 0.4."""
    verbs: Collection[str] | None = None
    """Names of the verb classes to keep; None keeps all. Names that do not exist raise."""
    present_only: bool = False
    """Leave out actions whose frames are not there, for a partial download; else they raise."""


def load_epic(
    annotations: str | os.PathLike[str],
    frames: str | os.PathLike[str],
    chosen: EpicFilter | None = None,
) -> PairDataset:
    """Returns the pairs of EPIC-KITCHENS-100, sorted by narration, classes by first appearance.

    Args:
        annotations: the folder of `EPIC_100_train.csv`, `EPIC_100_validation.csv` (either may be
            missing), `EPIC_100_verb_classes.csv` and `EPIC_100_noun_classes.csv`.
        frames: the folder of `P01/rgb_frames/P01_01/frame_0000000008.jpg`.
        chosen: which actions; None takes all.
    """
    folder, root = Path(annotations), Path(frames)
    chosen = EpicFilter() if chosen is None else chosen
    names = {
        kind: {row.whole("id"): row["key"] for row in read_rows(folder / file, ("id", "key"))}
        for kind, file in _CLASSES.items()
    }
    files = [folder / name for name in TABLES if (folder / name).exists()]
    if not files:
        raise FileNotFoundError(explain(f"there is no {' or '.join(TABLES)} in {folder}"))
    held = [row for file in files for row in read_rows(file, _NEEDED)]
    rows = sorted(held, key=lambda row: row["narration_id"])
    if chosen.verbs is not None:
        for name in chosen.verbs:
            if name not in names["verb"].values():
                raise FileFormatError(unknown("verb", name, names["verb"].values()))
        rows = [row for row in rows if _named(row, "verb", names["verb"]) in chosen.verbs]
    if chosen.scores is not None:
        columns = ("narration_id", "start_score", "stop_score")
        passed = {
            row["narration_id"]
            for row in read_rows(chosen.scores, columns)
            if min(row.real("start_score"), row.real("stop_score")) > chosen.threshold
        }
        rows = [row for row in rows if row["narration_id"] in passed]
    if chosen.present_only:
        rows = [row for row in rows if all((root / _frame(row, at)).is_file() for at in _ENDS)]
    if not rows:
        raise FileFormatError(
            f"{folder} has no action that the filter keeps", fix="Loosen the filter"
        )
    labels = {kind: [_named(row, kind, names[kind]) for row in rows] for kind in names}
    verb, verbs = numbered(labels["verb"])
    noun, nouns = numbered(labels["noun"])
    pictures = file_pictures(
        root,
        {when: [_frame(row, at) for row in rows] for when, at in zip(COLOURS, _ENDS, strict=True)},
        [row.where for row in rows],
    )
    return PairDataset(
        path=root,
        pictures=pictures,
        rows=np.arange(len(rows)),
        verbs=verbs,
        nouns=nouns,
        verb=verb,
        noun=noun,
        scene=np.array([row["video_id"] for row in rows], dtype=np.str_),
        width=0,
        height=0,
    )


def _named(row: PairRow, kind: str, names: Mapping[int, str]) -> str:
    number = row.whole(f"{kind}_class")
    if number not in names:
        raise FileFormatError(
            f"{row.where}: {kind}_class is {number}",
            allowed=f"an id of {_CLASSES[kind]}, {min(names)} to {max(names)}",
        )
    return names[number]


def _frame(row: PairRow, column: str) -> str:
    folder = f"{row['participant_id']}/rgb_frames/{row['video_id']}"
    return f"{folder}/frame_{row.whole(column):010d}.jpg"
