"""Provenance of a result: the versions of all that can change a number, and the command."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from interverse._version import __version__
from interverse.core.code import installed

PACKAGES = (
    "dm_control",
    "gymnasium",
    "mujoco",
    "mujoco-warp",
    "numpy",
    "pyarrow",
    "scipy",
    "stable-baselines3",
    "torch",
    "transformers",
)


def versions() -> Mapping[str, str]:
    """Returns name -> version of Python, of interverse and of each package it may run on.

    Reads what is installed and imports none of it.
    """
    found = installed(*PACKAGES)  # an extra that is not installed made nothing
    return {"interverse": __version__, "python": platform.python_version(), **found}


def command() -> str:
    """Returns the command line of this process, to be pasted into a shell."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    if module is not None:
        return shlex.join(["python", "-m", module.name.removesuffix(".__main__"), *sys.argv[1:]])
    program = Path(sys.argv[0]).name if sys.argv else ""
    if program in ("", "-c"):
        return shlex.join(["python", *sys.orig_argv[1:]])
    return shlex.join([*(["python"] if program.endswith(".py") else []), program, *sys.argv[1:]])
