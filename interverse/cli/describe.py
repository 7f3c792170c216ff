"""`interverse describe ID`: variables with their ranges, the graph, the options."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from collections import Counter
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from interverse.envs import make
from interverse.scm import Box, CausalGraph, Integers, Space, Variable
from interverse.scm.graph import NEXT, as_graph_json

_MOST_CHILDREN = 4


@dataclass(frozen=True, kw_only=True)
class Describe:
    """Describes a world: its variables with spaces A and B, its causal graph, its options."""

    id: Annotated[str, tyro.conf.Positional]
    """A registered id, such as chemistry/chain-v1; `interverse list` shows all."""
    json: bool = False
    """Write one complete JSON document to standard output."""


def describe(config: Describe) -> None:
    """Writes a page about a world, or its JSON."""
    env = make(config.id)
    env.reset(seed=0)
    try:
        if config.json:
            json.dump(document(env), sys.stdout, indent=1)
            sys.stdout.write("\n")
        else:
            Console().print(page(env))
    finally:
        env.close()


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
    docs = field_docs(kind)
    rows = []
    for item in fields(kind):
        default = item.default if item.default is not MISSING else {}
        rows.append(
            {
                "name": item.name,
                "type": str(item.type),
                "default": default
                if isinstance(default, str | int | float | None)
                else str(default),
                "doc": docs.get(item.name, ""),
            }
        )
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


def page(env: Any) -> Group:
    """Returns the page a person reads."""
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
    variables = env.unwrapped.variables
    return Group(
        Panel(head, expand=False),
        _variable_table(variables),
        Text(""),
        _graph_text(env.unwrapped.graph),
        Text(""),
        _option_table(type(world).options_type),
    )


def _brief(space: Any) -> str:
    parts = getattr(space, "spaces", None)
    if parts is None:
        return str(space)
    return ", ".join(f"{key} {part.dtype}{list(part.shape)}" for key, part in parts.items())


def _variable_table(variables: dict[str, Variable]) -> Table:
    table = Table(title="Variables", title_justify="left", header_style="bold", box=None)
    for column in ("name", "kind", "unit", "default", "space A", "space B", "what it is"):
        table.add_column(column, overflow="fold")
    for v in variables.values():
        name = Text(v.name, style="dim" if v.read_only else "green")
        doc = v.doc + (" (read only)" if v.read_only else "")
        spaces = (_range(v.space_a), _range(v.space_b))
        table.add_row(name, v.kind, v.unit, _number(v.default), *spaces, doc)
    return table


def _range(space: Space | None) -> str:
    if space is None:
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
        return f"array{list(array.shape)}"
    if array.ndim == 0:
        return f"{array:g}" if array.dtype.kind == "f" else str(array)
    return "(" + ", ".join(f"{x:.4g}" for x in array.ravel()) + ")"


def _graph_text(graph: CausalGraph) -> Text:
    text = Text("Causal graph", style="italic")
    text.append(f"  {graph.number_of_nodes()} nodes, {graph.number_of_edges()} edges; ")
    text.append("name' is the next step\n", style="dim")
    for node in graph.nodes:
        children = sorted(graph.children(node))
        if children:
            text.append(f"  {node}", style="green" if not node.endswith(NEXT) else "cyan")
            text.append(f" -> {_some(children)}\n", style="default")
    return text


def _some(children: list[str]) -> str:
    if len(children) <= _MOST_CHILDREN:
        return ", ".join(children)
    groups = Counter(child.rpartition("/")[2] for child in children)
    if len(groups) <= _MOST_CHILDREN:
        return ", ".join(f"{count} x .../{name}" for name, count in groups.items())
    return ", ".join(children[:_MOST_CHILDREN]) + f" and {len(children) - _MOST_CHILDREN} more"


def _option_table(kind: type[Any]) -> Table:
    table = Table(title="Options of make", title_justify="left", header_style="bold", box=None)
    for column in ("name", "default", "what it does"):
        table.add_column(column, overflow="fold")
    for row in option_rows(kind):
        table.add_row(Text(row["name"], style="green"), str(row["default"]), row["doc"])
    return table
