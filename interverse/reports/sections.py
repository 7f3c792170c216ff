"""Scores as grids, and grids as pages: one Markdown file and one HTML page of sections."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, final

import numpy as np

from interverse.core.files.atomic import write_text

Say = Callable[[str], None]
Grid = list[list[str]]
Section = tuple[str, list[str], Grid]
"""A heading, remarks, and a grid whose first row is its head."""

Row = TypeVar("Row", bound=Mapping[str, Any])
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em;"
    "color:#1f2933}p{max-width:46em}p:has(img){max-width:none}"
    "table{display:block;overflow-x:auto;border-collapse:collapse;font-size:13px}"
    "th,td{padding:.3em .7em;text-align:right;white-space:nowrap;"
    "border-bottom:1px solid #e4e7eb}th:first-child,td:first-child{text-align:left}"
    "img{max-width:100%}@media(max-width:700px){p:has(img){overflow-x:auto}"
    "img{max-width:none;width:560px}}@media(prefers-color-scheme:dark){body{background:#14181f;"
    "color:#e8eaee}th,td{border-color:#333a45}img{background:#fff}}"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One number of one run.

    Attributes:
        where: the world, task or split.
        who: the model, agent or curriculum.
        what: the column: a metric, with its horizon or protocol where it has one.
        value: the number; NaN says that the run has none.
        run: what tells runs apart; empty for yardsticks, which are no runs.
    """

    where: str
    who: str
    what: str
    value: float
    run: str = ""


def pivot(scores: Iterable[Score], digits: int = 3) -> Grid:
    """Returns a row per place and name, a column per metric: mean and deviation over runs.

    >>> made = [Score(where="w", who="m", what="H@1", value=v, run=str(v)) for v in (1.0, 3.0)]
    >>> pivot(made)
    [['where', 'who', 'runs', 'H@1'], ['w', 'm', '2', '2 +- 1']]
    """
    held: dict[tuple[tuple[str, str], str], list[float]] = {}
    runs: dict[tuple[str, str], set[str]] = {}
    for score in scores:
        key = score.where, score.who
        held.setdefault((key, score.what), []).append(score.value)
        runs.setdefault(key, set()).update([score.run] if score.run else [])
    cells = [
        ((*key, str(len(runs[key]) or "")), what, mean_text(values, digits))
        for (key, what), values in held.items()
    ]
    return laid_out(cells, ("where", "who", "runs"))


def laid_out(cells: Iterable[tuple[tuple[str, ...], str, str]], head: Sequence[str]) -> Grid:
    """Returns texts as a table: a line per row name, a column per column name, as they first come.

    Args:
        cells: the name of a row in one or more parts, the name of a column, the text.
        head: what stands above the parts of a row's name.

    >>> laid_out([(("a",), "x", "1"), (("b",), "y", "2")], ("row",))
    [['row', 'x', 'y'], ['a', '1', ''], ['b', '', '2']]
    """
    at = {(row, column): text for row, column, text in cells}
    columns = list(dict.fromkeys(column for _, column in at))
    rows = dict.fromkeys(row for row, _ in at)
    lines = [[*row, *(at.get((row, column), "") for column in columns)] for row in rows]
    return [[*head, *columns], *lines]


def grouped(rows: Iterable[Row], name: str) -> dict[Any, list[Row]]:
    """Returns the rows by what stands under a name, in order.

    >>> grouped([{"task": "a"}, {"task": "b"}, {"task": "a", "seed": 1}], "task")["a"]
    [{'task': 'a'}, {'task': 'a', 'seed': 1}]
    """
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found


def mean_text(values: Sequence[float], digits: int = 3) -> str:
    """Returns mean and deviation of the finite values, as text.

    >>> mean_text([1.0, 2.0, float("nan")]), mean_text([])
    ('1.5 +- 0.5', '')
    """
    kept = np.array([value for value in values if np.isfinite(value)])
    if not len(kept):
        return ""
    spread = f" +- {kept.std().round(9):.2g}" if len(kept) > 1 else ""
    return f"{kept.mean():.{digits}g}{spread}"


def markdown(grid: Grid) -> str:
    """Returns a grid, whose first row is its head, as a Markdown table."""
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in grid]
    rule = "|".join(["---"] * len(grid[0]))
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])])


def with_table(page: Path, table: str) -> str:
    """Returns a page's text with a table between its two marks."""
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise ValueError(f"{page} lacks the marks {BEGIN} and {END}")
    return f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}"


def write_summary(
    out: Path,
    title: str,
    sections: Sequence[Section],
    figures: Sequence[str] = (),
    placed: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Writes summary.md and index.html to a folder, as `written_page`; returns what to say."""
    markdown, page = written_page(title, sections, figures, placed)
    files = write_text(out / "summary.md", markdown), write_text(out / "index.html", page)
    return f"written: {files[0]}, {files[1]}"


def written_page(
    title: str,
    sections: Sequence[Section],
    figures: Sequence[str],
    placed: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, str]:
    """Returns sections and figures as Markdown and as one HTML page.

    Args:
        title: the page's heading.
        sections: in order.
        figures: names of figures for the end of the page.
        placed: by a section's heading, the name of a figure that stands above its grid.
    """

    def cells(values: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(v)}</{tag}>" for v in values) + "</tr>"

    def line(values: Sequence[str]) -> str:
        # Markdown would read a star as emphasis, a bar as the next column.
        return "| " + " | ".join(v.replace("|", "\\|").replace("*", "\\*") for v in values) + " |"

    def image(name: str) -> str:
        return f'<p><img src="{name}" alt="{name}"></p>'

    lines, parts = [f"# {title}", ""], [f"<h1>{html.escape(title)}</h1>"]
    for heading, remarks, (head, *rows) in sections:
        lines += [f"## {heading}", "", *remarks, ""]
        parts.append(f"<h2>{html.escape(heading)}</h2>")
        parts += [f"<p>{html.escape(remark)}</p>" for remark in remarks]
        if name := placed.get(heading):
            lines += [f"![{name}]({name})", ""]
            parts.append(image(name))
        if any(head):
            lines += [line(head), line(["---"] * len(head)), *map(line, rows), ""]
            parts.append("<table>" + cells(head, "th") + "".join(cells(r, "td") for r in rows))
            parts.append("</table>")
    lines += [f"![{name}]({name})" for name in figures]
    parts += map(image, figures)
    body = "\n".join(parts)
    page = (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>{html.escape(title)}</title>"
        f"<style>{_STYLE}</style><body>{body}</body></html>\n"
    )
    return "\n".join(lines).rstrip() + "\n", page
