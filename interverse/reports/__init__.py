"""Reports: plots and one static page from results. Importing this loads no plot.

>>> sorted(PLOTS)
['bars', 'curves', 'profiles', 'radar', 'response']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interverse.core.registry import Entry, Registry, lazy_names

if TYPE_CHECKING:
    from interverse.reports.episodes import contact_sheet, video
    from interverse.reports.page import report

_LAZY = {  # loaded when used: they bring matplotlib, jinja2 and imageio
    "contact_sheet": "episodes",
    "report": "page",
    "video": "episodes",
}

PLOTS = Registry(
    "plot",
    {
        "bars": Entry("interverse.reports.plots.bars:bars"),
        "curves": Entry("interverse.reports.plots.curves:curves"),
        "profiles": Entry("interverse.reports.plots.curves:profiles"),
        "radar": Entry("interverse.reports.plots.curves:radar"),
        "response": Entry("interverse.reports.plots.response:response"),
    },
)
"""Each plot is a function of (results, metric) that returns a matplotlib Figure."""

__all__ = ["PLOTS", "contact_sheet", "report", "video"]

__getattr__ = lazy_names(__name__, _LAZY)
