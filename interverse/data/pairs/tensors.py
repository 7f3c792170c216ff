"""Pictures to training arrays: decoded, cropped and resized once, then kept beside the data.

The kept files are named after a hash of everything they depend on, so they are never stale; they
can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import FileFormatError, InvalidValueError, check_name, explain
from interverse.core.files.atomic import atomic
from interverse.data.pairs.pictures import COLOURS, MASKS, Image, PairPictures, open_image, reading

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

CROPS = ("multi", "single")
CACHE = ".tensors"
_ROWS_AT_ONCE = 256
_VERSION = 1  # of what is done to a picture; a change makes new files
Box = tuple[int, int, int, int]


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
                explain(
                    f"size is {self.size}, mask_size {self.mask_size}",
                    allowed="a whole number of pixels from 1; mask_size=0 leaves masks out",
                )
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
    def kinds(self) -> tuple[str, ...]:
        """Which pictures are needed."""
        masked = self.mask_size > 0
        return (*COLOURS, *MASKS) if masked else COLOURS

    @property
    def mask_size(self) -> int:
        """The edge of the masks, 0 if there are none."""
        if not self.pictures.kinds.issuperset(MASKS):
            return 0
        return self.shape.size if self.shape.mask_size is None else self.shape.mask_size

    @property
    def key(self) -> str:
        """A hash of everything the arrays depend on."""
        boxes = b"" if self.boxes is None or self.shape.crop == "multi" else self.boxes.tobytes()
        told = f"{_VERSION} {self.pictures.fingerprint} {self.shape} {self.mask_size}"
        digest = hashlib.blake2b(told.encode(), digest_size=12)
        digest.update(self.rows.astype(np.int64).tobytes())
        digest.update(boxes)
        return digest.hexdigest()

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the arrays' shapes by name."""
        count, size = len(self.rows), self.shape.size
        out: dict[str, tuple[int, ...]] = dict.fromkeys(COLOURS, (count, 3, size, size))
        if self.mask_size:
            out["masks"] = (count, 2, self.mask_size, self.mask_size)
        return out


def load_tensors(job: Job, cache: Path) -> PairArrays:
    """Returns the arrays, read from the cache folder or made and left there."""
    if job.shape.crop == "single" and job.boxes is None:
        raise InvalidValueError(
            explain("crop 'single' needs boxes, and the data set has none", fix="Use crop='multi'")
        )
    if not len(job.rows):  # an empty file cannot be mapped
        empty = {name: np.zeros(shape, np.uint8) for name, shape in job.shapes().items()}
        return PairArrays(empty["before"], empty["after"], empty.get("masks"))
    files = {name: cache / f"{job.key}.{name}.npy" for name in job.shapes()}
    if not all(file.exists() for file in files.values()):
        with _created(files, job.shapes()) as arrays:
            _fill(job, arrays)
    read = {name: _cached(files[name], shape) for name, shape in job.shapes().items()}
    return PairArrays(read["before"], read["after"], read.get("masks"))


def _cached(file: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Returns a cached array; one of another shape or a broken one raises with its name."""
    try:
        mapped = np.load(file, mmap_mode="r", allow_pickle=False)
        if mapped.shape != shape or mapped.dtype != np.uint8:
            raise ValueError(f"{mapped.dtype} of {mapped.shape}")
        return np.array(mapped)
    except (ValueError, EOFError, OSError) as error:
        raise FileFormatError(
            explain(f"{file} is no cached array: {error}", fix="Remove it; it is made again")
        ) from error


@contextmanager
def _created(
    files: dict[str, Path], shapes: dict[str, tuple[int, ...]]
) -> Iterator[dict[str, NDArray[np.uint8]]]:
    """Yields arrays on disk to fill; they take their places when all are full."""
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
                explain(
                    f"pictures cannot be kept in {files['before'].parent}: {why}",
                    fix="Pass cache=FOLDER with one that can be written",
                )
            ) from error
        yield arrays
        for array in arrays.values():
            array.flush()


def _fill(job: Job, arrays: dict[str, NDArray[np.uint8]]) -> None:
    """Decodes rows by threads: Pillow works outside of Python's lock."""
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        for start in range(0, len(job.rows), _ROWS_AT_ONCE):
            rows = job.rows[start : start + _ROWS_AT_ONCE]
            data = zip(*(job.pictures.read(kind, rows) for kind in job.kinds), strict=True)
            done = pool.map(
                lambda at, row: _decode(job, at, row), range(start, len(job.rows)), data
            )
            for at, decoded in enumerate(done, start):
                for name, array in decoded.items():
                    arrays[name][at] = array


def _decode(job: Job, at: int, data: tuple[bytes, ...]) -> dict[str, NDArray[np.uint8]]:
    row = int(job.rows[at])
    where = {kind: job.pictures.where(kind, row) for kind in job.kinds}
    images = {kind: open_image(d, where[kind]) for kind, d in zip(job.kinds, data, strict=True)}
    box = _box(job, at, images["after"], where["after"])
    out = {}
    for kind in COLOURS:
        with reading(where[kind]):
            shown = _resized(images[kind].convert("RGB"), box, job.shape.size)
        out[kind] = np.moveaxis(np.asarray(shown), -1, 0)
    if job.mask_size:
        for colour, mask in zip(COLOURS, MASKS, strict=True):
            _check_sizes(images[mask], images[colour], where[mask])
        out["masks"] = np.stack([_mask(images[kind], where[kind], box, job) for kind in MASKS])
    return out


def _mask(image: Picture, where: str, box: Box | None, job: Job) -> NDArray[np.uint8]:
    with reading(where):
        return np.asarray(_resized(image.convert("L"), box, job.mask_size))


def _check_sizes(mask: Picture, colour: Picture, where: str) -> None:
    if mask.size != colour.size:
        raise FileFormatError(
            explain(
                f"{where} is {_edges(mask)}, its picture {_edges(colour)}",
                allowed="a mask of its picture's size",
            )
        )


def _box(job: Job, at: int, image: Picture, where: str) -> Box | None:
    if job.shape.crop == "multi" or job.boxes is None:
        return None
    xmin, ymin, xmax, ymax = box = tuple(job.boxes[at].tolist())
    width, height = image.size
    if not (0 <= xmin < xmax <= width and 0 <= ymin < ymax <= height):
        raise FileFormatError(
            explain(
                f"{where}: box {box} does not lie in its picture of {_edges(image)}",
                allowed="xmin < xmax and ymin < ymax, inside the picture",
            )
        )
    return box


def _resized(image: Picture, box: Box | None, size: int) -> Picture:
    cut = image if box is None else image.crop(box)
    return cut.resize((size, size), Image.Resampling.BILINEAR)


def _edges(image: Picture) -> str:
    return f"{image.size[0]} x {image.size[1]}"
