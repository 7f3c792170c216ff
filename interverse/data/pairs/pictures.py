"""Pictures as bytes, in shards or files of another data set, and as arrays to train on.

Colours are lossless WebP, a fifth smaller than PNG at the same cost. The other kinds are PNG: masks
of 1 bit, instances and depth of 16 bit, which are the bits of int16 and float16 as they are.

Training arrays are decoded, cropped and resized once, then kept beside the data. The kept files are
named after a hash of everything they depend on, so they are never stale; they can be deleted at any
time.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import (
    FileFormatError,
    InvalidValueError,
    check_name,
    explain,
    missing_extra,
)
from interverse.core.files import check_unfolded
from interverse.core.files.atomic import atomic

try:
    from PIL import Image as Image
except ImportError as error:  # pragma: no cover - the suite has pillow
    raise missing_extra("pillow", "rooms") from error

COLOURS = ("before", "after")
MASKS = ("mask_before", "mask_after")
INSTANCES = ("instances_before", "instances_after")
DEPTHS = ("depth_before", "depth_after")
CROPS = ("multi", "single")
CACHE = ".tensors"
_ROWS_AT_ONCE = 256
_VERSION = 1  # of what is done to a picture; a change makes new files
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


# ---------------------------------------------------------------------------------------- training


class PairArrays(NamedTuple):
    """Arrays to train on, one row a pair, writable and in memory.

    Attributes:
        before, after: uint8 (N, 3, S, S).
        masks: uint8 (N, 2, M, M), 0 to 255, before and after; None where there are no masks.
    """

    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    masks: NDArray[np.uint8] | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairShape:
    """What the arrays are to be.

    Attributes:
        size: edge of the pictures. crop: "multi" is the whole picture, "single" is cut to the box
            of the object after the action, in both pictures. Neither keeps the aspect.
        mask_size: edge of the masks; None takes `size`, 0 leaves masks out.
    """

    size: int = 64
    crop: Literal["multi", "single"] = "multi"
    mask_size: int | None = None

    def __post_init__(self) -> None:
        check_name("crop", self.crop, CROPS)
        if self.size < 1 or (self.mask_size is not None and self.mask_size < 0):
            raise InvalidValueError(
                f"size is {self.size}, mask_size {self.mask_size}",
                allowed="a whole number of pixels from 1; mask_size=0 leaves masks out",
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """What is to be decoded.

    Attributes:
        pictures: where from. rows: which. boxes: (N, 4) of those rows, for the crop; or None.
        shape: to what.
    """

    pictures: PairPictures
    rows: NDArray[np.int64]
    boxes: NDArray[np.int64] | None
    shape: PairShape

    @property
    def mask_size(self) -> int:
        """The edge of the masks, 0 if there are none."""
        if not self.pictures.kinds.issuperset(MASKS):
            return 0
        return self.shape.size if self.shape.mask_size is None else self.shape.mask_size

    @property
    def key(self) -> str:
        """A hash of everything the arrays depend on."""
        told = f"{_VERSION} {self.pictures.fingerprint} {self.shape} {self.mask_size}"
        digest = hashlib.blake2b(told.encode(), digest_size=12)
        digest.update(self.rows.astype(np.int64).tobytes())
        if self.boxes is not None and self.shape.crop == "single":
            digest.update(self.boxes.tobytes())
        return digest.hexdigest()

    def decode(self, at: int, data: tuple[bytes, ...]) -> dict[str, NDArray[np.uint8]]:
        """Returns the arrays of one row from its encoded pictures, colours first."""
        kinds = (*COLOURS, *MASKS)[: len(data)]
        where = {kind: self.pictures.where(kind, int(self.rows[at])) for kind in kinds}
        images = {kind: open_image(d, where[kind]) for kind, d in zip(kinds, data, strict=True)}
        width, height = images["after"].size
        box = None
        if self.shape.crop == "single" and self.boxes is not None:
            xmin, ymin, xmax, ymax = box = tuple(self.boxes[at].tolist())
            if not (0 <= xmin < xmax <= width and 0 <= ymin < ymax <= height):
                told = f"{where['after']}: box {box} does not lie in its picture of"
                raise FileFormatError(
                    f"{told} {width} x {height}",
                    allowed="xmin < xmax and ymin < ymax, inside the picture",
                )

        def resized(kind: str, mode: str, size: int) -> NDArray[np.uint8]:
            with reading(where[kind]):
                shown = images[kind].convert(mode)
                cut = shown if box is None else shown.crop(box)
                return np.asarray(cut.resize((size, size), Image.Resampling.BILINEAR))

        out = {kind: np.moveaxis(resized(kind, "RGB", self.shape.size), -1, 0) for kind in COLOURS}
        for colour, mask in zip(COLOURS, kinds[2:], strict=False):
            mine, theirs = images[mask].size, images[colour].size
            if mine != theirs:
                told = f"{where[mask]} is {mine[0]} x {mine[1]}, its picture"
                raise FileFormatError(
                    f"{told} {theirs[0]} x {theirs[1]}", allowed="a mask of its picture's size"
                )
        if len(kinds) > len(COLOURS):
            out["masks"] = np.stack([resized(kind, "L", self.mask_size) for kind in MASKS])
        return out


def load_tensors(job: Job, cache: Path) -> PairArrays:
    """Returns the arrays, read from the cache folder or made and left there."""
    if job.shape.crop == "single" and job.boxes is None:
        raise InvalidValueError(
            "crop 'single' needs boxes, and the data set has none", fix="Use crop='multi'"
        )
    count, size = len(job.rows), job.shape.size
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(COLOURS, (count, 3, size, size))
    if job.mask_size:
        shapes["masks"] = (count, 2, job.mask_size, job.mask_size)
    files = {name: cache / f"{job.key}.{name}.npy" for name in shapes}
    # An empty file cannot be mapped.
    read = {name: np.zeros(shape, np.uint8) for name, shape in shapes.items() if not count}
    if count and not all(file.exists() for file in files.values()):
        _make(job, files, shapes)
    for name, file in files.items() if count else ():
        try:
            mapped = np.load(file, mmap_mode="r", allow_pickle=False)
            if mapped.shape != shapes[name] or mapped.dtype != np.uint8:
                raise ValueError(f"{mapped.dtype} of {mapped.shape}")
            read[name] = np.array(mapped)
        except (ValueError, EOFError, OSError) as error:
            raise FileFormatError(
                f"{file} is no cached array: {error}", fix="Remove it; it is made again"
            ) from error
    return PairArrays(read["before"], read["after"], read.get("masks"))


def _make(job: Job, files: dict[str, Path], shapes: dict[str, tuple[int, ...]]) -> None:
    """Decodes all rows into files, which take their places when all are full."""
    with ExitStack() as stack:
        try:
            places = {name: stack.enter_context(atomic(file)) for name, file in files.items()}
            arrays: dict[str, Any] = {
                name: np.lib.format.open_memmap(place, "w+", np.uint8, shapes[name])
                for name, place in places.items()
            }
        except OSError as error:
            why = error.strerror or error
            raise InvalidValueError(
                f"pictures cannot be kept in {files['before'].parent}: {why}",
                fix="Pass cache=FOLDER with one that can be written",
            ) from error
        kinds = (*COLOURS, *MASKS) if job.mask_size else COLOURS
        # Threads: Pillow works outside of Python's lock.
        pool = stack.enter_context(ThreadPoolExecutor(min(os.cpu_count() or 1, 8)))
        for start in range(0, len(job.rows), _ROWS_AT_ONCE):
            rows = job.rows[start : start + _ROWS_AT_ONCE]
            data = zip(*(job.pictures.read(kind, rows) for kind in kinds), strict=True)
            done = pool.map(job.decode, range(start, len(job.rows)), data)
            for at, decoded in enumerate(done, start):
                for name, array in decoded.items():
                    arrays[name][at] = array
        for array in arrays.values():
            array.flush()
