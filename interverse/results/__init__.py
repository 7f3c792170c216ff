"""Results: the tidy table of scored episodes that evaluation writes and reports read."""

from __future__ import annotations

from interverse.results.results import Highlight, Results, highlights

__all__ = ["Highlight", "Results", "highlights"]
