"""The documentation site builds without a warning, and its gallery shows every world."""

import importlib
import os
import re
import subprocess
import sys

import pytest

from interverse.cli import VERBS
from interverse.worlds import WORLDS
from tests.docs.test_pages import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import site_pages

_MADE = {"gallery.md", "cli_reference.md"} | {
    f"tutorials/{p.stem}.md" for p in ROOT.glob("docs/tutorials/*.ipynb")
}


@pytest.mark.slow
def test_the_site_builds_in_strict_mode(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    gallery = (tmp_path / "gallery.html").read_text()
    own = [n for n in WORLDS if WORLDS[n].target.startswith("interverse.") and n[:4] != "lab/"]
    assert all(f"gallery/{name.replace('/', '-')}.html" in gallery for name in own)
    assert len(list((tmp_path / "gallery").glob("*.png"))) >= len(own)
    assert len(list((tmp_path / "gallery").glob("*.svg"))) >= len(own)
    assert "mermaid" not in gallery, "the browser would fetch its script from elsewhere"
    for page in tmp_path.rglob("*.html"):
        for source in re.findall(r'<img [^>]*src="([^":]+)"', page.read_text()):
            assert page.name == "404.html" or (page.parent / source).exists(), (page, source)
    api = (tmp_path / "api.html").read_text()
    assert all(f"interverse.{name}" in api for name in ("envs.make.make", "scm.Variable"))


def test_every_page_of_the_navigation_is_written_or_made():
    pages = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert len(pages) > 30
    missing = {p for p in pages if not ((ROOT / "docs" / p).exists() or (ROOT / p).exists())}
    assert missing <= _MADE


def test_the_api_page_names_what_exists():
    text = (ROOT / "docs" / "api.md").read_text()
    entries = re.findall(r"^::: (\S+)\n +options: \{members: \[(.*)\]\}", text, re.M)
    assert len(entries) == text.count(":::") > 5
    for module, members in entries:
        assert set(members.split(", ")) <= vars(importlib.import_module(module)).keys(), module


def test_the_gallery_has_a_page_for_each_world_with_its_picture(monkeypatch):
    few = [name for name in WORLDS if name.startswith(("tutorial/", "chemistry/custom"))]
    monkeypatch.setattr(site_pages, "WORLDS", few)
    pages, pictures = site_pages.gallery()
    gallery = pages.pop("gallery.md")
    assert len(pages) == len(few) == gallery.count("-v1.md)")
    assert (
        "| `box/mass` | latent | 0.5 | kg | 0.3 to 0.6 | 0.6 to 0.9 |"
        in pages["gallery/tutorial-slider-v1.md"]
    )
    assert "| reward | minus its distance to the goal |" in pages["gallery/tutorial-slider-v1.md"]
    assert len(pictures) == 2 * len(few) > 2  # the world, and its graph
    for name in pictures:
        assert any(f"({name.removeprefix('gallery/')})" in page for page in pages.values())
    assert {bytes(data[:4]) for data in pictures.values()} == {b"\x89PNG", b"<svg"}


def test_scores_of_shipped_policies_are_those_of_their_cards_and_runs():
    pushing, pixels = map(site_pages._scored, ("pushing_2", "cartpole_balance_paper"))
    assert pushing == "`pushing_2`: fraction of the goal 1.00 in P0, 0.50 in P9"
    assert pixels.startswith("`cartpole_balance_paper`: return 996 in none, ")


def test_the_reference_of_flags_has_every_verb():
    text = site_pages.cli_reference()
    assert set(re.findall(r"^## interverse (\w+)", text, re.M)) == set(VERBS)
    assert text.count("usage: interverse") == len(VERBS)
