"""The walk of a new user: the built wheel in an empty environment, and the commands of one page.

    python tools/wheel_walk.py [FOLDER]

Builds the wheel, installs it as `docs/runs.md` says, and runs the page's commands from an empty
folder. The training is killed after its first checkpoint and started again.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "runs.md"
_PATIENCE = 1800.0  # seconds of a command; the installation is the longest


def main() -> int:
    """Walks; returns 0, or raises at the first step that fails."""
    given = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(given[0] if given else scratch).resolve()
        home = place / "home"
        home.mkdir(parents=True, exist_ok=True)
        programs = install(build(place / "dist"), place / "venv", _extras())
        for command in commands():
            print(f"$ {command}", flush=True)
            walk(shlex.split(command), programs, home)
    print("The walk is done.")
    return 0


def commands() -> list[str]:
    """Returns the commands of the page, in order."""
    found = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return [line for block in found for line in block.splitlines() if line]


def _extras() -> str:
    """Returns the extras that the page installs."""
    found = re.search(r"pip install .*'\.\[(.*)\]'", PAGE.read_text(encoding="utf-8"))
    assert found is not None, f"{PAGE} does not say how to install"
    return found[1]


def build(folder: Path) -> Path:
    """Returns the wheel of this checkout, built by way of its source distribution."""
    sdist = _built(folder / "sdist", "sdist", ROOT)
    return _built(folder / "wheel", "wheel", sdist)


def _built(folder: Path, kind: str, source: Path) -> Path:
    """Builds with pip alone: a wheel, or the source distribution that hatchling makes."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "wheel":
        pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder)]
        _run([*pip, str(source)], ROOT)
        return max(folder.glob("*.whl"), key=os.path.getmtime)
    tools = folder / "tools"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(tools)]
    _run([*pip, "hatchling>=1.27", "hatch-vcs>=0.5"], ROOT)
    code = f"from hatchling.build import build_sdist; build_sdist({str(folder)!r})"
    _run([sys.executable, "-c", code], source, PYTHONPATH=str(tools))
    return max(folder.glob("*.tar.gz"), key=os.path.getmtime)


def install(wheel: Path, folder: Path, extras: str = "") -> Path:
    """Returns the programs' folder of an empty environment with the wheel and some extras."""
    venv.EnvBuilder(with_pip=True, clear=True).create(folder)
    programs = folder / "bin"
    what = f"interverse[{extras}] @ {wheel.as_uri()}" if extras else str(wheel)
    pip = [str(programs / "python"), "-m", "pip", "install", "-q"]
    _run([*pip, "-c", str(ROOT / "constraints.txt"), what], folder)
    return programs


def walk(words: list[str], programs: Path, home: Path) -> None:
    """Runs one command of the page as a user would, with what belongs to its verb."""
    whole = [str(programs / words[0]), *words[1:]]
    if words[1] == "train":
        kill_once(whole, home, Path(home / words[words.index("--out") + 1]))
    if words[1] == "view":
        look(whole, home)
    else:
        _run(whole, home, PYTHONPATH="")


def kill_once(words: list[str], home: Path, out: Path) -> None:
    """Starts a training and kills it after its first checkpoint."""
    process = subprocess.Popen(words, cwd=home, env=clean_environment(), stderr=subprocess.DEVNULL)
    try:
        _wait(lambda: (out / "checkpoint" / "state.json").exists(), process, "a checkpoint")
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert not (out / "policy").exists(), "the training was over before it could be killed"


def look(words: list[str], home: Path) -> None:
    """Opens the viewer and fetches its page."""
    process = subprocess.Popen(
        words,
        cwd=home,
        env=clean_environment() | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        told = process.stdout.readline()
        found = re.search(r"http://\S+", told)
        assert found is not None, f"no address in {told!r}"
        with urllib.request.urlopen(found[0], timeout=60) as page:
            assert b"<html" in page.read().lower()
        assert process.wait(_PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


def _wait(is_done: Callable[[], bool], process: subprocess.Popen[bytes], what: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not is_done():
        assert process.poll() is None, f"the command ended before there was {what}"
        assert time.monotonic() < end, f"no {what} within {_PATIENCE:.0f} seconds"
        time.sleep(0.05)


def _run(words: list[str], folder: Path, **more: str) -> None:
    subprocess.run(words, cwd=folder, env=clean_environment() | more, check=True, timeout=_PATIENCE)


def clean_environment() -> dict[str, str]:
    """Returns the environment without what would lead back to this checkout."""
    return {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "VIRTUAL_ENV")}


if __name__ == "__main__":
    sys.exit(main())
