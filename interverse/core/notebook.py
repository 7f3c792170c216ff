"""Tables and curves as HTML, for what a notebook shows of an object."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_MOST_HIGH = "max-height:420px;overflow:auto"
_LONG = 70  # letters of a cell that is broken into more than two lines
_CURVE = 240.0, 40.0  # width and height of a curve, pixels


def table_html(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", note: str = ""
) -> str:
    """Returns a table that scrolls where it is long; all cells are text.

    >>> table_html(["name"], [["<b>"]]).count("&lt;b&gt;")
    1
    """

    def line(row: Sequence[str], tag: str) -> str:
        """Returns a row; on a narrow page cells break into two lines and then the table scrolls."""
        cells = [(min(len(c), _LONG) / 2, html.escape(c)) for c in row]
        filled = (f'<{tag} style="text-align:left;min-width:{w:g}ch">{c}</{tag}>' for w, c in cells)
        return f"<tr>{''.join(filled)}</tr>"

    head, body = line(header, "th"), "".join(line(row, "td") for row in rows)
    above = f"<b>{html.escape(title)}</b>" if title else ""
    below = f'<div style="opacity:.7;max-width:80ch">{html.escape(note)}</div>' if note else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'{above}<div style="{_MOST_HIGH}">{table}</div>{below}'


def curve_html(values: Sequence[float], color: str) -> str:
    """Returns a small curve of finite numbers, from the lowest to the highest; empty for fewer.

    >>> curve_html([1.0], "grey"), curve_html([0.0, 1.0], "grey").count("<polyline")
    ('', 1)
    """
    if len(values) < 2:
        return ""
    width, height = _CURVE
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    points = " ".join(
        f"{width * i / (len(values) - 1):.1f},{(height - 2) * (1 - (v - low) / span) + 1:.1f}"
        for i, v in enumerate(values)
    )
    line = f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>'
    return f'<svg width="{width:g}" height="{height:g}">{line}</svg>'
