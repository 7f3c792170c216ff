"""A world in the browser: every variable is a slider, and each slider is a `do`.

`Session` is the logic and needs no browser; `interverse.viewer.server` shows it with viser.
"""

from interverse.viewer.controls import Widget, widget_of, widgets
from interverse.viewer.history import Event, Refused
from interverse.viewer.session import Session

__all__ = ["Event", "Refused", "Session", "Widget", "widget_of", "widgets"]
