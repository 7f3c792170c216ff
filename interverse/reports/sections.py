"""Pages of a reproduction: sections with grids, as one Markdown file and one HTML page."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from interverse.core.files.atomic import write_text

Say = Callable[[str], None]
Grid = list[list[str]]
Section = tuple[str, list[str], Grid]
"""A heading, remarks, and a grid whose first row is its head."""

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
