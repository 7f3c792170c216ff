"""A user's own pictures: any folder of images, or the original's folder of assets.

Files are ordered by the BLAKE2b of their bytes, so a number means the same picture wherever the
same files lie, whatever their names and the file system's order. Pictures are kept on disk between
runs: each in a file of one line (format, size, BLAKE2b of the pixels) and the pixels, which appears
under its name only when complete, so that processes may share the folder. One that does not hold
what its first line says is made again, with a line in the log.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from interverse.art.pictures.procedural import (
    Picture,
    PictureSet,
    check_index,
    check_size,
    procedural_backgrounds,
    procedural_floors,
)
from interverse.core.errors import FileFormatError, InvalidValueError, explain, missing_extra
from interverse.core.files import atomic as files
from interverse.core.files import check_unfolded
from interverse.core.files.atomic import VARIABLE

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
# Names the two kinds of pictures are looked for under; the first ones are the original's.
FLOOR_NAMES = ("floors", "floor")
BACKGROUND_NAMES = ("skies", "backgrounds", "background")
# Where they may lie below the folder given: in it, or where the original's checkout has them.
ROOTS = (".", "assets", "dmc_remastered/assets")
_CHECKED = 256  # pixels a side at which a file is decoded when a set is made
_FORMAT = b"interverse-picture-1"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImageFile:
    """One image file and the digest of its bytes."""

    path: Path
    digest: str

    def picture(self, size: int) -> Picture:
        """Returns the file's picture: RGB, the middle square, resized; kept in the cache."""
        return cached(f"files-1/{self.digest}-{size}", lambda: _decode(self.path, size))


@final
@dataclass(frozen=True, slots=True)
class Folder:
    """The pictures of a folder, ordered by the digests of their files."""

    files: tuple[ImageFile, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.files)

    @property
    def digest(self) -> str:
        """The files' digests, in order, in one word."""
        return joined(file.digest for file in self.files)

    def picture(self, index: int, size: int) -> Picture:
        """Returns a picture, (size, size, 3), that cannot be written to."""
        return _picture(self.files[check_index(index, self.count, "index")], check_size(size))

    def mean_color(self, index: int) -> tuple[float, float, float]:
        """Returns a picture's mean red, green and blue, 0..1."""
        sums = self.picture(index, _CHECKED).sum(axis=(0, 1), dtype=np.int64)
        red, green, blue = (float(total) / (255 * _CHECKED**2) for total in sums)
        return red, green, blue


def images(path: str | Path) -> Folder:
    """Returns the set of the image files that lie directly in a folder.

    Hidden files and files without an image's suffix are passed over. Every file is decoded once,
    so that a broken one is found now; later calls find the pictures in the cache.

    Args:
        path: the folder.

    Raises:
        InvalidValueError: if there is no such folder, or no image in it.
        FileFormatError: if a file cannot be decoded; the text names it.
        MissingExtraError: if Pillow is not installed.
    """
    files = tuple(sorted((image_file(p) for p in images_in(path)), key=lambda file: file.digest))
    if not files:
        raise InvalidValueError(
            f"{path} holds no images", allowed=f"files ending in {', '.join(SUFFIXES)}"
        )
    return Folder(files)


def folder(path: str | Path) -> tuple[PictureSet, PictureSet]:
    """Returns floors and backgrounds from a user's folder.

    The original's layout, `floors/` and `skies/` (or `backgrounds/`) side by side, is recognised in
    the folder itself, in its `assets/` and in its `dmc_remastered/assets/`. Where only one of the
    two is there, the other stays painted. A folder with neither but with images serves as both.

    Args:
        path: the folder.
    """
    found = _found(path)
    if not found:
        both = images(path)
        return both, both
    floors, skies = found.get(FLOOR_NAMES[0]), found.get(BACKGROUND_NAMES[0])
    return (
        procedural_floors() if floors is None else images(floors),
        procedural_backgrounds() if skies is None else images(skies),
    )


def folder_state(path: str | Path) -> tuple[tuple[str, int, int], ...]:
    """Returns name, time and size of every file that `folder` would read: when to read it anew."""
    places = _found(path).values() or [Path(path)]
    files = sorted(file for place in places for file in images_in(place))
    states = [(str(file), file.stat()) for file in files]
    return tuple((name, state.st_mtime_ns, state.st_size) for name, state in states)


def images_in(path: str | Path) -> list[Path]:
    """Returns the image files that lie directly in a folder, hidden ones left out."""
    files = (p for p in _existing(path).iterdir() if p.is_file() and not p.name.startswith("."))
    return [p for p in files if p.suffix.lower() in SUFFIXES]


def image_file(path: Path) -> ImageFile:
    """Returns an image file that is known to decode."""
    try:
        digest = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError as error:
        raise FileFormatError(explain(f"{path} cannot be read: {error}")) from error
    file = ImageFile(path, digest)
    if not is_cached(f"files-1/{digest}-{_CHECKED}"):
        file.picture(_CHECKED)
    return file


def joined(digests: object) -> str:
    """Returns one word for a sequence of digests."""
    return hashlib.blake2b("\n".join(digests).encode(), digest_size=16).hexdigest()  # type: ignore[arg-type]


def _found(path: str | Path) -> dict[str, Path]:
    """Returns where the two kinds of pictures lie in a user's folder, as far as they do."""
    root = _existing(path)
    return {
        names[0]: root / base / name
        for names in (FLOOR_NAMES, BACKGROUND_NAMES)
        for base in reversed(ROOTS)
        for name in reversed(names)
        if (root / base / name).is_dir()
    }


def _existing(path: str | Path) -> Path:
    if not Path(path).is_dir():
        raise InvalidValueError(
            f"{path} is not a folder", fix="Pass a folder that holds image files"
        )
    return Path(path)


@functools.lru_cache(maxsize=128)
def _picture(file: ImageFile, size: int) -> Picture:
    return file.picture(size)


def _decode(path: Path, size: int) -> Picture:
    """Returns the file's middle square, RGB, resized (Lanczos)."""
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("Pillow", "control") from error
    try:
        with Image.open(path) as opened:
            pixels, stored = opened.width * opened.height, path.stat().st_size
            check_unfolded(path.name, unfolded=4 * pixels, stored=stored)
            image = opened.convert("RGB")
    except Exception as error:  # Pillow raises whatever its decoders do
        raise FileFormatError(
            f"{path} is not an image that can be read: {error}",
            fix="Mend it or take it out of the folder",
        ) from error
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = image.crop((left, top, left + side, top + side))
    return np.array(square.resize((size, size), Image.Resampling.LANCZOS), dtype=np.uint8)


def cache_folder() -> Path:
    """Returns the folder pictures are kept in: $INTERVERSE_CACHE or the platform's cache folder."""
    return files.cache_folder() / "pictures"


def cached(name: str, make: Callable[[], Picture]) -> Picture:
    """Returns the picture kept under a name, or makes and keeps it; it cannot be written to.

    Args:
        name: a path below the cache folder, without suffix; it says everything the pixels
            depend on, the generator's version too.
        make: makes the (size, size, 3) picture.

    Raises:
        InvalidValueError: if $INTERVERSE_CACHE names a folder that cannot be used. (Without it an
            unusable folder costs time only, and a line in the log.)
    """
    path = cache_folder() / f"{name}.pic"
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        words = head.split()
        if len(words) == 3 and words[0] == _FORMAT and words[2] == _digest(body):
            size = int(words[1])
            return np.frombuffer(body, dtype=np.uint8).reshape(size, size, 3)
        _LOG.warning("%s is damaged (its pixels do not match its first line); made again", path)
    except FileNotFoundError:
        pass
    except OSError as error:
        _unusable(path, error)
    image = make()
    body = image.tobytes()
    head = b" ".join([_FORMAT, str(len(image)).encode(), _digest(body)]) + b"\n"
    try:
        files.write_bytes(path, head + body)
    except OSError as error:
        _unusable(path, error)
    image.setflags(write=False)
    return image


def is_cached(name: str) -> bool:
    """Returns whether a file is kept under the name (its pixels are checked when it is read)."""
    return (cache_folder() / f"{name}.pic").is_file()


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()


def _unusable(path: Path, error: Exception) -> None:
    if os.environ.get(VARIABLE):
        raise InvalidValueError(
            f"{VARIABLE}={os.environ[VARIABLE]} cannot hold pictures: {error}",
            allowed="a folder that can be read and written",
            fix=f"Make it so, or unset {VARIABLE}",
        ) from error
    _LOG.warning("pictures are not kept on disk: %s: %s", path, error)
