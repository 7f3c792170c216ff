"""The comparison as people read it: one Markdown file, one HTML page, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interverse.benchmarks.dmcr.figures import write_figures
from interverse.benchmarks.dmcr.settings import RemasteredSettings
from interverse.benchmarks.pages import Grid, Say, Section, write_summary

_LEGEND = (
    "Mean return of an episode with its 95% interval over training runs (Student's t; a single run"
    " has none: its episodes do not tell how another run would do), then the published number in"
    " brackets, a dash where we know of none. E_G is the share of the training return that is lost,"
    " in percent; a run counts with both its returns. Runs that lack one of them are left out."
)
_SMALL = "This is not the paper's budget: the published numbers stand here for orientation alone."
_PICTURES = "Floors and backgrounds are generated ones, not the paper's photographs."
_OWN_PICTURES = "Floors and backgrounds are those of {}."


def write_pages(
    settings: RemasteredSettings, tables: Sequence[Mapping[str, Any]], say: Say
) -> None:
    """Writes summary.md, index.html and, if matplotlib is there, figures."""
    figures = write_figures(settings, say)
    given = settings.textures
    pictures = _PICTURES if given is None else _OWN_PICTURES.format(given.name)
    sections = [section for content in tables for section in _sections(content, pictures)]
    say(write_summary(settings.out, "DMC Remastered, made again", sections, figures))


def _sections(content: Mapping[str, Any], pictures: str) -> Iterator[Section]:
    cells = content["cells"]
    if not cells:
        return
    if content["table"] == 3:
        remarks = [
            "Decisions and frame skip; the Hopper's length is damaged in our text of the paper."
        ]
        yield content["title"], remarks, _schedule(cells)
        return
    remarks = [_LEGEND, pictures] if content["comparable"] else [_LEGEND, _SMALL, pictures]
    yield f"{content['title']}: returns", remarks, _grid(cells, "return")
    tests = [cell for cell in cells if cell["condition"] != "train"]
    yield f"{content['title']}: E_G", [], _grid(tests, "E_G")


def _grid(cells: Sequence[Mapping[str, Any]], metric: str) -> Grid:
    """Returns a row per task and method, a column per condition."""
    columns = list(dict.fromkeys(cell["condition"] for cell in cells))
    at = {(c["task"], c["method"], c["condition"]): c for c in cells}
    grid = [["agent", *columns]]
    for row in dict.fromkeys((c["task"], c["method"]) for c in cells):
        grid.append([" ".join(row), *(_shown(at.get((*row, name)), metric) for name in columns)])
    return grid


def _shown(cell: Mapping[str, Any] | None, metric: str) -> str:
    if cell is None:
        return ""
    ours, theirs = cell["ours"][metric], cell["published"][metric]
    told = "none" if ours["mean"] is None else f"{ours['mean']:.1f}"
    if ours["low"] is not None:
        told += f" [{ours['low']:.1f}, {ours['high']:.1f}]"
    return f"{told} (-)" if theirs is None else f"{told} ({theirs:g})"


def _schedule(cells: Sequence[Mapping[str, Any]]) -> Grid:
    head = ["task", "what", "ours", "published", "difference"]
    names = ("task", "metric", "ours", "published", "difference")
    return [head, *([str(cell[name]) for name in names] for cell in cells)]
