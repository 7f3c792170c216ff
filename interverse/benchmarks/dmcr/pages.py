"""The comparison as people read it: one Markdown file, one HTML page, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interverse.benchmarks.dmcr.compare import records
from interverse.benchmarks.dmcr.figures import write_figures
from interverse.benchmarks.dmcr.settings import RemasteredSettings
from interverse.benchmarks.dmcr.sheets import AUGMENTED, SHEETS, TRAJECTORY
from interverse.benchmarks.dmcr.variants import DmcrVariant, figure_variants
from interverse.benchmarks.tidy import laid_out
from interverse.reports.sections import Grid, Say, Section, write_summary

_LEGEND = (
    "Mean return of an episode with its 95% interval over training runs (Student's t; a single run"
    " has none: its episodes do not tell how another run would do), then the published number in"
    " brackets, a dash where we know of none. E_G is the share of the training return that is lost,"
    " in percent; a run counts with both its returns. Runs that lack one of them are left out."
)
_SMALL = "This is not the paper's budget: the published numbers stand here for orientation alone."
_SMALL_FIGURES = (
    "This is not the paper's budget; a task stands for the caption's where the budget has not that."
)
_PICTURES = "Floors and backgrounds are generated ones, not the paper's photographs."
_OWN_PICTURES = "Floors and backgrounds are those of {}."
_STATES = {**SHEETS, 8: AUGMENTED, 9: TRAJECTORY}  # figures of states, for which nothing is trained


def write_pages(
    settings: RemasteredSettings, tables: Sequence[Mapping[str, Any]], say: Say
) -> None:
    """Writes summary.md, index.html and, if matplotlib is there, figures."""
    figures = write_figures(settings, say)
    given = settings.textures
    pictures = _PICTURES if given is None else _OWN_PICTURES.format(given.name)
    sections = [section for content in tables for section in _sections(content, pictures)]
    if figures:
        remarks = [pictures] if settings.budget == "full" else [_SMALL_FIGURES, pictures]
        sections.append(("Figures", remarks, _shown_in_figures(settings)))
    say(write_summary(settings.out, "DMC Remastered, made again", sections, figures))


def _shown_in_figures(settings: RemasteredSettings) -> Grid:
    """Returns what each figure is of: task, agents, their length, and how many are trained."""
    sizes, grid = settings.sizes(), [["figure", "task", "agents", "decisions", "runs finished"]]
    for number in sorted(set(settings.figures)):
        if number in _STATES:
            grid.append([str(number), _STATES[number], "none", "", ""])
        by_task: dict[str, list[DmcrVariant]] = {}
        for variant in figure_variants(number, sizes):
            by_task.setdefault(variant.task, []).append(variant)
        for task, shown in by_task.items():
            agents = ", ".join(dict.fromkeys(variant.method for variant in shown))
            steps = settings.training(shown[0], 0).steps
            done = sum("evaluations" in r for v in shown for r in records(settings, v))
            runs = f"{done} of {len(shown) * sizes.runs}"
            grid.append([str(number), task, agents, f"{steps:,}", runs])
    return grid


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
    laid = []
    for cell in cells:
        ours, theirs = cell["ours"][metric], cell["published"][metric]
        told = "none" if ours["mean"] is None else f"{ours['mean']:.1f}"
        if ours["low"] is not None:
            told += f" [{ours['low']:.1f}, {ours['high']:.1f}]"
        told += " (-)" if theirs is None else f" ({theirs:g})"
        laid.append(((f"{cell['task']} {cell['method']}",), cell["condition"], told))
    return laid_out(laid, ("agent",))


def _schedule(cells: Sequence[Mapping[str, Any]]) -> Grid:
    head = ["task", "what", "ours", "published", "difference"]
    names = ("task", "metric", "ours", "published", "difference")
    return [head, *([str(cell[name]) for name in names] for cell in cells)]
