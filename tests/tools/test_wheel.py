"""The wheel in empty environments: the walk of a new user, each extra, one line without installing.

All of it is slow: environments are made and packages downloaded.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
from pathlib import Path

import pytest
import yaml

from interverse.cli.doctor import EXTRAS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import wheel_walk  # noqa: E402

_CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
_PROJECT = _CONFIG["project"]
_DECLARED = set(_PROJECT["optional-dependencies"]) - {"all", "dev"}


def test_doctor_knows_every_extra():
    assert set(EXTRAS) == _DECLARED


def test_the_page_of_the_walk_has_every_step():
    verbs = [command.split()[1] for command in wheel_walk.commands()]
    assert verbs == ["train", "evaluate", "report", "explain", "export", "view"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return wheel_walk.build(tmp_path_factory.mktemp("dist"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_new_user_gets_from_training_to_a_published_policy(tmp_path):
    script = ROOT / "tools" / "wheel_walk.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("extra", ["", *sorted(EXTRAS)])
def test_the_wheel_works_with_each_extra_alone(extra, wheel, tmp_path):
    programs = wheel_walk.install(wheel, tmp_path / "venv", extra)
    told = subprocess.run(
        [str(programs / "interverse"), "doctor", "--json"],
        cwd=tmp_path,
        env=wheel_walk.clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    found = {row["name"]: row for row in json.loads(told.stdout)}
    assert found["interverse"]["status"] == "ok"
    if extra:
        assert found[f"extra {extra}"]["status"] == "ok", found[f"extra {extra}"]
    code = "import interverse as iv; iv.rollout(iv.make('tutorial/slider-v1'), 'random', seed=0)"
    python = [str(programs / "python"), "-c", code]
    subprocess.run(python, cwd=tmp_path, env=wheel_walk.clean_environment(), check=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_tests_of_the_source_distribution_can_be_collected(wheel, tmp_path):
    (sdist,) = (wheel.parents[1] / "sdist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "tests"]
    subprocess.run(words, cwd=folder, env=wheel_walk.clean_environment(), check=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("package", "words"),
    [("pipx", ["pipx", "run", "--spec"]), ("uv", ["uvx", "--python", sys.executable, "--from"])],
)
def test_one_line_tries_it_without_installing(package, words, wheel, tmp_path):
    venv.EnvBuilder(with_pip=True).create(tmp_path / "venv")
    programs = tmp_path / "venv" / "bin"
    caches = {"PIPX_HOME": str(tmp_path / "pipx"), "UV_CACHE_DIR": str(tmp_path / "uv")}
    env = wheel_walk.clean_environment() | caches
    subprocess.run([str(programs / "python"), "-m", "pip", "install", "-q", package], check=True)
    (extras,) = {*re.findall(r'"interverse\[(.*)\] @ file', (ROOT / "README.md").read_text())}
    spec = f"interverse[{extras}] @ {wheel.as_uri()}"
    words = [str(programs / words[0]), *words[1:], spec, "interverse", "demo"]
    subprocess.run(words, cwd=tmp_path, env=env, check=True)
    page = (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
    for family in ("trifinger", "blocks", "chemistry", "control", "rooms"):
        assert f"<li>{family}/" in page


def test_the_citation_and_the_image_are_of_this_package():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    fallback = _CONFIG["tool"]["hatch"]["version"]["fallback-version"]
    assert cited["version"] == fallback
    assert {paper["url"] for paper in cited["references"]} == {*_PROJECT["urls"].values()}
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f"ARG VERSION={fallback}" in image
    for names in re.findall(r"^COPY (.*) \S+$", image, re.M):
        assert all((ROOT / name).exists() for name in names.split())
    extras = re.findall(r'"\.\[(.*)\]"', image)[0].split(",")
    assert {*extras} <= _DECLARED
