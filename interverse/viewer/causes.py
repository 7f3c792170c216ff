"""Causes and effects of a variable, in words."""

from __future__ import annotations

from collections.abc import Iterable

from interverse.scm import CausalGraph, Variable
from interverse.viewer.graph import causes_of, effects_next

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
    rows = (
        ("it follows from", causes_of(graph, name)),
        ("a `do` on it changes at once", graph.effects_now(name)),
        ("in the next step, it changes", effects_next(graph, name)),
    )
    head = f"`{name}` ({variable.kind}{', ' + variable.unit if variable.unit else ''})"
    text = f"{head}: {variable.doc}" if variable.doc else head
    return "\n".join([text, "", *(f"- **{label}**: {_names(names)}" for label, names in rows)])


def _names(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return (", ".join(found[:_MOST]) or "nothing") + more
