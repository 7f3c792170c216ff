"""Files: one way to write each kind, whole or not at all, and one way to read it, within limits.

Every reader refuses what is larger, deeper or of another type than its caller expects before any
memory is taken for it, raises `FileFormatError` for what is corrupt, and runs no code of a file.
"""

from __future__ import annotations

from interverse.core.errors import FileFormatError

MEMORY = 256 * 2**20  # bytes that any file may unfold to
RATIO = 100  # times its own size that a larger file may unfold to; pictures reach some 60
NAMES = 100_000  # arrays, members or groups in one file


def check_unfolded(name: str, *, unfolded: int, stored: int) -> None:
    """Raises if a file would take far more bytes of memory than it holds: a bomb."""
    most = max(MEMORY, RATIO * stored)
    if unfolded > most:
        raise FileFormatError(
            f"{name} has {stored:,} bytes and unfolds to {unfolded:,}",
            allowed=f"at most {most:,}",
            fix="Do not trust this file; make it again",
        )


def check_count(name: str, count: int, most: int = NAMES) -> None:
    """Raises if a file has more parts than anything made here has."""
    if count > most:
        raise FileFormatError(f"{name} has {count:,} parts", allowed=f"at most {most:,}")
