"""Parquet tables, read within limits of rows, columns and text."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from interverse.core.errors import FileFormatError
from interverse.core.files import MEMORY, check_count, check_unfolded

_MOST_VALUES = 20_000_000  # numbers in a table
_MOST_COLUMNS = 10_000
_THRIFT = 32 * 2**20


def read_parquet(path: str | os.PathLike[str]) -> pa.Table:
    """Returns the table in a file; a corrupt or oversized one raises FileFormatError."""
    source = Path(path)
    try:
        file = pq.ParquetFile(
            source, thrift_string_size_limit=_THRIFT, thrift_container_size_limit=_THRIFT
        )
        with file:
            about, values, unfolded = file.metadata, 0, 0
            check_count(source.name, about.num_columns, _MOST_COLUMNS)
            check_count(source.name, about.num_row_groups)
            for group in map(about.row_group, range(about.num_row_groups)):
                columns = [group.column(i) for i in range(group.num_columns)]
                values += sum(max(column.num_values, group.num_rows) for column in columns)
                unfolded += sum(column.total_uncompressed_size for column in columns)
                most = max(values, about.num_rows)
                check_count(f"{source.name}, as numbers,", most, _MOST_VALUES)
            check_unfolded(source.name, unfolded=unfolded, stored=source.stat().st_size)
            texts = [f.name for f in file.schema_arrow if pa.types.is_string(f.type)]
        table = pq.read_table(source, read_dictionary=texts, use_threads=False)
        table = _decoded(table, source.name)
        table.validate(full=True)  # text that is no UTF-8 would raise later
        return table
    except FileFormatError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, MemoryError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FileFormatError(
            f"{source} is truncated or not a Parquet file ({first})",
            fix="Make it again: a finished evaluation is not repeated, only what is missing",
        ) from None


def _decoded(table: pa.Table, name: str) -> pa.Table:
    """Returns the table with its texts written out: one long text may stand for many rows."""
    total = 0
    for place, field in enumerate(table.schema):
        if not pa.types.is_dictionary(field.type):
            continue
        column = table.column(place)
        for part in column.chunks:
            lengths = pc.take(pc.binary_length(part.dictionary), part.indices)
            total += pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0
            check_unfolded(name, unfolded=total, stored=MEMORY // 100)
        table = table.set_column(place, field.name, column.cast(field.type.value_type))
    return table
