"""The base install runs the README, the quickstart and every verb that needs no extra."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.markdown import blocks

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - {"all", "dev"})
# Each starts from what the lines before it left in the folder.
VERBS = """\
list
describe tutorial/slider-v1
doctor
new world tank
check tutorial/slider-v1
evaluate --policy random --task tutorial/slider-v1 --protocols P0 --episodes 2 --out scores
evaluate --policy random --task tutorial/slider-v1 --protocols P0 --episodes 2 --seed 1 --out other
verify scores
diff scores other
explain random --task tutorial/slider-v1 --factors box/mass --episodes 2 --out why
collect blocks/observed-3-v1 --episodes 2 --steps 5 --out play.h5
collect tutorial/slider-v1 --episodes 2 --steps 5 --twin box/mass=0.4 --out episodes
bench --only imports
--completion
""".splitlines()
# A line and the extra that it asks for; with it, the line works on what VERBS left.
NEED_AN_EXTRA = {
    "report scores --no-episodes": "report",
    "view tutorial/slider-v1 --port 8731 --seconds 1": "view",
    "evaluate pushing_2 --protocols P0 --episodes 1 --option max_steps=3": "torch",
    "export pushing_2 --out folder --no-video": "torch",
    "evaluate --task tutorial/slider-v1 --episodes 2 --option max_steps=2 --cluster local": "ray",
}

# Stands for an environment with these distributions alone, in every process that Python starts:
# modules of others are not found, as if they were not installed.
_SITE = """
import importlib.machinery, importlib.metadata, re, sys

def known(names):
    held, left = set(), list(names)
    while left:
        name = re.split(r"[^A-Za-z0-9._-]", left.pop())[0].lower().replace("_", "-")
        if name in held:
            continue
        held.add(name)
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        left += [need for need in needs if "extra ==" not in need]
    return held

HELD = known({names!r})
OWNERS = importlib.metadata.packages_distributions()
BLOCKED = {{
    module
    for module, owners in OWNERS.items()
    if module != "interverse" and HELD.isdisjoint(o.lower().replace("_", "-") for o in owners)
}}

class Installed(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            return None
        return super().find_spec(name, path, target)

place = sys.meta_path.index(importlib.machinery.PathFinder)
sys.meta_path[place] = Installed
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Returns the environment variables of processes that see the base dependencies alone."""
    site = tmp_path_factory.mktemp("site")
    text = _SITE.format(names=PROJECT["dependencies"])
    (site / "sitecustomize.py").write_text(text, encoding="utf-8")
    return os.environ | {"PYTHONPATH": f"{site}:{ROOT}", "COLUMNS": "100"}


def run(words, folder, environment):
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert not done.returncode, f"{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def python_of(page):
    """Returns the Python of a page as one script, blocks that take long or need more left out."""
    return "\n".join(b.text for b in blocks(ROOT / page) if b.language == "python" and not b.slow)


def test_extras_are_out_of_sight(bare, tmp_path):
    code = "import importlib.util as u; print([u.find_spec(m) for m in ('torch', 'matplotlib')])"
    assert run([sys.executable, "-c", code], tmp_path, bare) == "[None, None]\n"


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_page_runs(bare, tmp_path, page):
    run([sys.executable, "-c", python_of(page)], tmp_path, bare)


def test_every_verb_that_needs_no_extra_runs(bare, tmp_path):
    for line in VERBS:
        run([sys.executable, "-m", "interverse", *line.split()], tmp_path, bare)


@pytest.mark.parametrize("line", NEED_AN_EXTRA)
def test_a_verb_that_needs_an_extra_names_it(bare, tmp_path, line):
    words = [sys.executable, "-m", "interverse", *line.split()]
    done = subprocess.run(
        words, cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert re.fullmatch(
        rf"interverse {line.split()[0]}: \w+ is not installed\. "
        rf"Install it with: pip install 'interverse\[{NEED_AN_EXTRA[line]}\]'\.",
        done.stderr.splitlines()[-1],  # after the progress, where work has begun
    ), done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder, ROOT]
    run(build, folder, os.environ)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_the_wheel_works_in_an_empty_environment(wheel, tmp_path, extra):
    run([sys.executable, "-m", "venv", tmp_path / "venv"], tmp_path, os.environ)
    python = tmp_path / "venv/bin/python"
    named = f"interverse[{extra}] @ file://{wheel}" if extra else str(wheel)
    install = [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", named]
    run(install, tmp_path, os.environ)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for line in [*VERBS, *(line for line in NEED_AN_EXTRA if NEED_AN_EXTRA[line] == extra)]:
        run([python, "-m", "interverse", *line.split()], tmp_path, clean)
    run([python, "-c", python_of("README.md")], tmp_path, clean)
    clean |= {"CC": "no-such-compiler", "INTERVERSE_CACHE": str(tmp_path / "cache")}
    found = run([python, "-m", "interverse", "doctor", "--json"], tmp_path, clean)
    status = {row["name"]: row["status"] for row in json.loads(found)}
    assert status["exact contacts"] == "ok", "the wheel brings the friction solver"
    assert not extra or status[f"extra {extra}"] == "ok"
