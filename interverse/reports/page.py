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
from interverse.reports.episodes import Explained, explain_costs, film
from interverse.results import Results, tables
from interverse.results.comparisons import comparisons
from interverse.results.estimates import Unit, unit_words, units
from interverse.results.provenance import check_poolable, command, versions
from interverse.results.published import beside_printed
from interverse.results.text import LIFTED, Cell, TextTable, metric_label
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
_LONG, _MOST_LONG = ("gaps",), 12  # rows an experiment has on the page; files hold all
_BY_UNIT = ("bars", "profiles")  # plots whose intervals are over episodes, or over seeds
_OVER: Mapping[Unit, str] = {
    "episode": "over episodes: other episodes of the same policy",
    "seed": "over seeds: other trainings of the same method",
}
_FOLDED = {
    "costs": "The numbers, with what each group draws",
    "generalisation": "Share of the training score that is lost (E_G)",
}
_PROVENANCE_SHOWN = ("command", "versions")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the page: what it answers, its plots and its tables."""

    title: str
    text: str
    plots: tuple[str, ...] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)  # drawn already
    tables: Mapping[str, TextTable] = field(default_factory=dict)
    brief: Mapping[str, TextTable] = field(default_factory=dict)  # what page and LaTeX show of them
    folded: Mapping[str, TextTable] = field(default_factory=dict)  # below a line to open
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
    costs: bool | None = None,
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
        episodes: whether to play episodes again and to film them: of several policies the one in
            which their scores differ most, of one its best, median and worst. Where that cannot be
            done, a line says why. A mapping of experiments to policies adds those that the results
            do not know by a name.
        costs: whether to play the policies with one group of variables moved at a time, as
            `interverse.attribute` does (some 20 s a policy of TriFinger); by default where episodes
            are played. Without it the page shows scores by variable, which tell no cause.
        title: the page's heading.
        unit: what intervals of scores are over, "episode" or "seed"; by default seeds for each
            experiment that has several trainings, episodes for one policy.
        trust: whether to import the code that results name for their world (MODULE:ID), to play
            episodes again; without it a line says why they are not shown.
    """
    if isinstance(results, Results):
        check_poolable(results.provenance)
        table = results
    elif isinstance(results, Mapping):
        table = Results.concat([part.named(name) for name, part in results.items()])
    else:
        raise InvalidValueError(
            f"results is a {type(results).__name__}",
            allowed="Results, or a mapping of names to Results",
            fix="Read a file with Results.from_parquet",
        )
    units(table, unit)  # a mistake shows before any work
    if metric is not None:
        check_name("metric", metric, table.metrics)
    chosen = metric or next(iter(table.metrics), "last_fractional_success")
    files = {caption: Path(path) for caption, path in (media or {}).items()}
    for caption, path in files.items():
        if path.suffix.lower() not in IMAGES + VIDEOS:
            allowed = ", ".join(IMAGES + VIDEOS)
            raise InvalidValueError(f"media {caption!r} is {path.name!r}", allowed=allowed)
        if not path.is_file():
            raise InvalidValueError(explain(f"media {caption!r}: there is no file {str(path)!r}"))
    target = Path(folder)
    for name in PARTS:
        make_folder(target / name)
    policies = episodes if isinstance(episodes, Mapping) else {}
    found = Explained({}, ())
    films: list[Section] = []
    with trusting(trust):
        if (episodes is not False if costs is None else costs) and len(table):
            found = explain_costs(table, metric=chosen, policies=policies)
        if episodes is not False and len(table):
            films = [_film_section(table, chosen, target, policies)]
    sections = _sections(table, chosen, found, films, unit)
    if files:
        shown = _copy_media(files, target)
        text = "Episodes that were given to this page."
        sections.insert(len(sections) - 1, Section(title="Pictures", text=text, media=shown))
    for section in sections:
        figures = dict(section.figures)
        for name in section.plots:
            by_unit = {"unit": unit} if name in _BY_UNIT else {}
            figures[name] = PLOTS.load(name)(table, chosen, **by_unit)
        for name, figure in figures.items():
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # laid out once, not again for every file
            for suffix in (".svg", ".pdf"):
                style.save(figure, target / "plots" / f"{name}{suffix}")
        for name, content in {**section.tables, **section.folded}.items():
            brief = section.brief.get(name, content)  # what fits a column of a paper
            file = target / "tables" / name
            write_text(file.with_suffix(".csv"), f"{content.render('csv')}\n")
            write_text(file.with_suffix(".md"), f"{content.render('markdown')}\n")
            write_text(file.with_suffix(".tex"), f"{brief.render('latex')}\n")
    page = _render(table, chosen, sections, title)
    return write_text(target / "index.html", page)


def _sections(
    results: Results, metric: str, found: Explained, films: list[Section], unit: Unit | None
) -> list[Section]:
    """Returns the parts that these results have something to say in, the telling ones first."""
    over = unit_words(units(results.final(), unit), _OVER)
    protocols = len(results.final().protocols)
    kept = tables.brief_metrics(results, metric)
    lost = tables.generalisation_errors(results, metric, unit=unit)
    scores = Section(
        title="Scores",
        text=f"Mean score under each protocol, with its 95% interval ({over}). The letters "
        "below a protocol name the space from which it draws each variable: A is for training, "
        "B is held out.",
        plots=("bars",),
        tables={"scores": tables.scores(results, unit=unit)},
        brief={"scores": tables.scores(results, metrics=kept, unit=unit)},
        folded={"generalisation": lost} if lost.rows else {},
    )
    sections = [scores]
    if not np.isnan(results.column("step").astype(np.float64)).all() and len(results):
        curves = Section(
            title="Learning curves",
            text="Score against training steps. Thin lines are seeds; the band is the 95% "
            "interval over them, or over episodes where there is one seed.",
            plots=("curves",),
        )
        # A bar alone says less than the way to it.
        sections.insert(0 if protocols == 1 else 1, curves)
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
    if found.attributions:
        several = len(found.attributions) > 1
        known = {
            f"costs-{n}" if several else "costs": one
            for n, one in enumerate(found.attributions.values())
        }
        said = [
            f"{name}: {one.verdict()}" if several else one.verdict()
            for name, one in found.attributions.items()
        ]
        sections.append(
            Section(
                title="What each variable costs",
                text="The same episodes again, with one group of variables moved to where the "
                "policy was not trained (space B where there is one) and all else equal, noise "
                "included. What the score loses is that group's doing.",
                figures={name: one.plot() for name, one in known.items()},
                lines=(*said, *found.missing),
                folded={name: one.text_table() for name, one in known.items()},
            )
        )
    elif results.variables:
        gaps = tables.gaps(results, metric)
        sections.append(
            Section(
                title="Scores by variable (moved together, not causes)",
                text="Protocols move several variables at once, so a variable can go with a low "
                "score and have no part in it. Dots are episodes, lines are means of equally "
                "filled bins; A and B are shaded. What one variable does is found by moving it "
                "alone: interverse explain.",
                plots=("response",),
                tables={"gaps": gaps} if gaps.rows else {},
                lines=found.missing,
            )
        )
    sections += films
    sections.append(
        Section(
            title="Over all protocols",
            text=f"Aggregates with their 95% intervals ({over}). IQM is "
            "the mean of the middle half; the optimality gap is the share of the score's range "
            "that is missing to its top, where that range is known. "
            "The profile shows which share of episodes scores above each level.",
            plots=("radar", "profiles") if protocols > 2 else ("profiles",),
            tables={"aggregates": tables.aggregates(results, metric, unit=unit)},
        )
    )
    printed = beside_printed(results)
    if printed.rows:
        sections.append(
            Section(
                title="Published numbers",
                text="What DMC-GB, SGQN and DMC-GB2 print for the task under the protocol that has "
                "their name.",
                tables={"published": printed},
            )
        )
    refused = int(results.refused.sum())
    told = (
        f"{refused} of {len(results)} episodes were refused their intervention. They are counted "
        "here and enter no score."
        if refused
        else "No episode was refused its intervention."
    )
    content = {"refusals": tables.refusals(results)} if refused else {}
    return [*sections, Section(title="Refusals", text=told, tables=content)]


def _film_section(
    results: Results, metric: str, target: Path, policies: Mapping[str, PolicyLike]
) -> Section:
    with tempfile.TemporaryDirectory(dir=target, prefix=".film-") as folder:
        filmed = film(results, Path(folder), metric=metric, policies=policies)
        shown = _copy_media(filmed.media, target, prefix="episode-")
    which = (
        "the same episode for every policy, the one in which their scores differ most"
        if len(results.experiments) > 1
        else f"the best, the median and the worst by {metric_label(metric).lower()}"
    )
    text = f"Played again from their addresses: {which}."
    lines = tuple(f"Not shown: {line}" for line in filmed.missing)
    return Section(title="Episodes", text=text, media=shown, lines=lines)


def _copy_media(
    files: Mapping[str, Path], target: Path, prefix: str = ""
) -> tuple[tuple[str, str], ...]:
    shown = []
    for number, (caption, path) in enumerate(files.items()):
        name = f"{prefix}{number:02d}{path.suffix.lower()}"
        shutil.copyfile(path, target / "media" / name)
        shown.append((caption, f"media/{name}"))
    return tuple(shown)


def _render(results: Results, metric: str, sections: list[Section], title: str) -> str:
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    one = {"experiment": len(results.experiments) == 1, "task": len(results.tasks) == 1}
    one["refused"] = not results.refused.any()
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
        folded=_FOLDED,
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
        # The first rows of every experiment and task.
        keys = [i for i, head in enumerate(shown.header) if head in ("experiment", "task")]
        seen: Counter[tuple[Cell, ...]] = Counter()
        kept = []
        for row in shown.rows:
            key = tuple(row[i] for i in keys)
            seen[key] += 1
            kept += [row] if seen[key] <= _MOST_LONG else []
        shown = replace(shown, rows=tuple(kept))
    numbers = [shown.is_number(i) for i in range(len(shown.header))]
    rows = []
    for texts in shown.texts():
        cells = []
        for text, number in zip(texts, numbers, strict=True):
            value, bracket, ends = text.partition(" [") if number else (text, "", "")
            cells.append({"text": value, "ends": bracket.strip() + ends, "number": number})
        rows.append(cells)
    return {
        "heads": list(zip(map(metric_label, shown.header), numbers, strict=True)),
        "rows": rows,
        "caption": shown.caption,
        "cut": whole - len(rows),
    }
