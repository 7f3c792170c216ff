"""Pictures to training arrays: decoded, cropped and resized once, then kept beside the data.

The kept files are named after a hash of everything they depend on, so they are never stale; they
can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InvalidValueError, check_name
from interverse.core.files.atomic import atomic
from interverse.data.pairs.pictures import COLOURS, MASKS, Image, PairPictures, open_image, reading

CROPS = ("multi", "single")
CACHE = ".tensors"
_ROWS_AT_ONCE = 256
_VERSION = 1  # of what is done to a picture; a change makes new files


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
