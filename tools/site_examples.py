"""A Griffe extension for the site: doctests in docstrings become code blocks."""

from __future__ import annotations

from typing import Any

import griffe


class DoctestBlocks(griffe.Extension):
    """Wraps every run of doctest lines of a docstring in a fenced block."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrites one object's docstring."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Returns the text with its doctests fenced; an example ends at an empty line."""
    out: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and line.lstrip().startswith(">>>"):
            inside = True
            out.append("```pycon")
        elif inside and not line.strip():
            inside = False
            out.append("```")
        out.append(line)
    return "\n".join([*out, "```"] if inside else out)
