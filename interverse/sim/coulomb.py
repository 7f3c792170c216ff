"""Exact sliding friction for MuJoCo models: finds, loads and attaches the native plugin.

`native/coulomb.c` says what it computes. The wheel brings it for the MuJoCo it was built with. For
another one, or for a source that was changed, it is compiled once with the machine's C compiler,
against the headers that MuJoCo's package ships, into the cache folder. A model has exact friction
if it was built with `attach`; every other model in the process is left alone.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import uuid
from pathlib import Path
from typing import Any

import mujoco

from interverse.core.errors import InterverseError, explain
from interverse.core.files.atomic import cache_folder
from interverse.sim.native import SOURCE, CompileError, compile_solver, file_name

SENSOR = "coulomb"
"""The sensor that `attach` adds: Newton steps, islands unsolved, largest relative error left."""

_PLUGIN = "interverse.coulomb"
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
    """Returns where the compiled plugin is: in the package, or in the cache."""
    name = file_name(mujoco.__version__)
    shipped = SOURCE.with_name(name)
    return shipped if shipped.is_file() else cache_folder() / "native" / name


def used() -> bool:
    """Returns whether a model of this process asked for exact friction, and got it."""
    return bool(_loaded.cache_info().currsize)


def solver_hash() -> str:
    """Returns a hash of the compiled plugin: where it is equal, so are the numbers."""
    return _loaded()[1]


@functools.cache
def _loaded() -> tuple[Any, str]:
    """Registers the plugin with MuJoCo, once a process; returns the library, to keep it loaded."""
    path, folder = library_path(), Path(mujoco.__file__).parent
    if not path.is_file():
        _build(path)
    found = sorted((*folder.glob("libmujoco*.so*"), *folder.glob("libmujoco*.dylib")))
    if not found:
        raise NativeCodeError(explain(f"there is no MuJoCo library in {folder}"))
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        native, engine = ctypes.CDLL(str(path)), ctypes.CDLL(str(found[0]))
        addresses = [ctypes.cast(getattr(engine, f), ctypes.c_void_p) for f in _FUNCTIONS]
        description = ctypes.create_string_buffer(_DESCRIPTION)
        engine.mjp_defaultPlugin(description)
        native.interverse_coulomb(description, (ctypes.c_void_p * len(addresses))(*addresses))
        engine.mjp_registerPlugin(description)
    except (OSError, AttributeError) as error:
        raise NativeCodeError(
            explain(f"the friction solver {path} cannot be loaded: {error}", fix="Delete the file")
        ) from error
    return native, digest


def _build(path: Path) -> None:
    """Compiles the plugin to a path; processes may do so side by side."""
    draft = path.with_name(f"{path.stem}-{uuid.uuid4().hex}.so")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        compile_solver(Path(mujoco.__file__).parent, draft)
        os.replace(draft, path)
    except (OSError, CompileError) as error:
        draft.unlink(missing_ok=True)
        raise NativeCodeError(
            explain(
                f"this package holds no friction solver for MuJoCo {mujoco.__version__}, and"
                f" {error}",
                fix="Install a C compiler (apt-get install gcc), or name one in $CC, or use"
                " contact='convex'",
            )
        ) from error
