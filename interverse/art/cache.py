"""Pictures kept on disk between runs: one checked file each, written whole or not at all.

A file is a line of text (format, size, BLAKE2b of the pixels) and the pixels. Processes may share
the folder: a file appears under its name only when complete. One that does not hold what its first
line says is made again, with a line in the log.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.core.files import atomic as files
from interverse.core.files.atomic import VARIABLE

_FORMAT = b"interverse-picture-1"
_LOG = logging.getLogger(__name__)

Picture = NDArray[np.uint8]


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
            explain(
                f"{VARIABLE}={os.environ[VARIABLE]} cannot hold pictures: {error}",
                allowed="a folder that can be read and written",
                fix=f"Make it so, or unset {VARIABLE}",
            )
        ) from error
    _LOG.warning("pictures are not kept on disk: %s: %s", path, error)
