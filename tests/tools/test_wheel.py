"""The wheel in empty environments: the first hour of new users, one line without installing.

All of it is slow: environments are made and packages downloaded.
"""

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
import first_hour  # noqa: E402

_CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
_PROJECT = _CONFIG["project"]
_DECLARED = set(_PROJECT["optional-dependencies"]) - {"all", "dev"}


def test_doctor_knows_every_extra():
    assert set(EXTRAS) == _DECLARED


def test_a_walk_reads_three_pages_at_most_and_has_steps():
    for walk in first_hour.WALKS.values():
        assert len({page for page, _ in walk.pages}) <= 3
        assert first_hour.steps(walk)
    verbs = [code.split()[1] for _, code in first_hour.steps(first_hour.WALKS["publisher"])]
    assert verbs == ["train", "evaluate", "report", "explain", "export", "view"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return first_hour.build(tmp_path_factory.mktemp("dist"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", first_hour.WALKS)
def test_a_new_user_has_a_result_within_ten_minutes(name):
    subprocess.run([sys.executable, str(ROOT / "tools" / "first_hour.py"), name], check=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_tests_of_the_source_distribution_can_be_collected(wheel, tmp_path):
    (sdist,) = (wheel.parents[1] / "sdist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "tests"]
    subprocess.run(words, cwd=folder, env=first_hour.clean_environment(), check=True)


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
    env = first_hour.clean_environment() | caches
    subprocess.run([str(programs / "python"), "-m", "pip", "install", "-q", package], check=True)
    (extras,) = {*re.findall(r'"interverse\[(.*)\] @ file', (ROOT / "docs/install.md").read_text())}
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
