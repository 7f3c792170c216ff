"""The file layout of the official simulated release: read it, or write our pairs in it.

    ROOT/proc_00012/color/00001_first.png
    ROOT/proc_00012/color/00001_second_Fridge_open.png
    ROOT/proc_00012/mask/            the same two names: 0 or 255, the object acted on
    ROOT/proc_00012/bbox/            empty
    ROOT/proc_00012/annotations.csv  two rows a pair, no header
    ROOT/annotations.csv             optional, all of them in order, with a header

Boxes are cropped as they stand in the file, as the published code does. Complaints about a table
name its file and row.
"""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InvalidValueError, explain, unknown
from interverse.data.pairs.dataset import PairDataset
from interverse.data.pairs.pictures import Image, file_pictures, reading
from interverse.data.pairs.splits import OPPOSITES

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


# ---------------------------------------------------------------------------- tables


@final
@dataclass(frozen=True, slots=True)
class PairRow:
    """One row: its file, its number as editors count, its fields by column."""

    file: Path
    number: int
    fields: dict[str, str]

    @property
    def where(self) -> str:
        """The file and the row, for messages."""
        return f"{self.file} row {self.number}"

    def __getitem__(self, column: str) -> str:
        return self.fields[column]

    def whole(self, column: str) -> int:
        """Returns a column's whole number."""
        return int(self._parse(column, int, "a whole number"))

    def real(self, column: str) -> float:
        """Returns a column's number."""
        return self._parse(column, float, "a number")

    def one_of(self, column: str, names: Collection[str]) -> str:
        """Returns a column's name, one of those allowed."""
        name = self[column]
        if name not in names:
            raise FileFormatError(f"{self.where}: {unknown(column, name, names)}")
        return name

    def _parse(self, column: str, parse: Callable[[str], float], allowed: str) -> float:
        try:
            return parse(self[column])
        except ValueError:
            raise FileFormatError(
                f"{self.where}: {column} is {self[column]!r}", allowed=allowed
            ) from None


def read_rows(file: Path, columns: Sequence[str], *, header: bool = True) -> Iterator[PairRow]:
    """Yields the rows of a CSV file.

    Without a header `columns` are all there are, in this order; with one there may be more.
    """
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            reader = csv.reader(stream)
            names = next(reader, []) if header else list(columns)
            if missing := [repr(name) for name in columns if name not in names]:
                told = f"{file} row 1 has no column {', '.join(missing)};"
                told += f" it has {', '.join(names) or 'none'}"
                raise FileFormatError(told, allowed=", ".join(columns))
            for fields in reader:
                if len(fields) != len(names):
                    raise FileFormatError(
                        f"{file} row {reader.line_num} has {len(fields)} columns",
                        allowed=f"{len(names)}: {', '.join(names)}",
                    )
                yield PairRow(file, reader.line_num, dict(zip(names, fields, strict=True)))
    except FileNotFoundError as error:
        raise FileNotFoundError(explain(f"there is no file {file}")) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{file} is no CSV file: {error}") from error


def numbered(names: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Returns numbers for names, counted by first appearance, and the names in that order."""
    numbers: dict[str, int] = {}
    column = [numbers.setdefault(name, len(numbers)) for name in names]
    return np.array(column, dtype=np.int64), tuple(numbers)


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
    if not path.is_dir():
        raise FileNotFoundError(explain(f"there is no folder {path}"))
    merged = path / ANNOTATIONS
    files = [merged] if merged.exists() else sorted(path.glob(f"proc_*/{ANNOTATIONS}"))
    if not files:
        raise FileNotFoundError(explain(f"there is no {ANNOTATIONS} in {path} or in {path}/proc_*"))
    tables = (read_rows(file, COLUMNS, header=file == merged) for file in files)
    for row in chain.from_iterable(tables):
        name = row.one_of("verb_class", {*_VERBS, *drop, _NO_VERB})
        box = [row.whole(name) for name in _BOX]
        if name == _NO_VERB:
            boxes[row["scene"], row["figure"]] = box
        elif name not in drop:  # the picture before: cut at "second", with "first" added
            head, found, _ = row["figure"].partition("second")
            if not found:
                raise FileFormatError(
                    f"{row.where}: figure is {row['figure']!r}",
                    allowed="00001_second_Noun_verb, since its verb is not none",
                )
            rows.append((row, box, f"{head}first"))
    if not rows:
        raise FileFormatError(f"{path} has no pairs", fix="See docs/pairs.md, layout")
    before = [boxes.get((row["scene"], first)) for row, _, first in rows]
    names: dict[str, Sequence[str]] = {}
    for folder, prefix in (("color", ""), ("mask", "mask_")):
        places = [(f"{row['scene']}/{folder}", row["figure"], first) for row, _, first in rows]
        if not prefix or (path / rows[0][0]["scene"] / folder).is_dir():
            names[f"{prefix}before"] = [f"{place}/{first}.png" for place, _, first in places]
            names[f"{prefix}after"] = [f"{place}/{figure}.png" for place, figure, _ in places]
    pictures = file_pictures(path, names, [row.where for row, _, _ in rows])
    where, example = pictures.where("after", 0), path / pictures.names["after"][0]
    with reading(where), Image.open(example) as image:
        width, height = image.size
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
        raise InvalidValueError(f"{data.path} has no boxes", allowed="pairs with boxes")
    scenes = np.array([f"proc_{name.rpartition('_')[2]}" for name in data.scene.tolist()])
    for scene in sorted(set(scenes.tolist())):
        if not (path / scene).exists():
            kinds = ("before", "after", "mask_before", "mask_after")
            pairs = (
                OfficialPair(
                    **{kind: data.images(kind, row)[0] for kind in kinds},
                    box_before=data.box_before[row].tolist(),
                    box_after=data.box_after[row].tolist(),
                    noun=data.nouns[data.noun[row]],
                    verb=data.verbs[data.verb[row]],
                )
                for row in np.flatnonzero(scenes == scene).tolist()
            )
            write_scene(path, scene, pairs)
    if merged:
        with (path / ANNOTATIONS).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(COLUMNS)
            for scene in sorted(set(scenes.tolist())):
                for row in read_rows(path / scene / ANNOTATIONS, COLUMNS, header=False):
                    writer.writerow([row[name] for name in COLUMNS])
    return path


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
            for name, colour, mask in (
                (f"{stem}_first", pair.before, pair.mask_before),
                (second, pair.after, pair.mask_after),
            ):
                Image.fromarray(colour).save(partial / "color" / f"{name}.png")
                Image.fromarray(mask.astype(np.uint8) * 255).save(partial / "mask" / f"{name}.png")
            rows.append([scene, index, f"{stem}_first", pair.noun, _NO_VERB, *pair.box_before])
            rows.append([scene, index, second, pair.noun, pair.verb, *pair.box_after])
        with (partial / ANNOTATIONS).open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows(rows)
        partial.rename(root / scene)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return len(rows) // 2
