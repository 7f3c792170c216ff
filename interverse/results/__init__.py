"""Results: the tidy table of scored episodes that evaluation writes and reports read."""

from __future__ import annotations

from interverse.results.highlights import Highlight, highlights
from interverse.results.results import Results

__all__ = ["Highlight", "Results", "highlights"]
