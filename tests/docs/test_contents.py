"""The documentation names what exists, and nothing else: ids, verbs, links, pictures, scores."""

import pkgutil
import re
import runpy
import sys
from pathlib import Path

import pytest

from interverse.cli import VERBS
from interverse.worlds import WORLDS
from tests.docs.markdown import anchors, expanded, links
from tests.docs.test_pages import NAMES, ROOT
from tools import recognition_page

LARGEST_PICTURE = 450_000
_OWN = [n for n in WORLDS if WORLDS[n].target.startswith("interverse.") and n[:4] != "lab/"]


def test_the_readme_lists_every_world():
    text = (ROOT / "README.md").read_text()
    shown = {name for cell in re.findall(r"`([^`\n]*-v1)`", text) for name in expanded(cell)}
    assert shown == set(_OWN), "README.md, all ids: correct them"


def test_the_worlds_page_has_a_section_per_family():
    families = {name.partition("/")[0] for name in _OWN}
    assert families <= anchors(ROOT / "docs" / "worlds.md")


def test_the_command_line_page_names_every_verb():
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "cli.md").read_text(), flags=re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    assert set(VERBS) <= named, "docs/cli.md: a row per verb"


def test_the_glossary_names_what_exists():
    text = (ROOT / "docs" / "glossary.md").read_text()
    cells = [line.split("|")[3] for line in text.splitlines() if line.startswith("| **")]
    names = [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)]
    assert len(names) > 20
    for name in names:
        pkgutil.resolve_name(f"interverse.{name}")  # raises for one that is gone


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    page = ROOT / name
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{name}: {link}"


def test_every_docs_page_is_reached_from_the_index():
    folder = ROOT / "docs"
    reached = {Path(link.partition("#")[0]).name for link in links(folder / "index.md")}
    assert {page.name for page in folder.glob("*.md")} - {"index.md"} <= reached


def test_pictures_are_small_and_used():
    used = {Path(link).name for name in NAMES for link in links(ROOT / name)} | {"logo.svg"}
    used |= {f"tutorial_{path.stem}.png" for path in ROOT.glob("docs/tutorials/*.ipynb")}
    for picture in (ROOT / "docs" / "images").iterdir():
        assert picture.stat().st_size < LARGEST_PICTURE, picture.name
        assert picture.name in used, f"{picture.name} is shown nowhere"


@pytest.mark.slow
def test_the_pictures_can_be_drawn_again(tmp_path, monkeypatch, capsys):
    script = ROOT / "docs" / "make_pictures.py"
    monkeypatch.setattr(sys, "argv", [script.name, str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    drawn = {picture.name for picture in tmp_path.iterdir()}
    shown = {picture.name for picture in (ROOT / "docs" / "images").iterdir()}
    others = (
        "rooms_",
        "moving_",
        "world_models_",
        "tutorial_",
        "logo",
        "hero",
    )  # drawn by scripts of their own
    assert drawn == {name for name in shown if not name.startswith(others)}


def test_the_page_of_recognition_is_printed_from_the_rows():
    assert recognition_page.main(["--check"]) == 0, "run: python tools/recognition_page.py"


def test_a_row_that_says_otherwise_than_its_table_is_noticed(monkeypatch):
    read = recognition_page._read

    def changed(folder):
        rows = read(folder)
        for row in rows if folder.parent.name == "lite0-both" else ():
            if row["variant"] == "single.compositional.vanilla":
                row["selection"]["best_valid"]["test_ood"] -= 0.1
        return rows

    monkeypatch.setattr(recognition_page, "_read", changed)
    with pytest.raises(ValueError, match="lite0-both: the table says"):
        recognition_page.printed()
