"""One colour an idea, in plots, reports, the viewer and the demo.

The fact is grey and its twin violet; what a `do` sets is orange. A and B are light blue and light
violet. Policies have hues of their own, told apart without red or green.
"""

from __future__ import annotations

TWIN, DO = "#6d3fd1", "#e8770a"
SPACE_A, SPACE_B, SPACE_A_B = "#dbeafe", "#e9dffc", "#e4e4f7"
POLICIES = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#D55E00", "#000000")
INK, SOFT, GRID = "#1f2430", "#5b6470", "#e4e7eb"
FACT = "#9aa3ad"
GOOD, FAIR, BAD = "#15803d", "#b45309", "#c2410c"  # a score near 1, between, near 0
DARK_INK, DARK_SOFT, DARK_PAPER, DARK_TWIN = "#e8eaf0", "#a2abb8", "#0d1117", "#a78bfa"
