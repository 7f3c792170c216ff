"""Provenance of results: which code, command and device made them."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
from pathlib import Path

from interverse._version import __version__
from interverse.core.code import installed

_PACKAGE = Path(__file__).parents[2]
_PACKAGES = ("gymnasium", "h5py", "numpy", "torch")


def versions() -> dict[str, str]:
    """Returns the versions of this package and of those that its numbers depend on."""
    found = installed(*_PACKAGES)
    return {"interverse": __version__, "python": platform.python_version(), **found}


@functools.cache
def source_digest() -> str:
    """Returns the first 16 digits of the SHA-256 of this package's Python files and their names."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@functools.cache
def commit() -> str:
    """Returns the commit of the checkout that this package lies in.

    Local changes to the package add "+changes". Outside a checkout the environment variable
    GIT_COMMIT is taken, and without it "unknown"; `source_digest` identifies the code in any case.
    """
    head = _git("rev-parse", "HEAD")
    if not head:
        return os.environ.get("GIT_COMMIT", "unknown")
    return head + ("+changes" if _git("status", "--porcelain", "--", str(_PACKAGE)) else "")


def run_stamp(command: str, device: str) -> dict[str, str]:
    """Returns what says where a run's numbers come from: code, command, device."""
    return {"commit": commit(), "source": source_digest(), "command": command, "device": device}


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(_PACKAGE), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
