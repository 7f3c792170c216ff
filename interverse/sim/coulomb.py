"""Exact sliding friction for MuJoCo models: builds, loads and attaches the native plugin.

`native/coulomb.c` says what it computes. It is compiled once with the machine's C compiler, against
the headers that MuJoCo's package ships, into the cache folder; a change of the source, of MuJoCo or
of the flags makes another file. A model has exact friction if it was built with `attach`; every
other model in the process is left alone.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import Any

import mujoco

from interverse.art.textures.cache import cache_folder
from interverse.core.errors import InterverseError, explain

SENSOR = "coulomb"
"""The sensor that `attach` adds: Newton steps, islands unsolved, largest relative error left."""

_PLUGIN = "interverse.coulomb"
_SOURCE = Path(__file__).parent / "native" / "coulomb.c"
_FLAGS = ("-O3", "-std=c11", "-ffp-contract=off", "-fPIC", "-shared")
_FUNCTIONS = (  # in the order of the structure `mujoco` in the source
    "mj_markStack",
    "mj_freeStack",
    "mj_stackAllocNum",
    "mj_stackAllocInt",
    "mj_isSparse",
    "mj_mulJacTVec",
    "mj_solveM",
    "mj_sensorAcc",
)
_DESCRIPTION = 1024  # bytes; more than MuJoCo's description of a plugin takes


class NativeCodeError(InterverseError, RuntimeError):
    """The native friction solver can be neither found nor built here."""


def attach(spec: mujoco.MjSpec) -> None:
    """Gives a model exact sliding friction.

    Raises:
        NativeCodeError: if the plugin cannot be built here.
    """
    _loaded()
    spec.activate_plugin(_PLUGIN)
    spec.add_plugin(name=SENSOR, plugin_name=_PLUGIN, active=True)
    sensor = spec.add_sensor(name=SENSOR, type=mujoco.mjtSensor.mjSENS_PLUGIN)
    sensor.plugin.active = True
    sensor.plugin.name, sensor.plugin.plugin_name = SENSOR, _PLUGIN


def missing() -> str | None:
    """Returns why exact friction cannot be had here, None if it can."""
    try:
        _loaded()
    except NativeCodeError as error:
        return str(error)
    return None


def library_path() -> Path:
    """Returns where the compiled plugin is kept."""
    machine = f"{platform.system()} {platform.machine()}"
    told = (_SOURCE.read_text(), mujoco.__version__, machine, *_FLAGS)
    digest = hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
    return cache_folder().parent / "native" / f"coulomb-{digest}.so"


@functools.cache
def _loaded() -> Any:
    """Registers the plugin with MuJoCo, once a process; returns the library, to keep it loaded."""
    path = library_path()
    if not path.is_file():
        _build(path)
    try:
        native, engine = ctypes.CDLL(str(path)), ctypes.CDLL(str(_mujoco_library()))
        addresses = [ctypes.cast(getattr(engine, f), ctypes.c_void_p) for f in _FUNCTIONS]
        description = ctypes.create_string_buffer(_DESCRIPTION)
        engine.mjp_defaultPlugin(description)
        native.interverse_coulomb(description, (ctypes.c_void_p * len(addresses))(*addresses))
        engine.mjp_registerPlugin(description)
    except (OSError, AttributeError) as error:
        raise NativeCodeError(
            explain(f"the friction solver {path} cannot be loaded: {error}", fix="Delete the file")
        ) from error
    return native


def _mujoco_library() -> Path:
    folder = Path(mujoco.__file__).parent
    found = sorted((*folder.glob("libmujoco*.so*"), *folder.glob("libmujoco*.dylib")))
    if not found:
        raise NativeCodeError(explain(f"there is no MuJoCo library in {folder}"))
    return found[0]


def _build(path: Path) -> None:
    """Compiles the plugin to a path; processes may do so side by side."""
    draft = path.with_name(f"{path.stem}-{uuid.uuid4().hex}.so")
    headers = Path(mujoco.__file__).parent / "include"
    command = [*_compiler(), *_FLAGS, f"-I{headers}", str(_SOURCE), "-o", str(draft), "-lm"]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            os.replace(draft, path)
            return
        problem = done.stderr.strip() or f"the compiler ended with {done.returncode}"
    except OSError as error:
        problem = str(error)
    draft.unlink(missing_ok=True)
    raise NativeCodeError(
        explain(
            f"the friction solver cannot be compiled: {problem}",
            fix="Mend the C compiler, name another in $CC, or use contact='convex'",
        )
    )


def _compiler() -> list[str]:
    named = shlex.split(os.environ.get("CC", ""))
    for candidate in [named] if named else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(candidate[0]):
            return candidate
    raise NativeCodeError(
        explain(
            f"there is no C compiler{f' {named[0]!r}' if named else ''} for the friction solver",
            fix="Install one (apt-get install gcc), name it in $CC, or use contact='convex'",
        )
    )
