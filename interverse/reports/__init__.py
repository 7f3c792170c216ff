"""Reports: plots and one static page from results. Importing this loads no plot.

>>> sorted(PLOTS)
['bars', 'curves', 'profiles', 'radar', 'response']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from interverse.registry import Entry, Registry

if TYPE_CHECKING:
    from interverse.reports.page import report

PLOTS = Registry(
    "plot",
    {
        "bars": Entry("interverse.reports.plots.bars:bars"),
        "curves": Entry("interverse.reports.plots.curves:curves"),
        "profiles": Entry("interverse.reports.plots.profiles:profiles"),
        "radar": Entry("interverse.reports.plots.radar:radar"),
        "response": Entry("interverse.reports.plots.response:response"),
    },
)
"""Each plot is a function of (results, metric) that returns a matplotlib Figure."""

__all__ = ["PLOTS", "report"]


def __getattr__(name: str) -> Any:
    if name == "report":  # loaded when used: it brings matplotlib and jinja2
        return importlib.import_module("interverse.reports.page").report
    raise AttributeError(f"module 'interverse.reports' has no attribute {name!r}")
