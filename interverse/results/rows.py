"""A hash of the rows of a results table, so that an edited number shows."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def rows_hash(data: pa.Table) -> str:
    """Returns a hash of names, types and values, whatever the chunks that hold them.

    >>> table = pa.table({"score": [0.25, None]})
    >>> rows_hash(table) == rows_hash(pa.concat_tables([table.slice(0, 1), table.slice(1)]))
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for name in data.column_names:
        column = data[name].combine_chunks()
        nested = pa.types.is_list(column.type)  # its parts are named otherwise in each format
        kind = f"list {column.type.value_type}" if nested else str(column.type)
        digest.update(f"{name} {kind} {len(column)};".encode())
        if nested:
            lengths = pc.fill_null(pc.list_value_length(column), -1)
            digest.update(lengths.to_numpy(zero_copy_only=False).tobytes())
            column = pc.list_flatten(column)
        _add(digest, column)
    return digest.hexdigest()


def _add(digest: hashlib.blake2b, column: pa.Array) -> None:
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        digest.update(json.dumps(column.to_pylist()).encode())
        return
    digest.update(np.packbits(column.is_null().to_numpy(zero_copy_only=False)).tobytes())
    digest.update(pc.fill_null(column, 0).to_numpy(zero_copy_only=False).tobytes())
