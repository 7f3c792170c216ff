"""CSV files of other data sets, read so that every complaint names the file and the row."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, explain, unknown

T = TypeVar("T")


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
        return self._parse(column, int, "a whole number")

    def real(self, column: str) -> float:
        """Returns a column's number."""
        return self._parse(column, float, "a number")

    def one_of(self, column: str, names: Collection[str]) -> str:
        """Returns a column's name, one of those allowed."""
        name = self[column]
        if name not in names:
            raise FileFormatError(f"{self.where}: {unknown(column, name, names)}")
        return name

    def _parse(self, column: str, parse: Callable[[str], T], allowed: str) -> T:
        try:
            return parse(self[column])
        except ValueError:
            raise FileFormatError(
                explain(f"{self.where}: {column} is {self[column]!r}", allowed=allowed)
            ) from None


def read_rows(file: Path, columns: Sequence[str], *, header: bool) -> Iterator[PairRow]:
    """Yields the rows of a CSV file.

    Args:
        file: which.
        columns: those needed. Without a header they are all there are, in this order.
        header: whether the first row names the columns, which may then be more.
    """
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            reader = csv.reader(stream)
            names = _named(file, next(reader, []), columns) if header else list(columns)
            for fields in reader:
                if len(fields) != len(names):
                    raise FileFormatError(
                        explain(
                            f"{file} row {reader.line_num} has {len(fields)} columns",
                            allowed=f"{len(names)}: {', '.join(names)}",
                        )
                    )
                yield PairRow(file, reader.line_num, dict(zip(names, fields, strict=True)))
    except FileNotFoundError as error:
        raise FileNotFoundError(explain(f"there is no file {file}")) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(explain(f"{file} is no CSV file: {error}")) from error


def numbered(names: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Returns numbers for names, counted by first appearance, and the names in that order."""
    numbers: dict[str, int] = {}
    column = [numbers.setdefault(name, len(numbers)) for name in names]
    return np.array(column, dtype=np.int64), tuple(numbers)


def _named(file: Path, found: list[str], columns: Sequence[str]) -> list[str]:
    missing = [name for name in columns if name not in found]
    if missing:
        raise FileFormatError(
            explain(
                f"{file} row 1 has no column {', '.join(map(repr, missing))};"
                f" it has {', '.join(found) or 'none'}",
                allowed=", ".join(columns),
            )
        )
    return found
