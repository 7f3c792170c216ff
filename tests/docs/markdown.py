"""Reads Markdown: its code blocks with their expected output, its links and its headings.

What runs is decided by a block's language. `python` runs, and a `text` block right after it is
what it must print (`...` stands for anything). A `python` or `yaml` block whose first line is a
file's name, as `# my_task.py`, is saved under that name instead. `bash` runs line by line. Other
languages are shown only. A block under the comment `<!-- slow -->` runs with the marker `slow`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

_FENCE = re.compile(r"^```(\w*)\s*$")
_LINK = re.compile(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} +(.*)$", flags=re.MULTILINE)
SLOW = "<!-- slow -->"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: its language, its text, the line it starts on, what it must print."""

    language: str
    text: str
    line: int
    slow: bool
    output: str | None = None


def blocks(page: Path) -> list[Block]:
    """Returns the blocks of a page, in order; an output is part of the block that prints it."""
    found: list[Block] = []
    last_end = -1
    for block, before, end in _fenced(page.read_text(encoding="utf-8").splitlines()):
        follows = bool(found) and found[-1].language == "python" and before == last_end
        if block.language == "text" and follows:
            code = found.pop()
            block = Block(
                language="python", text=code.text, line=code.line, slow=code.slow, output=block.text
            )
        found.append(block)
        last_end = end
    return found


def _fenced(lines: list[str]) -> Iterator[tuple[Block, int, int]]:
    """Yields each block, the number of the last written line before it, and of its last line."""
    at = written = -1
    while (at := at + 1) < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            written = at if lines[at].strip() else written
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i].rstrip() == "```")
        slow = written >= 0 and lines[written].strip() == SLOW
        text = "\n".join(lines[at + 1 : end]) + "\n"
        yield Block(language=fence[1], text=text, line=at + 2, slow=slow), written, end
        at = written = end


def links(page: Path) -> list[str]:
    """Returns the targets of all links and pictures of a page, code left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return [a or b for a, b in _LINK.findall(re.sub(r"`[^`\n]*`", "", text))]


def anchors(page: Path) -> set[str]:
    """Returns the anchors that a page's headings make, as GitHub spells them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in plain}


def expanded(text: str) -> Iterator[str]:
    """Yields every name that a pattern with braces stands for.

    >>> list(expanded("blocks/{a,b}-{3,4}-v1"))
    ['blocks/a-3-v1', 'blocks/a-4-v1', 'blocks/b-3-v1', 'blocks/b-4-v1']
    """
    brace = re.search(r"\{([^{}]*)\}", text)
    if brace is None:
        yield text
        return
    for part in brace[1].split(","):
        yield from expanded(text[: brace.start()] + part.strip() + text[brace.end() :])
