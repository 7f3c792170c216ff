"""The GL back end that the user names, checked before MuJoCo sees it.

MuJoCo and dm_control raise on import for a value of MUJOCO_GL that they do not know, and GLFW ends
the process where there is no display, so a world could not even be described. Such a value is taken
out of the environment; drawing then raises and names it.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "MUJOCO_GL"
_OFF = ("", "disable", "disabled", "off", "false", "0")
_HEADLESS = ("egl", "osmesa")
_WINDOWED = ("glfw", "glx", "cgl", "wgl", "enable", "enabled", "on", "true", "1")


def unsupported_gl_backend() -> str | None:
    """Takes a back end that cannot be had out of the environment and returns it, else None."""
    given = os.environ.get(VARIABLE, "")
    name = given.strip().lower()
    if name in (*_OFF, *_HEADLESS) or (name in _WINDOWED and _has_display()):
        return None
    del os.environ[VARIABLE]
    return given


def _has_display() -> bool:
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform != "linux" or bool(shown)


REFUSED = unsupported_gl_backend()
