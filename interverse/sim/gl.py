"""A working GL back end, found at first use: EGL, else OSMesa.

`MUJOCO_GL`, if set, decides. The choice is logged once, and `backend()` names it.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys
from typing import Any

from mujoco.rendering.classic import gl_context

from interverse.errors import RenderError, explain

_LOG = logging.getLogger(__name__)
_PACKAGES = {"egl": "libegl1 libgl1-mesa-dri", "osmesa": "libosmesa6"}  # of Debian
_PLATFORM = "PYOPENGL_PLATFORM"


@functools.cache
def backend() -> str:
    """Returns the name of the GL back end in use, or raises RenderError naming what to install."""
    chosen = os.environ.get("MUJOCO_GL", "").strip().lower()
    names = [chosen] if chosen else list(_PACKAGES)
    problems = []
    for name in names:
        try:
            _try(name)
        except Exception as error:  # each library fails in its own way
            problems.append(f"{name}: {str(error) or type(error).__name__}".splitlines()[0])
        else:
            _LOG.info("drawing with %s", name)
            return name
    packages = " or ".join(_PACKAGES.values())
    raise RenderError(
        explain(
            f"no GL library can draw ({'; '.join(problems)})",
            allowed="MUJOCO_GL unset, egl or osmesa",
            fix=f"On Debian: apt-get install {packages}",
        )
    )


def _try(name: str) -> None:
    """Makes MuJoCo draw with a back end, or raises whatever its library raises."""
    if name not in _PACKAGES:  # glfw, glx, off: as MuJoCo itself understood MUJOCO_GL
        context_type: Any = getattr(gl_context, "GLContext", None)
        if context_type is None:
            raise RenderError(f"MUJOCO_GL={name} turns drawing off")
    else:
        given = os.environ.get(_PLATFORM)
        try:
            context_type = importlib.import_module(f"mujoco.{name}").GLContext
            _probe(context_type)
        except Exception:
            _forget(name, given)
            raise
        gl_context.GLContext = context_type
        return
    _probe(context_type)


def _probe(context_type: Any) -> None:
    context = context_type(8, 8)
    context.make_current()
    context.free()


def _forget(name: str, platform: str | None) -> None:
    """Undoes a failed import, for PyOpenGL keeps to the first platform it was loaded with."""
    for module in list(sys.modules):
        if module.split(".")[0] == "OpenGL" or module.startswith(f"mujoco.{name}"):
            del sys.modules[module]
    os.environ.pop(_PLATFORM, None)
    if platform is not None:
        os.environ[_PLATFORM] = platform
