"""A table of plain cells as text (terminal, Markdown, LaTeX, CSV) and names as readers see them."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text as RichText

from interverse.core.errors import InvalidValueError
from interverse.core.notebook import table_html
from interverse.metrics import metric_facts
from interverse.metrics.bootstrap import Interval

Format = Literal["rich", "markdown", "latex", "csv"]
MISSING = "\N{EN DASH}"
LIFTED = ("experiment", "task")
_PADDING = 3  # around a column, its share of the frame included
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}


@final
class Text(str):
    """A string that a console shows as it prints, line by line."""

    table: TextTable | None = None

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str | None:
        return None if self.table is None else self.table._repr_html_()

    def __rich__(self) -> TextTable | RichText:
        """Returns what rich prints: the table fitted to the console, or the lines uncoloured."""
        return RichText(str(self)) if self.table is None else self.table


@final
@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with the ends of its interval; NaN for an end that is not known."""

    value: float
    low: float = math.nan
    high: float = math.nan
    statistic: str = ""  # what it is where it is not what its column says, such as "median"

    @classmethod
    def of(cls, interval: Interval, statistic: str = "") -> Estimate:
        """Returns the estimate of a single interval."""
        ends = (interval.estimate.item(), interval.low.item(), interval.high.item())
        return cls(*ends, statistic=statistic)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The number and both ends."""
        return self.value, self.low, self.high

    def among(self, known: int, scored: int) -> Estimate:
        """Returns the same, of so many of the scored episodes: the others have no such score."""
        told = f"{self.statistic} ({known} of {scored})".strip()
        return replace(self, statistic=told)

    def shown(self, digits: int) -> str:
        """Returns "value [low, high]", "value", or a dash where there is no value.

        >>> Estimate(2.0, 1.0, 4.0, statistic="median").shown(1)
        '2.0 [1.0, 4.0] median'
        """
        if math.isnan(self.value):
            return MISSING
        told = f" {self.statistic}" if self.statistic else ""
        if math.isnan(self.low) or math.isnan(self.high):
            return f"{self.value:z.{digits}f}{told}"
        return f"{self.value:z.{digits}f} [{self.low:z.{digits}f}, {self.high:z.{digits}f}]{told}"


Cell: TypeAlias = "str | int | float | Estimate"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """Headings, rows of cells, and a caption that says how to read them."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    title: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = self.within(options.max_width)
        if len(parts) > 1:  # a count of refusals that is 0 in all rows makes room
            kept = [
                i
                for i, name in enumerate(self.header)
                if name != "refused" or any(row[i] for row in self.rows)
            ]
            shorter = self._columns(kept, title=self.title, caption=self.caption)
            parts = shorter.within(options.max_width)
        for part in parts:
            yield _rich_table(replace(part, caption=""), pad_edge=False)
        if self.caption:  # as wide as the console, whatever the last part is
            yield RichText(self.caption, style="table.caption")

    def _repr_html_(self) -> str:
        shown = self.lifted()
        return table_html(shown.header, shown.texts(), title=shown.title, note=shown.caption)

    def render(self, format: Format) -> Text:
        """Returns the table as text; CSV holds every number in full, each end in its column."""
        if format not in _RENDERERS:
            raise InvalidValueError(
                f"unknown table format {format!r}", allowed=", ".join(_RENDERERS)
            )
        table = self if format == "csv" else self.lifted()
        text = Text(_RENDERERS[format](table))
        text.table = table if format == "rich" else None
        return text

    def lifted(self, names: Sequence[str] = LIFTED) -> TextTable:
        """Returns the table with an experiment or task that is the same in all rows as title."""
        alike = [
            i
            for i, name in enumerate(self.header)
            if name in names and self.rows and len({row[i] for row in self.rows}) == 1
        ]
        kept = [i for i in range(len(self.header)) if i not in alike]
        title = [self.title] * bool(self.title) + [str(self.rows[0][i]) for i in alike]
        return self._columns(kept, title=", ".join(title), caption=self.caption)

    def within(self, width: int) -> list[TextTable]:
        """Returns the table in parts that are no wider than a console.

        Columns of text stand in every part, those of numbers in one; a part has one at least. Where
        one part does not do, headings that are wider than their column are broken at underscores.
        """
        texts = self.texts()
        cells = [max([0, *(len(row[i]) for row in texts)]) for i in range(len(self.header))]
        widths = [max(len(n), c) + _PADDING for n, c in zip(self.header, cells, strict=True)]
        table = self
        if sum(widths) > width:
            names = [_broken(n, c) for n, c in zip(self.header, cells, strict=True)]
            lines = [max(map(len, name.split("\n"))) for name in names]
            widths = [max(pair) + _PADDING for pair in zip(lines, cells, strict=True)]
            table = replace(self, header=tuple(names))
        keys = [i for i in range(len(self.header)) if not self.is_number(i)]
        parts: list[list[int]] = [[]]
        for i in (i for i in range(len(self.header)) if i not in keys):
            if parts[-1] and sum(widths[j] for j in (*keys, *parts[-1], i)) > width:
                parts.append([])
            parts[-1].append(i)
        return [
            table._columns(
                [*keys, *part],
                title=self.title if not n else "",
                caption=self.caption if n == len(parts) - 1 else "",
            )
            for n, part in enumerate(parts)
        ]

    def _columns(self, kept: Sequence[int], *, title: str, caption: str) -> TextTable:
        header = tuple(self.header[i] for i in kept)
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return replace(self, header=header, rows=rows, title=title, caption=caption)

    def texts(self) -> list[list[str]]:
        """Returns the cells as a reader sees them, with equal decimals down a column."""
        columns = [
            [n for row in self.rows for n in _numbers(row[i])] for i in range(len(self.header))
        ]
        digits = [decimals(*(n for n in column if isinstance(n, float))) for column in columns]
        return [[_shown(cell, d) for cell, d in zip(row, digits, strict=True)] for row in self.rows]

    def is_number(self, column: int) -> bool:
        """Returns whether a column holds numbers, and so is set flush right."""
        cells = [row[column] for row in self.rows]
        return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def _broken(name: str, width: int) -> str:
    r"""Returns a heading in lines no wider than its column, broken after underscores.

    >>> _broken("last_fractional_success", 20)
    'last_fractional_\nsuccess'
    """
    lines = [""]
    for piece in re.findall(r"[^_]*_+|[^_]+", name):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def decimals(*values: float) -> int:
    """Returns how many decimals numbers of this size deserve.

    >>> decimals(0.5), decimals(53.2), decimals(812.0, 640.0)
    (3, 2, 1)
    """
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    return max(0, 3 - max(0, math.floor(math.log10(largest)) if largest >= 1 else 0))


def _rich_table(table: TextTable, *, pad_edge: bool = True) -> RichTable:
    drawn = RichTable(
        pad_edge=pad_edge,
        box=box.SIMPLE_HEAD,
        title=table.title or None,
        caption=table.caption or None,
        title_justify="left",
        caption_justify="left",
    )
    for i, name in enumerate(table.header):
        drawn.add_column(name, justify="right" if table.is_number(i) else "left")
    for row in table.texts():
        drawn.add_row(*map(RichText, row))
    return drawn


def _rich(table: TextTable) -> str:
    # Wide enough for all: the text must not depend on the terminal it was made in.
    console = Console(file=io.StringIO(), width=400, color_system=None)
    console.print(_rich_table(table))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in lines)


def _markdown(table: TextTable) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = ["---:" if table.is_number(i) else "---" for i in range(len(table.header))]
    body = [line(row) for row in table.texts()]
    title = [f"**{table.title}**", ""] if table.title else []
    caption = ["", table.caption] if table.caption else []
    return "\n".join([*title, line(list(table.header)), line(rule), *body, *caption])


def _latex(table: TextTable) -> str:
    columns = "".join("r" if table.is_number(i) else "l" for i in range(len(table.header)))
    lines = [f"\\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [" & ".join(map(_escaped, table.header)) + r" \\", r"\midrule"]
    numbers = [table.is_number(i) for i in range(len(table.header))]
    for row in table.texts():
        cells = (_latex_cell(text, n) for text, n in zip(row, numbers, strict=True))
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    notes = [f"% {note}" for note in (table.title, table.caption) if note]
    return "\n".join([*notes, *lines])


def _latex_cell(text: str, number: bool) -> str:
    if text == MISSING:
        return "--"
    if not number:
        return _escaped(text)
    value, _, rest = text.partition(" ")
    ends, bracket, told = rest.rpartition("]") if "]" in rest else ("", "", rest)
    small = [f"${ends}{bracket}$"] * bool(ends) + [told.strip()] * bool(told)
    return f"${value}$" + (f" {{\\scriptsize {' '.join(small)}}}" if small else "")


def _escaped(text: str) -> str:
    return re.sub(r"[\\~^&%$#_{}]", lambda found: _LATEX[found.group()], text)


def _csv(table: TextTable) -> str:
    """Returns every number in full; an estimate's ends and statistic have columns of their own."""
    columns = [[row[i] for row in table.rows] for i in range(len(table.header))]
    wide = [any(isinstance(cell, Estimate) for cell in column) for column in columns]
    told = [any(getattr(cell, "statistic", "") for cell in column) for column in columns]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names: list[str] = []
    for name, is_wide, is_told in zip(table.header, wide, told, strict=True):
        names += [
            name,
            *[f"{name}_low", f"{name}_high"] * is_wide,
            *[f"{name}_statistic"] * is_told,
        ]
    writer.writerow(names)
    for row in table.rows:
        cells: list[Any] = []
        for cell, is_told in zip(row, told, strict=True):
            full = _numbers(cell)
            cells += ["" if isinstance(n, float) and math.isnan(n) else n for n in full]
            cells += [getattr(cell, "statistic", "")] * is_told
        writer.writerow(cells)
    return file.getvalue().rstrip("\n")


def _numbers(cell: Cell) -> Sequence[str | int | float]:
    return cell.numbers if isinstance(cell, Estimate) else [cell]


def _shown(cell: Cell, digits: int) -> str:
    if isinstance(cell, Estimate):
        return cell.shown(digits)
    if isinstance(cell, float):
        return MISSING if math.isnan(cell) else f"{cell:z.{digits}f}"
    return str(cell)


_RENDERERS: Mapping[str, Callable[[TextTable], str]] = {
    "rich": _rich,
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
}


_PARTS = {
    "color": ("red", "green", "blue", "alpha"),
    "cylindrical_position": ("radius", "angle", "height"),
}
_PLAIN_PARTS = ("x", "y", "z", "w")


def component_names(variable: str, width: int) -> list[str]:
    """Returns one name per component: the variable's own if it is a single number.

    >>> component_names("block_0/mass", 1), component_names("block_0/size", 3)[2]
    (['block_0/mass'], 'block_0/size z')
    """
    if width == 1:
        return [variable]
    parts = _PARTS.get(split_step(variable)[0].rsplit("/", 1)[-1], _PLAIN_PARTS)
    if width > len(parts):
        parts = tuple(map(str, range(width)))
    return [f"{variable} {part}" for part in parts[:width]]


def split_step(variable: str) -> tuple[str, str]:
    """Returns a variable's own name and at which step it was set, if the column says so.

    >>> split_step("box/mass@20"), split_step("box/mass")
    (('box/mass', '20'), ('box/mass', ''))
    """
    name, _, step = variable.partition("@")
    return name, step


def metric_label(metric: str) -> str:
    """Returns a metric's name as an axis label or a table's head.

    >>> metric_label("last20_fractional_success"), metric_label("time_to_success")
    ('Fraction, last 20 steps', 'time to success')
    """
    return metric_facts(metric).get("label") or metric.replace("_", " ")


def is_share(metric: str) -> bool:
    """Returns whether a metric runs from 0 to 1.

    >>> is_share("success"), is_share("time_to_success")
    (True, False)
    """
    if metric == "success" or metric.endswith("fractional_success"):
        return True
    return metric_facts(metric).get("range") == (0.0, 1.0)


def less_is_better(metric: str, provenance: Mapping[str, Any]) -> bool:
    """Returns whether less of a metric is better, as its row says or a user's own `Metric`.

    >>> less_is_better("time_to_success", {}), less_is_better("effort", {})
    (True, False)
    """
    own = provenance.get("better", {}).get(metric)
    return (own or metric_facts(metric).get("better")) == "less"
