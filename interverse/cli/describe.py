"""`interverse describe ID`, `check ID` and `list`: what worlds are, and whether one keeps the laws.

By default `describe` shows what has a training space A or a test space B, by object, in a screen.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable
from contextlib import closing
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Annotated, Any, get_type_hints

import numpy as np
import tyro
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from interverse.cli.flags import AsJson, OptionWords, flag_names, parse_pairs, sheet, tell
from interverse.core.errors import InvalidValueError
from interverse.envs import make
from interverse.scm import Box, CausalGraph, Integers, Space, Variable
from interverse.scm.graph import NEXT, as_graph_json
from interverse.scm.variable import Bounds
from interverse.worlds import WORLDS

_NUMBER = re.compile(r"\d+")
_MOST_PAIRS = 10
_SPACES = {"UnitQuaternion": "any rotation", "Choice": "a set"}
_MOST_ENDS = 3  # intervals that a cell tells apart
_WIDE = 120  # columns of a terminal that a table of variables needs


@dataclass(frozen=True, kw_only=True)
class Describe:
    """Describes a world: its variables with spaces A and B, its causal graph, its options."""

    id: Annotated[str, tyro.conf.Positional]
    """A registered id, such as chemistry/chain-v1; `interverse list` shows all."""
    all: bool = False
    """Show every variable with what it is, and the options of make."""
    edges: bool = False
    """Show the edges of the causal graph."""
    json: AsJson = False
    mermaid: bool = False
    """Write the causal graph as Mermaid text, which code hosts draw."""


def describe(config: Describe) -> None:
    """Writes a page about a world, or its JSON."""
    with closing(make(config.id)) as env:
        env.reset(seed=0)
        shown: Any = page(env, whole=config.all, edges=config.edges)
        if config.mermaid:
            shown = env.graph.to_mermaid().rstrip("\n")
        tell(config, document(env), shown)


def document(env: Any) -> dict[str, Any]:
    """Returns everything that is declared about a world, JSON-ready."""
    world = env.unwrapped.world
    return {
        "id": env.unwrapped.driver.id,
        "doc": inspect.getdoc(type(world)),
        "observation_space": str(world.observation_space),
        "action_space": str(world.action_space),
        "layout": {key: [part.start, part.stop] for key, part in world.layout.items()},
        "max_steps": world.max_steps,
        "reward_range": [float(bound) for bound in world.reward_range],
        "variables": [v.to_json() for v in env.unwrapped.variables.values()],
        "graph": as_graph_json(env.unwrapped.graph),
        "options": option_rows(type(world).options_type),
    }


def option_rows(kind: type[Any]) -> list[dict[str, Any]]:
    """Returns name, type, default and documentation of each option."""
    docs, hints = field_docs(kind), get_type_hints(kind)
    rows = []
    for item in fields(kind):
        default = item.default if item.default is not MISSING else {}
        told = default if isinstance(default, str | int | float | None) else str(default)
        hint, doc = inspect.formatannotation(hints[item.name]), docs.get(item.name, "")
        rows.append({"name": item.name, "type": hint, "default": told, "doc": doc})
    return rows


def field_docs(kind: type[Any]) -> dict[str, str]:
    """Returns the documentation written under each field of a dataclass and its parents."""
    out: dict[str, str] = {}
    for parent in reversed(kind.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(parent))).body[0]
        name = None
        for node in getattr(body, "body", []):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name:
                out[name] = " ".join(str(node.value.value).split())
                name = None
    return out


def page(env: Any, *, whole: bool = False, edges: bool = False) -> Group:
    """Returns the page a person reads: `whole` with what has no space, docs, and options."""
    world = env.unwrapped.world
    head = Text.assemble(
        (env.unwrapped.driver.id, "bold cyan"), "\n", inspect.getdoc(type(world)) or "", "\n\n"
    )
    for label, value in (
        ("observes", _brief(world.observation_space)),
        ("acts", _brief(world.action_space)),
        ("lasts", f"{world.max_steps} steps"),
        ("rewards", "{} to {}".format(*(f"{bound:g}" for bound in world.reward_range))),
    ):
        head.append(f"{label:>9}  ", style="bold")
        head.append(f"{value}\n")
    head.right_crop()  # the last line's end
    variables, graph = env.unwrapped.variables, env.unwrapped.graph
    parts: list[Any] = [Panel(head, expand=False)]
    parts += [_VariableTable(variables.values()) if whole else _space_table(variables.values())]
    parts += [Text(""), _graph_text(graph)] if edges else []
    if whole:
        options = option_rows(type(world).options_type)
        rows = [(Text(row["name"], style="green"), row["default"], row["doc"]) for row in options]
        header = ("name", "default", "what it does")
        parts += [Text(""), sheet(header, rows, {"name"}, title="Options of make")]
    more = "" if edges else f"causal graph of {graph.number_of_edges()} edges: --edges"
    rest = sum(v.space_a is None and v.space_b is None for v in variables.values())
    if not whole:
        others = f"{rest} more variables and the " if rest else ""
        more = f"{others}options of make: --all{'; ' * bool(more)}{more}"
    return Group(*parts, Text(f"\n{more}", style="dim"))


def _brief(space: Any) -> str:
    parts = getattr(space, "spaces", None)
    if parts is None:
        ends = {*np.unique(space.low), *np.unique(space.high)} if hasattr(space, "low") else set()
        bounded = len(ends) == 2 and np.isfinite(list(ends)).all()
        within = f" in [{min(ends):g}, {max(ends):g}]" if bounded else ""
        return f"{space.dtype}{list(space.shape)}{within}" if space.shape else str(space)
    return ", ".join(f"{key} {part.dtype}{list(part.shape)}" for key, part in parts.items())


def _space_table(variables: Iterable[Variable]) -> Table:
    """Returns what has a space A or B, a line each, below the object that it belongs to."""
    objects: dict[str, dict[tuple[str, ...], list[Variable]]] = {}
    for v in variables:
        if v.space_a is None and v.space_b is None:
            continue
        first, _, rest = v.name.partition("/")
        last = rest.rpartition("/")[2] if rest else _NUMBER.sub("#", first)
        unit = "" if v.unit == "1" else v.unit
        alike = objects.setdefault(_NUMBER.sub("#", first) if rest else "", {})
        alike.setdefault((last, unit, _span(v.space_a), _span(v.space_b)), []).append(v)
    lines: list[tuple[Any, ...]] = []
    for first, rows in objects.items():
        if first:
            names = [v.name.partition("/")[0] for row in rows.values() for v in row]
            lines.append((Text(_joint_name(sorted(set(names))), style="bold"),))
        for (last, unit, a, b), group in rows.items():
            # finger_{0..2} has upper, middle and lower links: one line, as a pattern has it
            links = {v.name.partition("/")[2].rpartition("/")[0] for v in group}
            last = last if first else _joint_name([v.name for v in group])
            last = f"{links.pop() if len(links) == 1 else '*'}/{last}".lstrip("/")
            shown = f"{_default(group)} {unit}".strip()
            if "\n" in a:  # a line for each component, so for its default too
                units = unit.split(", ")
                values = enumerate(np.ravel(np.asarray(group[0].default)))
                shown = "\n".join(f"{x:.4g} {units[place % len(units)]}" for place, x in values)
            lines.append((Text("  " * bool(first) + last, style="green"), shown, a, b))
    header = ("variable", "default", "A: training", "B: test")
    return sheet(header, lines, {*header} - {"default"}, pad_edge=False, padding=(0, 2, 0, 0))


def _default(group: list[Variable]) -> str:
    """Returns the default of variables that are alike."""
    defaults = {_number(v.default) for v in group}
    return defaults.pop() if len(defaults) == 1 else "varies"


def _span(space: Bounds | None) -> str:
    """Returns a space in one short cell: components that are alike are told once."""
    if not isinstance(space, Box):
        return _SPACES.get(type(space).__name__, _range(space))
    low, high = np.asarray(space.low), np.asarray(space.high)
    left, right = "(" if space.open_low else "[", ")" if space.open_high else "]"
    if low.ndim and (np.ptp(low) or np.ptp(high)):
        if low.size > _MOST_ENDS:
            return f"{low.size} intervals"
        ends = zip(low.flat, high.flat, strict=True)
        return "\n".join(
            f"{a:.3g}" if a == b else f"{left}{a:.3g}, {b:.3g}{right}" for a, b in ends
        )
    times = f" x{low.size}" if low.size > 1 else ""
    return f"{left}{low.flat[0]:.4g}, {high.flat[0]:.4g}{right}{times}"


class _VariableTable:
    """The variables as a table, or as a list where a table would break their names."""

    def __init__(self, variables: Iterable[Variable]) -> None:
        groups: dict[tuple[str, ...], list[Variable]] = {}  # alike but for numbers of their names
        for v in variables:
            bounds, doc = (_range(v.space_a), _range(v.space_b)), _NUMBER.sub("#", v.doc)
            key = (_NUMBER.sub("#", v.name), v.kind, v.unit, *bounds, doc, v.inert)
            groups.setdefault(key, []).append(v)
        self._rows = []
        for (_, kind, unit, a, b, *_), group in groups.items():
            v, style = group[0], "dim" if group[0].read_only else "green"
            doc = v.doc + " (read only)" * v.read_only + (f" (inert: {v.inert})" if v.inert else "")
            name = Text(_joint_name([g.name for g in group]), style=style)
            self._rows.append((name, kind, unit, _default(group), a, b, doc))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= _WIDE:
            header = ("name", "kind", "unit", "default", "space A", "space B", "what it is")
            yield sheet(header, self._rows, {"name"}, title="Variables")
            return
        yield Text("Variables", style="italic")
        for name, kind, unit, default, a, b, doc in self._rows:
            spaces = [f"{mark} {text}" for mark, text in (("A", a), ("B", b)) if text]
            facts = [kind, f"default {default} {unit}".strip(), *spaces]
            yield Text(" ").append_text(name)
            yield Padding(Text("   ".join(facts)), (0, 0, 0, 4))
            yield Padding(Text(doc, style="dim"), (0, 0, 0, 4))


def _joint_name(names: list[str]) -> str:
    """Returns `object_{0..4}/color` for a row of names that differ in numbers."""
    numbers = [_NUMBER.findall(name) for name in names]
    columns = [sorted({int(n) for n in column}) for column in zip(*numbers, strict=True)]
    spans = iter(f"{{{c[0]}..{c[-1]}}}" if len(c) > 1 else str(c[0]) for c in columns)
    return _NUMBER.sub(lambda _: next(spans), names[0])


def _range(space: Bounds | None) -> str:
    if not isinstance(space, Space):
        return ""
    if isinstance(space, Box):
        left, right = "(" if space.open_low else "[", ")" if space.open_high else "]"
        return f"{left}{_number(space.low)}, {_number(space.high)}{right}"
    if isinstance(space, Integers):
        return f"{_number(space.low)} .. {_number(space.high)}"
    return type(space).__name__


def _number(value: Any) -> str:
    array = np.asarray(value)
    if array.ndim and array.size and np.all(array == array.flat[0]):
        return f"{array.flat[0]:g}" + (f" x{array.size}" if array.size > 1 else "")
    if array.size > 4:
        return f"{array.size} numbers"
    if array.ndim == 0:
        return f"{array:g}" if array.dtype.kind == "f" else str(array)
    return "(" + ", ".join(f"{x:.4g}" for x in array.ravel()) + ")"


def _graph_text(graph: CausalGraph) -> Text:
    text = Text("Causal graph", style="italic")
    text.append(f"  {graph.number_of_nodes()} nodes, {graph.number_of_edges()} edges; ")
    text.append("name' is the next step, i the same number on both sides\n", style="dim")
    idle, patterns = graph.inert, dict[tuple[str, str, str], list[tuple[str, str]]]()
    for edge in graph.edges:
        numbers = [_NUMBER.findall(end) for end in edge]
        same = bool(numbers[0]) and numbers[0] == numbers[1]
        marks = ("{i}", "{i}") if same else ("{j}", "{k}")
        parent, child = map(_NUMBER.sub, marks, edge)
        key = (parent, child, idle.get(edge, ""))
        patterns.setdefault(key, []).append(edge)
    for (parent, child, inert), edges in patterns.items():
        text.append(f"  {parent}", style="cyan" if parent.endswith(NEXT) else "green")
        text.append(f" -> {child}", style="default")
        text.append(_which(parent, child, edges), style="dim")
        text.append(f"   (inert: {inert})\n" if inert else "\n", style="yellow")
    return text


def _which(parent: str, child: str, edges: list[tuple[str, str]]) -> str:
    """Returns which numbers an edge pattern stands for, where a reader cannot tell."""
    if "{j}" not in parent + child or (len(edges) == 1 and "{k}" not in child):
        return ""
    pairs = [
        f"{'_'.join(_NUMBER.findall(a))}>{'_'.join(_NUMBER.findall(b))}".strip(">")
        for a, b in edges
    ]
    shown = ", ".join(pairs[:_MOST_PAIRS])
    more = len(pairs) - _MOST_PAIRS
    return f"   {shown}" + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Lists every registered world."""

    json: AsJson = False


def listing(config: Listing) -> None:
    """Writes the ids of all worlds, by family."""
    WORLDS.load_entry_points()
    ids = sorted(WORLDS)
    families: dict[str, list[str]] = {}
    for name in ids:
        family, _, rest = name.partition("/")
        families.setdefault(family, []).append(rest.removesuffix("-v1"))
    rows = [(Text(f"{name}/", style="bold"), "  ".join(found)) for name, found in families.items()]
    look = {"pad_edge": False, "show_header": False, "padding": (0, 2, 0, 0)}
    first = next(name for name in ids if name.endswith("-v1"))
    told = f"\n{len(ids)} worlds. An id is family/name-v1: interverse describe {first}"
    tell(config, ids, sheet(("family", "ids"), rows, {"family"}, **look), Text(told, style="dim"))


@dataclass(frozen=True, kw_only=True)
class Check:
    """Checks the laws on a world: repeatable, batch = single, do, edited = rebuilt, and so on."""

    id: Annotated[str, tyro.conf.Positional]
    """A registered id, or MODULE:ID for a world of your own, such as my_lab:lab/tank-v1."""
    seed: int = 0
    """The seed of the episodes and of the values tried."""
    option: OptionWords = ()
    witnesses: bool = False
    """Also list every edge of the causal graph with the intervention that showed it."""
    json: AsJson = False


def check(config: Check) -> list[Any]:
    """Checks every law and writes the table; raises where one does not hold."""
    from interverse.rollouts.laws import check_laws  # loads what plays

    rows = check_laws(config.id, seed=config.seed, **parse_pairs(config.option, flag_names(config)))
    marks = {True: Text("ok", style="green"), False: Text("!!", style="red")}
    shown = [sheet(("", "law", "found"), [(marks[r.passed], r.law, r.detail) for r in rows])]
    if config.witnesses:
        found = sorted(item for row in rows for item in row.witnesses.items())
        edges = [(Text(edge, style="green"), how) for edge, how in found]
        shown.append(sheet(("edge", "seen by"), edges, title="Witnesses"))
    tell(config, [asdict(row) for row in rows], *shown)
    broken = [row.law for row in rows if not row.passed]
    if broken:
        raise InvalidValueError(
            f"{config.id} breaks {len(broken)} of {len(rows)} laws: {'; '.join(broken)}",
            fix="See CONTRIBUTING.md for what each law asks",
        )
    return rows
