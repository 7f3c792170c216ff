"""The set-up script, what it says and what it skips; the pins it installs from."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest


@pytest.fixture
def checkout(tmp_path: Path, repository: Path) -> Path:
    """Returns a bare copy of what the script reads, with no .venv."""
    (tmp_path / "tools").mkdir()
    for name in ("tools/setup.sh", "pyproject.toml", "constraints.txt"):
        shutil.copy(repository / name, tmp_path / name)
    return tmp_path


def _setup(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "tools/setup.sh"],
        cwd=checkout,
        env={**os.environ, "SKIP_APT": "1", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _stamp(checkout: Path) -> None:
    """Leaves the mark of a finished installation, computed as the script computes it."""
    script = (checkout / "tools/setup.sh").read_text(encoding="utf-8")
    lines = [line for line in script.splitlines() if line.startswith(("EXTRAS=", "STAMP="))]
    command = "\n".join([*lines, 'mkdir -p .venv && touch "$STAMP"'])
    subprocess.run(["bash", "-c", command], cwd=checkout, check=True)


def test_no_python_is_one_clear_line(checkout: Path) -> None:
    done = _setup(checkout, PYTHON="no-such-python")
    assert done.returncode != 0
    assert "no Python 3.11 or newer among: no-such-python" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (checkout / ".venv").exists()


def test_nothing_is_done_twice(checkout: Path) -> None:
    _stamp(checkout)
    done = _setup(checkout, PYTHON="no-such-python")
    assert done.returncode == 0, done.stderr
    assert "installing" not in done.stderr


def test_changed_pins_are_noticed(checkout: Path) -> None:
    _stamp(checkout)
    with (checkout / "constraints.txt").open("a", encoding="utf-8") as pins:
        pins.write("six==1.17.0\n")
    assert "no Python 3.11" in _setup(checkout, PYTHON="no-such-python").stderr


def test_missing_system_packages_are_named_and_do_not_stop_it(checkout: Path) -> None:
    tools = checkout / "bin"
    tools.mkdir()
    for name in ("bash", "cat", "cksum", "dirname", "grep", "id", "tr", "uname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    _stamp(checkout)
    done = _setup(checkout, PATH=str(tools))
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert "chromium ffmpeg" in line
    assert "apt-get install" in line


def test_every_dependency_has_an_exact_pin(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = {_name(line) for group in [project["dependencies"], *extras] for line in group}
    text = (repository / "constraints.txt").read_text(encoding="utf-8")
    pins = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    assert "torch==2.13.0" in pins
    assert wanted - {"interverse"} - {_name(pin) for pin in pins} == set()


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")
