"""A working GL back end, found at first use: EGL, else OSMesa.

`MUJOCO_GL`, if set, decides. The choice is logged once, and `backend()` names it.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
from mujoco.rendering.classic import gl_context

from interverse import _gl_backend
from interverse.core.errors import RenderError

_LOG = logging.getLogger(__name__)
_PACKAGES = {"egl": "libegl1 libgl1-mesa-dri", "osmesa": "libosmesa6"}  # of Debian
_WISH, _PLATFORM = "MUJOCO_GL", "PYOPENGL_PLATFORM"  # MuJoCo's and PyOpenGL's variables
# The process that loaded GL, if one has: MuJoCo does so when it is imported under a wish.
_LOADED_IN = [os.getpid()] if os.environ.get(_WISH) else []


def check_process() -> None:
    """Raises in a process that was forked from one that had loaded GL: drawing would hang."""
    if _LOADED_IN and [os.getpid()] != _LOADED_IN:
        raise RenderError(
            "this process was forked from one that had loaded GL, which cannot be shared",
            fix='Start workers by spawning, as AsyncVectorEnv(..., context="spawn") does',
        )


@functools.cache
def backend() -> str:
    """Returns the name of the GL back end in use, or raises RenderError naming what to install."""
    if _gl_backend.REFUSED is not None:
        raise RenderError(
            f"{_WISH} is {_gl_backend.REFUSED!r}, which is unknown or needs a display",
            allowed=f"{_WISH} unset, egl or osmesa",
        )
    wish = os.environ.get(_WISH, "").strip().lower()
    problems = []
    for name in [wish] if wish else list(_PACKAGES):
        try:
            _use(name)
        except Exception as error:  # each library fails in its own way
            problems.append(f"{name}: {str(error) or type(error).__name__}".splitlines()[0])
        else:
            _LOG.info("drawing with %s", name)
            _LOADED_IN[:] = [os.getpid()]
            return name
    raise RenderError(
        f"no GL library can draw ({'; '.join(problems)})",
        allowed=f"{_WISH} unset, egl or osmesa",
        fix=f"On Debian: apt-get install {' or '.join(_PACKAGES.values())}",
    )


def _use(name: str) -> None:
    """Makes MuJoCo draw with a back end, or raises whatever its library raises."""
    if name not in _PACKAGES:  # glfw, glx, off: MuJoCo acted on the variable when imported
        if not hasattr(gl_context, "GLContext"):
            raise RenderError("drawing is turned off")
        _draw_nothing(gl_context.GLContext)
        return
    with _undone_on_failure(name):
        os.environ[_WISH] = name  # MuJoCo's C code reads it when it loads GL's functions
        context_type = importlib.import_module(f"mujoco.{name}").GLContext
        _draw_nothing(context_type)
    gl_context.GLContext = context_type  # what mujoco.Renderer makes


def _draw_nothing(context_type: Any) -> None:
    """Makes and frees the contexts that a picture needs."""
    context = context_type(8, 8)
    context.make_current()
    mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), 100).free()
    context.free()


@contextmanager
def _undone_on_failure(name: str) -> Iterator[None]:
    """Undoes a failed choice, for PyOpenGL keeps to the first platform it was loaded with."""
    before = {key: os.environ.get(key) for key in (_WISH, _PLATFORM)}
    try:
        yield
    except Exception:
        for module in list(sys.modules):
            if module.split(".")[0] == "OpenGL" or module.startswith(f"mujoco.{name}"):
                del sys.modules[module]
        for key, value in before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value
        raise
