"""The file layout of the official simulated release: read it, or write our pairs in it.

    ROOT/proc_00012/color/00001_first.png
    ROOT/proc_00012/color/00001_second_Fridge_open.png
    ROOT/proc_00012/mask/            the same two names: 0 or 255, the object acted on
    ROOT/proc_00012/bbox/            empty
    ROOT/proc_00012/annotations.csv  two rows a pair, no header
    ROOT/annotations.csv             optional, all of them in order, with a header

Boxes are cropped as they stand in the file, as the published code does.
"""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InvalidValueError, explain
from interverse.data.pairs.dataset import PairDataset
from interverse.data.pairs.pictures import FilePictures, Image, file_pictures, reading
from interverse.data.pairs.splits import OPPOSITES
from interverse.data.pairs.tables import PairRow, numbered, read_rows

COLUMNS = ("scene", "idx", "figure", "noun_class", "verb_class", "xmin", "ymin", "xmax", "ymax")
ANNOTATIONS = "annotations.csv"
_VERBS = (*OPPOSITES, "break")
_NO_VERB = "none"  # of the row of the picture before
_BOX = COLUMNS[5:]
Box = Sequence[int]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OfficialPair:
    """One pair as the layout holds it."""

    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    mask_before: NDArray[np.bool_]
    mask_after: NDArray[np.bool_]
    box_before: Box
    box_after: Box
    noun: str
    verb: str


# --------------------------------------------------------------------------- reading


def load_official(
    root: str | os.PathLike[str], *, drop: Collection[str] = ("cook",)
) -> PairDataset:
    """Returns the pairs of a folder in the official layout.

    Verbs and nouns are numbered by first appearance, as in the published code.

    Args:
        root: the folder that holds `proc_...`.
        drop: verbs whose rows are left out; any other that is none of the seven raises.
    """
    path = Path(root)
    rows, boxes = [], {}
    for row in _annotations(path):
        name = row.one_of("verb_class", {*_VERBS, *drop, _NO_VERB})
        box = [row.whole(name) for name in _BOX]
        if name == _NO_VERB:
            boxes[row["scene"], row["figure"]] = box
        elif name not in drop:
            rows.append((row, box, _first(row)))
    if not rows:
        raise FileFormatError(explain(f"{path} has no pairs", fix="See docs/pairs.md, layout"))
    before = [boxes.get((row["scene"], first)) for row, _, first in rows]
    pictures = _pictures(path, [row for row, _, _ in rows], [first for _, _, first in rows])
    width, height = _size(pictures)
    verb, verbs = numbered([row["verb_class"] for row, _, _ in rows])
    noun, nouns = numbered([row["noun_class"] for row, _, _ in rows])
    return PairDataset(
        path=path,
        pictures=pictures,
        rows=np.arange(len(rows)),
        verbs=verbs,
        nouns=nouns,
        verb=verb,
        noun=noun,
        scene=np.array([row["scene"] for row, _, _ in rows], dtype=np.str_),
        width=width,
        height=height,
        box_before=None if None in before else np.array(before, dtype=np.int64),
        box_after=np.array([box for _, box, _ in rows], dtype=np.int64),
    )


def _annotations(root: Path) -> Iterator[PairRow]:
    if not root.is_dir():
        raise FileNotFoundError(explain(f"there is no folder {root}"))
    if (root / ANNOTATIONS).exists():
        return read_rows(root / ANNOTATIONS, COLUMNS, header=True)
    files = sorted(root.glob(f"proc_*/{ANNOTATIONS}"))
    if not files:
        raise FileNotFoundError(explain(f"there is no {ANNOTATIONS} in {root} or in {root}/proc_*"))
    return chain.from_iterable(read_rows(file, COLUMNS, header=False) for file in files)


def _first(row: PairRow) -> str:
    """Returns the name of the picture before: cut at "second", with "first" added."""
    head, found, _ = row["figure"].partition("second")
    if not found:
        raise FileFormatError(
            explain(
                f"{row.where}: figure is {row['figure']!r}",
                allowed="00001_second_Noun_verb, since its verb is not none",
            )
        )
    return f"{head}first"


def _pictures(root: Path, rows: Sequence[PairRow], firsts: Sequence[str]) -> FilePictures:
    names: dict[str, Sequence[str]] = {}
    for folder, prefix in (("color", ""), ("mask", "mask_")):
        scenes = [f"{row['scene']}/{folder}" for row in rows]
        names[f"{prefix}before"] = [f"{s}/{n}.png" for s, n in zip(scenes, firsts, strict=True)]
        names[f"{prefix}after"] = [
            f"{scene}/{row['figure']}.png" for scene, row in zip(scenes, rows, strict=True)
        ]
    if not (root / rows[0]["scene"] / "mask").is_dir():
        names = {kind: files for kind, files in names.items() if not kind.startswith("mask_")}
    return file_pictures(root, names, [row.where for row in rows])


def _size(pictures: FilePictures) -> tuple[int, int]:
    where = pictures.where("after", 0)
    with reading(where), Image.open(pictures.root / pictures.names["after"][0]) as image:
        width, height = image.size
    return width, height


# --------------------------------------------------------------------------- writing


def export_official(
    data: PairDataset, root: str | os.PathLike[str], *, merged: bool = False
) -> Path:
    """Returns a folder in the official layout, written from pairs that have masks and boxes.

    A scene is written whole or not at all; scenes that are there already are kept.

    Args:
        data: the pairs. Houses become `proc_00012`; variables are not part of the layout.
        root: the folder.
        merged: also write the annotations of all scenes in one file.
    """
    path = Path(root)
    if data.box_before is None or data.box_after is None:
        raise InvalidValueError(explain(f"{data.path} has no boxes", allowed="pairs with boxes"))
    scenes = np.array([f"proc_{name.rpartition('_')[2]}" for name in data.scene.tolist()])
    for scene in sorted(set(scenes.tolist())):
        if not (path / scene).exists():
            rows = np.flatnonzero(scenes == scene)
            write_scene(path, scene, _official(data.take(rows)))
    if merged:
        _write_merged(path, sorted(set(scenes.tolist())))
    return path


def _official(part: PairDataset) -> Iterator[OfficialPair]:
    for row in range(len(part)):
        kinds = ("before", "after", "mask_before", "mask_after")
        shown: dict[str, Any] = {kind: part.images(kind, row)[0] for kind in kinds}
        assert part.box_before is not None  # checked by the caller
        assert part.box_after is not None
        yield OfficialPair(
            **shown,
            box_before=part.box_before[row].tolist(),
            box_after=part.box_after[row].tolist(),
            noun=part.nouns[part.noun[row]],
            verb=part.verbs[part.verb[row]],
        )


def write_scene(root: Path, scene: str, pairs: Iterable[OfficialPair]) -> int:
    """Returns how many pairs were written to a scene's folder, which appears when it is whole."""
    partial = root / f".{scene}.{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    for folder in ("color", "mask", "bbox"):
        (partial / folder).mkdir(parents=True)
    rows: list[list[Any]] = []
    try:
        for index, pair in enumerate(pairs, 1):
            stem = f"{index:05d}"
            second = f"{stem}_second_{pair.noun}_{pair.verb}"
            _save(partial, f"{stem}_first", pair.before, pair.mask_before)
            _save(partial, second, pair.after, pair.mask_after)
            rows.append([scene, index, f"{stem}_first", pair.noun, _NO_VERB, *pair.box_before])
            rows.append([scene, index, second, pair.noun, pair.verb, *pair.box_after])
        with (partial / ANNOTATIONS).open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows(rows)
        partial.rename(root / scene)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return len(rows) // 2


def _save(folder: Path, name: str, colour: NDArray[np.uint8], mask: NDArray[np.bool_]) -> None:
    Image.fromarray(colour).save(folder / "color" / f"{name}.png")
    Image.fromarray(mask.astype(np.uint8) * 255).save(folder / "mask" / f"{name}.png")


def _write_merged(root: Path, scenes: Sequence[str]) -> None:
    with (root / ANNOTATIONS).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for scene in scenes:
            for row in read_rows(root / scene / ANNOTATIONS, COLUMNS, header=False):
                writer.writerow([row[name] for name in COLUMNS])
