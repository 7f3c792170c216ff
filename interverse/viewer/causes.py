"""Causes and effects of a variable, in words."""

from __future__ import annotations

from collections.abc import Iterable

from interverse.scm import CausalGraph, Variable
from interverse.scm.graph import NEXT, now

_MOST = 12


def causes_text(graph: CausalGraph, variable: Variable) -> str:
    """Returns Markdown: causes and effects of a variable in this step and in the next.

    >>> from interverse.scm import Box
    >>> import numpy as np
    >>> mass = Variable(name="mass", kind="latent", default=np.array(1.0), domain=Box(0, 2))
    >>> graph = CausalGraph.build(["mass", "speed"], [("mass", "speed'"), ("speed", "speed'")])
    >>> print(causes_text(graph, mass).splitlines()[-1])
    - **in the next step, it changes**: speed
    """
    name = variable.name
    parents = graph.parents(name) | (graph.parents(name + NEXT) if name + NEXT in graph else set())
    at_once = graph.effects_now(name)
    later = {now(node) for node in graph.children(name) if node.endswith(NEXT)}
    for effect in at_once:
        later |= {now(node) for node in graph.children(effect) if node.endswith(NEXT)}
    rows = (
        ("it follows from", {now(node) for node in parents} - {name}),
        ("a `do` on it changes at once", at_once),
        ("in the next step, it changes", later),
    )
    head = f"`{name}` ({variable.kind}{', ' + variable.unit if variable.unit else ''})"
    text = f"{head}: {variable.doc}" if variable.doc else head
    return "\n".join([text, "", *(f"- **{label}**: {_names(names)}" for label, names in rows)])


def _names(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return (", ".join(found[:_MOST]) or "nothing") + more
