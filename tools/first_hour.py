"""The first hour of five users: the wheel in an empty environment, and what their pages say.

    python tools/first_hour.py [NAME ...]

Builds the wheel by way of the source distribution. For each walk it makes an empty environment
with the wheel and at most the walk's extras, and runs the blocks of the pages' sections, in order,
in an empty folder. A walk ends with a result, within ten minutes after the installation. The
training of `publisher` is killed after its first checkpoint and started again.
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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 1800.0  # seconds of a command; the installation is the longest
_LONGEST = 600.0  # seconds of a walk, the installation left out


@dataclass(frozen=True)
class Walk:
    """What one user installs, reads and ends with.

    Attributes:
        extras: of the installation, separated by commas.
        pages: (page, heading) of the sections whose blocks are run; no heading for a whole page.
        result: a file that is there at the end.
    """

    extras: str
    pages: tuple[tuple[str, str], ...]
    result: str


WALKS = {
    "reader": Walk("", (("README.md", "Sixty seconds"), ("docs/quickstart.md", "")), "episode.h5"),
    "student": Walk(
        "torch",
        (("docs/quickstart.md", "Train"),),
        "runs/reaching/policy/policy.safetensors",
    ),
    "roboticist": Walk(
        "torch",
        (("docs/quickstart.md", "See what breaks a robot"),),
        "runs/why/attribution.json",
    ),
    "modeller": Walk(
        "torch", (("docs/data_and_models.md", "Fit a world model"),), "runs/fit/index.html"
    ),
    "recogniser": Walk(
        "rooms",
        (
            ("docs/pairs.md", "Collect"),
            ("docs/recognition.md", ""),
            ("docs/recognition.md", "Train one model"),
        ),
        "runs/icm/result.json",
    ),
    "publisher": Walk(
        "rl,report,view",
        tuple(
            ("docs/runs.md", part) for part in ("Train", "Evaluate", "Explain", "Export", "View")
        ),
        "runs/slider/export/README.md",
    ),
}


def main() -> int:
    """Walks; returns 0, or raises at the first step that fails."""
    chosen = sys.argv[1:] or list(WALKS)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        wheel = build(place / "dist")
        for name in chosen:
            home = place / name / "home"
            home.mkdir(parents=True)
            programs = install(wheel, place / name / "venv", WALKS[name].extras)
            start = time.monotonic()
            for language, text in steps(WALKS[name]):
                print(f"[{name}] {text.splitlines()[0]}", flush=True)
                walk(language, text, programs, home)
            took = time.monotonic() - start
            assert (home / WALKS[name].result).exists(), f"{name}: no {WALKS[name].result}"
            assert took < _LONGEST, f"{name} took {took:.0f} s"
            print(f"[{name}] {took:.0f} s, {WALKS[name].result}", flush=True)
    return 0


def steps(chosen: Walk) -> list[tuple[str, str]]:
    """Returns what a walk runs: (python, a script of all blocks of a page) and (bash, a command).

    Blocks that are slow or only shown are left out of a whole page; a named section is run as it
    stands, but for installing.
    """
    found: list[tuple[str, str]] = []
    for page, heading in chosen.pages:
        text = (ROOT / page).read_text(encoding="utf-8")
        if heading:
            (text,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        pattern = r"(<!-- slow -->\n\n)?^```(python|bash|shell)\n(.*?)^```"
        blocks = re.findall(pattern, text, re.M | re.S)
        whole = not heading
        runs = [(k, code) for slow, k, code in blocks if not (whole and (slow or k == "shell"))]
        lines = [line for k, code in runs if k != "python" for line in code.splitlines()]
        commands = [("bash", line) for line in lines if line.startswith("interverse ")]
        script = "\n".join(code for k, code in runs if k == "python")
        if script and (whole or not commands):
            found.append(("python", script))
        found += commands
    return found


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


def walk(language: str, text: str, programs: Path, home: Path) -> None:
    """Runs one step as a user would, with what belongs to its verb."""
    if language == "python":
        _run([str(programs / "python"), "-c", text], home)
        return
    words = shlex.split(text)
    whole = [str(programs / words[0]), *words[1:]]
    if words[1] == "train" and "--checkpoint-every" in words:
        kill_once(whole, home, Path(home / words[words.index("--out") + 1]))
    if words[1] == "view":
        look(whole, home)
    else:
        _run(whole, home)


def kill_once(words: list[str], home: Path, out: Path) -> None:
    """Starts a training and kills it after its first checkpoint."""
    process = subprocess.Popen(words, cwd=home, env=clean_environment(), stderr=subprocess.DEVNULL)
    try:
        _wait(lambda: any(out.glob("checkpoint/generation-*.json")), process, "a checkpoint")
        assert process.poll() is None, "the training was over before it could be killed"
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()


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
