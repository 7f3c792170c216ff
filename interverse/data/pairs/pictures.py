"""Pictures as bytes: without loss in shards, or files of another data set, decoded when asked for.

Colours are lossless WebP, a fifth smaller than PNG at the same cost. The other kinds are PNG: masks
of 1 bit, instances and depth of 16 bit, which are the bits of int16 and float16 as they are.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, explain, missing_extra
from interverse.core.files import check_unfolded

try:
    from PIL import Image as Image
except ImportError as error:  # pragma: no cover - the suite has pillow
    raise missing_extra("pillow", "rooms") from error

COLOURS = ("before", "after")
MASKS = ("mask_before", "mask_after")
INSTANCES = ("instances_before", "instances_after")
DEPTHS = ("depth_before", "depth_after")
_BITS: dict[str, Any] = {"instances": np.int16, "depth": np.float16}


class PairPictures(Protocol):
    """Where a data set's encoded pictures are, by kind and row."""

    @property
    def kinds(self) -> frozenset[str]:
        """Which kinds there are: names of COLOURS, MASKS, INSTANCES, DEPTHS."""

    @property
    def fingerprint(self) -> str:
        """What the pictures' bytes depend on, as a hash."""

    def read(self, kind: str, rows: NDArray[np.int64]) -> Iterator[bytes]:
        """Yields the encoded pictures of some rows, in the order asked."""

    def where(self, kind: str, row: int) -> str:
        """Returns a picture's file and row, for messages."""


def encode(kind: str, array: NDArray[Any]) -> bytes:
    r"""Returns a picture as the bytes of an image file; `decode` gives the same array back.

    >>> encode("mask_before", np.eye(4, dtype=bool))[:4]
    b'\x89PNG'
    """
    group = kind.partition("_")[0]
    if group in _BITS:
        bits = np.ascontiguousarray(array, dtype=_BITS[group]).view(np.uint16)
        image = Image.frombytes("I;16", bits.shape[::-1], bits.astype("<u2").tobytes())
    elif group == "mask":
        image = Image.fromarray(np.asarray(array, dtype=bool).astype(np.uint8) * 255).convert("1")
    else:
        image = Image.fromarray(np.ascontiguousarray(array, dtype=np.uint8))
    out = io.BytesIO()
    if group in COLOURS:
        image.save(out, "webp", lossless=True, method=1, quality=20)
    else:
        image.save(out, "png")
    return out.getvalue()


def decode(kind: str, data: bytes, where: str = "a picture") -> NDArray[Any]:
    """Returns the array of a picture: uint8 (H, W, 3), bool, int16 or float16 (H, W)."""
    image = open_image(data, where)
    group = kind.partition("_")[0]
    with reading(where):
        if group in _BITS:
            bits = np.asarray(image).astype(np.uint16)
            return bits.view(_BITS[group])
        if group == "mask":
            return np.asarray(image.convert("L")) > 0
        return np.asarray(image.convert("RGB"))


def open_image(data: bytes, where: str) -> Image.Image:
    """Returns a picture whose pixels are read when asked for; no picture raises with its name."""
    with reading(where):
        image = Image.open(io.BytesIO(data))
    check_unfolded(where, unfolded=4 * image.width * image.height, stored=len(data))
    return image


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turns what a broken picture raises into a FileFormatError that names it."""
    try:
        yield
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise FileFormatError(
            f"{where} cannot be read as a picture: {error}",
            fix="Restore the file, or leave its row out",
        ) from error


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilePictures:
    """Pictures that are files, as in the official release.

    Attributes:
        root: the data set's folder. names: for each kind, the file of each row, below root.
        rows: what each row is called in messages, such as "annotations.csv row 7".
        fingerprint: what the pictures' bytes depend on.
    """

    root: Path
    names: dict[str, Sequence[str]]
    rows: Sequence[str]
    fingerprint: str

    @property
    def kinds(self) -> frozenset[str]:
        """Which kinds there are."""
        return frozenset(self.names)

    def read(self, kind: str, rows: NDArray[np.int64]) -> Iterator[bytes]:
        """Yields the bytes of some files."""
        for row in rows.tolist():
            try:
                yield (self.root / self.names[kind][row]).read_bytes()
            except OSError as error:
                raise FileNotFoundError(
                    explain(
                        f"{self.where(kind, row)}: {error.strerror}",
                        fix="Restore the file, or leave its row out",
                    )
                ) from error

    def where(self, kind: str, row: int) -> str:
        """Returns a picture's file and row."""
        return f"{self.root / self.names[kind][row]} ({self.rows[row]})"


def file_pictures(root: Path, names: dict[str, Sequence[str]], rows: Sequence[str]) -> FilePictures:
    """Returns pictures that are files; one that is missing raises with its file and row."""
    digest = hashlib.blake2b(digest_size=16)
    held: dict[str, dict[str, os.stat_result]] = {}
    for files in names.values():
        for name, row in zip(files, rows, strict=True):
            folder, _, leaf = name.rpartition("/")
            if folder not in held:  # one look at a folder is far faster than one at every file
                held[folder] = {}
                if (root / folder).is_dir():
                    with os.scandir(root / folder) as entries:
                        held[folder] = {e.name: e.stat() for e in entries if e.is_file()}
            if leaf not in held[folder]:
                raise FileNotFoundError(
                    explain(
                        f"{row}: there is no picture {root / name}",
                        fix="Restore the file, or leave its row out",
                    )
                )
            told = held[folder][leaf]
            digest.update(f"{name} {told.st_size} {told.st_mtime_ns}\n".encode())
    return FilePictures(root=root, names=names, rows=rows, fingerprint=digest.hexdigest())
