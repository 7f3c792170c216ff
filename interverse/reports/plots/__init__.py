"""Plots: one file each, one function of the tidy table; `interverse.reports.PLOTS` lists them."""

from __future__ import annotations

from importlib.util import find_spec

from interverse.core.errors import missing_extra

if find_spec("matplotlib") is None:
    raise missing_extra("matplotlib", "report")
