"""Every Python block of the README, of CONTRIBUTING and of docs/ runs and prints what it says."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from interverse.cli import main
from tests.docs.markdown import Block, blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
SLOW = [name for name, page in zip(NAMES, PAGES, strict=True) if any(b.slow for b in blocks(page))]
_FILE = re.compile(
    r"# (\w+\.(?:py|yaml))\n"
)  # a block that starts so is saved under that name, not run
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", NAMES)
def test_the_page_runs(desk, name):
    run_page(name, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_page_runs_with_its_slow_blocks(desk, name):
    run_page(name, slow=True)


def run_page(name: str, *, slow: bool) -> None:
    """Runs a page's blocks in one namespace, as a reader who types them in would."""
    mpl.use("Agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(ROOT / name):
        if block.slow and not slow:
            continue
        file = _FILE.match(block.text)
        if block.language in ("python", "yaml") and file:
            Path(file[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            run_python(block, name, namespace)
        elif block.language == "bash":
            for command in block.text.replace("\\\n", " ").splitlines():
                run_command(command, f"{name}:{block.line}")


def run_python(block: Block, name: str, namespace: dict[str, Any]) -> None:
    """Runs a block; what it prints must be what the page shows."""
    code = compile("\n" * (block.line - 1) + block.text, str(ROOT / name), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    if block.output is not None:
        got = printed.getvalue()
        same = doctest.OutputChecker().check_output(block.output, got, _FLAGS)
        assert same, f"{name}:{block.line} shows\n{block.output}\nbut prints\n{got}"


def run_command(command: str, where: str) -> None:
    """Runs one line of a shell block; `interverse` in this process, for speed."""
    words = shlex.split(command, comments=True)
    if not words:
        return
    if words[0] == "interverse":
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = main(words[1:])
        assert status == 0, f"{where}: {command}\n{said.getvalue()}"
    else:
        subprocess.run(["bash", "-c", command], check=True, timeout=60)
