"""The friction solver as a file: what it is called, and how it is compiled.

A binary reads MuJoCo's structures by field, so it fits one version of MuJoCo: its name holds that
version, and a hash of all that it is made from. The wheel is built with this module, which
therefore needs nothing but Python.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("coulomb.c")
_FLAGS = ("-O3", "-std=c11", "-ffp-contract=off", "-fPIC", "-shared")


class CompileError(Exception):
    """There is no C compiler, or it failed; the message says which."""


def file_name(mujoco_version: str) -> str:
    """Returns the name of the solver for a version of MuJoCo on this machine."""
    machine = f"{platform.system()} {platform.machine()}"
    told = (SOURCE.read_text(), mujoco_version, machine, *_FLAGS)
    digest = hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
    return f"coulomb-mujoco-{mujoco_version}-{digest}.so"


def compile_solver(mujoco: Path, target: Path) -> None:
    """Writes the solver to a path; raises CompileError or OSError where that cannot be done.

    Args:
        mujoco: the folder of MuJoCo's package, which ships its headers.
        target: the file to write.
    """
    named = shlex.split(os.environ.get("CC", ""))
    candidates = [named] if named else [["cc"], ["gcc"], ["clang"]]
    found = [words for words in candidates if shutil.which(words[0])]
    if not found:
        raise CompileError(f"there is no C compiler{f' {named[0]!r}' if named else ''}")
    words = [*found[0], *_FLAGS, f"-I{mujoco / 'include'}", str(SOURCE), "-o", str(target), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        told = done.stderr.strip() or f"the compiler ended with {done.returncode}"
        raise CompileError(f"it cannot be compiled: {told}")
