"""The user's wish for a GL back end, checked before MuJoCo sees it.

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


def refused_wish() -> str | None:
    """Takes a wish that cannot be granted out of the environment and returns it, else None."""
    given = os.environ.get(VARIABLE, "")
    wish = given.strip().lower()
    if wish in (*_OFF, *_HEADLESS) or (wish in _WINDOWED and _has_display()):
        return None
    del os.environ[VARIABLE]
    return given


def _has_display() -> bool:
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform != "linux" or bool(shown)


REFUSED = refused_wish()
