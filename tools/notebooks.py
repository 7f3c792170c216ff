"""Tutorial notebooks: run their cells, keep what these print and draw, show them as pages.

python tools/notebooks.py docs/tutorials/*.ipynb     # runs each in a scratch folder
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any


def run(path: Path) -> list[str]:
    """Runs a notebook's code cells from top to bottom in the present folder; returns their prints.

    Standard error is left out: progress bars are no output of a tutorial.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    for number, cell in enumerate(_cells(path)):
        if cell["cell_type"] == "code":
            sink = io.StringIO()
            with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(io.StringIO()):
                exec(compile(_source(cell), f"{path.name}, cell {number}", "exec"), namespace)
            printed.append(sink.getvalue())
    return printed


def refresh(path: Path) -> None:
    """Runs a notebook in a scratch folder and stores what its cells print."""
    whole, home = json.loads(path.read_text(encoding="utf-8")), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            printed = run(home / path)
            for picture in Path().glob("tutorial_*.png"):
                shutil.copy(picture, home / path.parents[1] / "images")
        finally:
            os.chdir(home)
    code = [cell for cell in whole["cells"] if cell["cell_type"] == "code"]
    for count, (cell, text) in enumerate(zip(code, printed, strict=True), 1):
        lines = text.splitlines(keepends=True)
        cell["execution_count"] = count
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": lines}] * bool(lines)
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def markdown(path: Path) -> str:
    """Returns a notebook as a page: its text, its code, and what the code printed."""
    parts = []
    for cell in _cells(path):
        if cell["cell_type"] == "markdown":
            parts.append(_source(cell))
            continue
        parts.append(f"```python\n{_source(cell)}\n```")
        parts += [f"![{name}](../images/{name})" for name in pictures(_source(cell))]
        shown = "".join(text for out in cell["outputs"] for text in out.get("text", []))
        if shown.strip():
            parts.append(f"```text\n{shown.rstrip()}\n```")
    parts.append(f"[Download this notebook]({path.name})")
    return "\n\n".join(parts) + "\n"


def pictures(source: str) -> list[str]:
    """Returns the pictures that a cell saves for its page: files named tutorial_NAME.png."""
    return re.findall(r"savefig\(\"(tutorial_\w+\.png)\"", source)


def _cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def _source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name))
