"""One static HTML page from results: tables, plots, refusals, and what made them."""

from __future__ import annotations

import functools
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from interverse._version import __version__
from interverse.core.errors import InvalidValueError, check_name, explain, missing_extra
from interverse.core.files.atomic import make_folder, write_text
from interverse.core.type_checks import blames_types
from interverse.reports import PLOTS
from interverse.reports.episodes import film
from interverse.results import Results, tables
from interverse.results.comparisons import comparisons
from interverse.results.labels import metric_label
from interverse.results.provenance import command, versions
from interverse.results.published import beside_printed
from interverse.results.settings import check_poolable
from interverse.results.text import LIFTED, Cell, Estimate, TextTable
from interverse.results.units import Unit, unit_words, units
from interverse.rollouts.policy import PolicyLike
from interverse.worlds.own_code import trusting

try:
    import jinja2
    from matplotlib.figure import Figure

    from interverse.reports.plots import style
except ImportError as error:
    raise missing_extra(str(error.name), "report") from error

PARTS = ("plots", "tables", "media")  # folders beside the page
IMAGES, VIDEOS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg"), (".mp4", ".webm")
_LONG, _MOST_LONG = ("effects", "gaps"), 12  # rows an experiment has on the page; files hold all
_BY_UNIT = ("bars", "profiles")  # plots whose intervals are over episodes, or over seeds
_OVER: Mapping[Unit, str] = {
    "episode": "over episodes: other episodes of the same policy",
    "seed": "over seeds: other trainings of the same method",
}
_PROVENANCE_SHOWN = ("command", "versions")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the page: what it answers, its plots and its tables."""

    title: str
    text: str
    plots: tuple[str, ...] = ()
    tables: Mapping[str, TextTable] = field(default_factory=dict)
    media: tuple[tuple[str, str], ...] = ()  # caption, path from the page
    lines: tuple[str, ...] = ()  # further remarks


@blames_types
def report(
    results: Results | Mapping[str, Results],
    folder: str | os.PathLike[str],
    *,
    metric: str | None = None,
    media: Mapping[str, str | os.PathLike[str]] | None = None,
    episodes: bool | Mapping[str, PolicyLike] = True,
    title: str = "Evaluation report",
    unit: Unit | None = None,
    trust: bool = False,
) -> Path:
    """Writes the page into a folder and returns the path of its `index.html`.

    The page opens from disk and needs no network. Plots stand beside it as SVG and PDF, tables as
    CSV, Markdown and LaTeX, ready for a paper. What else the folder holds stays.

    Args:
        results: of any number of experiments; a mapping names them.
        folder: where to write; made if it is not there.
        metric: the score that is plotted; the first the results hold by default.
        media: caption -> picture or video of your own; copied into the folder.
        episodes: whether to play the best, the median and the worst episode of each experiment
            again and to show them; where that cannot be done, a line says why. A mapping of
            experiments to policies adds those that the results do not know by a name.
        title: the page's heading.
        unit: what intervals of scores are over, "episode" or "seed"; by default seeds for each
            experiment that has several trainings, episodes for one policy.
        trust: whether to import the code that results name for their world (MODULE:ID), to play
            episodes again; without it a line says why they are not shown.
    """
    table = _one_table(results)
    units(table, unit)  # a mistake shows before any work
    chosen = _metric(table, metric)
    files = {caption: _media_file(caption, Path(path)) for caption, path in (media or {}).items()}
    target = Path(folder)
    for name in PARTS:
        make_folder(target / name)
    sections = _sections(table, chosen, _copy_media(files, target), unit)
    if episodes is not False and len(table):
        policies = episodes if isinstance(episodes, Mapping) else {}
        with trusting(trust):
            sections.insert(len(sections) - 1, _film_section(table, chosen, target, policies))
    for section in sections:
        for name in section.plots:
            by_unit = {"unit": unit} if name in _BY_UNIT else {}
            _save_plot(PLOTS.load(name)(table, chosen, **by_unit), target / "plots" / name)
        for name, content in section.tables.items():
            _save_table(content, target / "tables" / name)
    page = _render(table, chosen, sections, title)
    return write_text(target / "index.html", page)


def _one_table(results: Results | Mapping[str, Results]) -> Results:
    if isinstance(results, Results):
        check_poolable(results.provenance)
        return results
    if isinstance(results, Mapping):
        return Results.concat([part.named(name) for name, part in results.items()])
    raise InvalidValueError(
        explain(
            f"results is a {type(results).__name__}",
            allowed="Results, or a mapping of names to Results",
            fix="Read a file with Results.from_parquet",
        )
    )


def _metric(results: Results, metric: str | None) -> str:
    if metric is None:
        return next(iter(results.metrics), "last_fractional_success")
    check_name("metric", metric, results.metrics)
    return metric


def _sections(
    results: Results, metric: str, media: tuple[tuple[str, str], ...], unit: Unit | None
) -> list[Section]:
    """Returns the parts that these results have something to say in."""
    over = unit_words(units(results.final(), unit), _OVER)
    several = len(results.final().protocols) > 2
    sections = [
        Section(
            title="Scores",
            text=f"Mean score under each protocol, with its 95% interval ({over}). The letters "
            "below a protocol name the space from which it draws each variable: A is for training, "
            "B is held out.",
            plots=("bars",),
            tables={"scores": tables.scores(results, unit=unit)},
        ),
        Section(
            title="Over all protocols",
            text=f"Aggregates with their 95% intervals ({over}). IQM is "
            "the mean of the middle half; the optimality gap is the share of the score's range "
            "that is missing to its top, where that range is known. "
            "The profile shows which share of episodes scores above each level.",
            plots=("radar", "profiles") if several else ("profiles",),
            tables={"aggregates": tables.aggregates(results, metric, unit=unit)},
        ),
    ]
    lost = tables.generalisation_errors(results, metric, unit=unit)
    if lost.rows:
        sections.append(
            Section(
                title="Generalisation error",
                text="E_G is the share of the training score that is lost under a protocol: 0 "
                "loses nothing, 1 everything.",
                tables={"generalisation": lost},
            )
        )
    known = beside_printed(results)
    if known.rows:
        sections.append(
            Section(
                title="Published numbers",
                text="What DMC-GB, SGQN and DMC-GB2 print for the task under the protocol that has "
                "their name.",
                tables={"published": known},
            )
        )
    if results.variables:
        sections.append(_variables_section(results, metric))
    if not np.isnan(results.column("step").astype(np.float64)).all() and len(results):
        sections.append(
            Section(
                title="Learning curves",
                text="Score against training steps. Thin lines are seeds; the band is the 95% "
                "interval over them, or over episodes where there is one seed.",
                plots=("curves",),
            )
        )
    if len(results.experiments) > 1:
        sections.append(
            Section(
                title="Comparison",
                text="Experiments on the very same episodes. A difference is worth believing where "
                "its interval leaves out zero and its corrected p-value is small; it is one of "
                "training methods where seeds are compared, else of these runs.",
                tables={"comparisons": comparisons(results, metric)},
            )
        )
    if media:
        sections.append(
            Section(title="Pictures", text="Episodes that were given to this page.", media=media)
        )
    return [*sections, _refusals_section(results)]


def _film_section(
    results: Results, metric: str, target: Path, policies: Mapping[str, PolicyLike]
) -> Section:
    with tempfile.TemporaryDirectory(dir=target, prefix=".film-") as folder:
        filmed = film(results, Path(folder), metric=metric, policies=policies)
        shown = _copy_media(filmed.media, target, prefix="episode-")
    text = (
        f"The best, the median and the worst episode by {metric_label(metric).lower()}, played "
        "again from their addresses."
    )
    lines = tuple(f"Not shown: {line}" for line in filmed.missing)
    return Section(title="Episodes", text=text, media=shown, lines=lines)


def _variables_section(results: Results, metric: str) -> Section:
    found = {"effects": tables.effects(results, metric), "gaps": tables.gaps(results, metric)}
    return Section(
        title="Which variable hurts",
        text="How the score changes with each variable that was set. Dots are episodes, lines are "
        "means of equally filled bins; A and B are shaded.",
        plots=("response",),
        tables={name: table for name, table in found.items() if table.rows},
    )


def _refusals_section(results: Results) -> Section:
    refused = int(results.refused.sum())
    text = (
        f"{refused} of {len(results)} episodes were refused their intervention. They are counted "
        "here and enter no score."
        if refused
        else "No episode was refused its intervention."
    )
    content = {"refusals": tables.refusals(results)} if refused else {}
    return Section(title="Refusals", text=text, tables=content)


def _media_file(caption: str, path: Path) -> Path:
    if path.suffix.lower() not in IMAGES + VIDEOS:
        allowed = ", ".join(IMAGES + VIDEOS)
        raise InvalidValueError(explain(f"media {caption!r} is {path.name!r}", allowed=allowed))
    if not path.is_file():
        raise InvalidValueError(explain(f"media {caption!r}: there is no file {str(path)!r}"))
    return path


def _copy_media(
    files: Mapping[str, Path], target: Path, prefix: str = ""
) -> tuple[tuple[str, str], ...]:
    shown = []
    for number, (caption, path) in enumerate(files.items()):
        name = f"{prefix}{number:02d}{path.suffix.lower()}"
        shutil.copyfile(path, target / "media" / name)
        shown.append((caption, f"media/{name}"))
    return tuple(shown)


def _save_plot(figure: Figure, path: Path) -> None:
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, not again for every file
    for suffix in (".svg", ".pdf"):
        style.save(figure, path.with_suffix(suffix))


def _save_table(table: TextTable, path: Path) -> None:
    for suffix, format in ((".csv", "csv"), (".md", "markdown"), (".tex", "latex")):
        path.with_suffix(suffix).write_text(table.render(format) + "\n", encoding="utf-8")  # type: ignore[arg-type]


def _render(results: Results, metric: str, sections: list[Section], title: str) -> str:
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    one = {"experiment": len(results.experiments) == 1, "task": len(results.tasks) == 1}
    view = functools.partial(table_view, lifted=[name for name, only in one.items() if only])
    environment.globals.update(table_view=view, is_video=lambda path: path.endswith(VIDEOS))
    provenance = results.provenance
    rest = {name: v for name, v in provenance.items() if name not in _PROVENANCE_SHOWN}
    return environment.get_template("page.html.j2").render(
        title=title,
        results=results,
        refused=int(results.refused.sum()),
        metric=metric,
        sections=sections,
        made_by=provenance.get("command", ""),
        made_with=provenance.get("versions") or {},
        page_by=command(),
        page_with=versions(),
        version=__version__,
        rest=json.dumps(rest, indent=2, sort_keys=True) if rest else "",
    )


def table_view(name: str, table: TextTable, lifted: Sequence[str] = LIFTED) -> dict[str, Any]:
    """Returns a table as the template needs it: heads, rows of cells, and how many were cut.

    Args:
        name: of the table's files.
        table: all of it.
        lifted: columns that are left out, being the same on the whole page.
    """
    shown = table.lifted(lifted)
    whole = len(shown.rows)
    if name in _LONG:
        shown = replace(shown, rows=_shortened(shown))
    numbers = [shown.is_number(i) for i in range(len(shown.header))]
    changes = [c.value for row in shown.rows for c in row[-1:] if isinstance(c, Estimate)]
    widest = max(map(abs, changes), default=0.0) if name in _LONG else 0.0
    rows = [[_cell(t, n) for t, n in zip(row, numbers, strict=True)] for row in shown.texts()]
    if widest > 0:
        for row, change in zip(rows, changes, strict=True):
            row[-1] |= _bar(change, widest)
    return {
        "heads": list(zip(map(metric_label, shown.header), numbers, strict=True)),
        "rows": rows,
        "caption": shown.caption,
        "cut": whole - len(rows),
    }


def _cell(text: str, number: bool) -> dict[str, Any]:
    value, bracket, ends = text.partition(" [") if number else (text, "", "")
    return {"text": value, "ends": bracket.strip() + ends, "number": number}


def _bar(change: float, widest: float) -> dict[str, Any]:
    """Returns where the bar of a change starts on its track and how wide it is, in percent."""
    width = 50 * abs(change) / widest
    return {"start": 50 - width if change < 0 else 50, "width": width, "loss": change < 0}


def _shortened(table: TextTable) -> tuple[tuple[Cell, ...], ...]:
    """Returns the first rows of every experiment and task; they come sorted by size."""
    keys = [i for i, name in enumerate(table.header) if name in ("experiment", "task")]
    seen: Counter[tuple[Cell, ...]] = Counter()
    rows = []
    for row in table.rows:
        key = tuple(row[i] for i in keys)
        seen[key] += 1
        if seen[key] <= _MOST_LONG:
            rows.append(row)
    return tuple(rows)
