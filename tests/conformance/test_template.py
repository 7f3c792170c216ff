"""Copying the template and changing one line gives a registered world that obeys the laws."""

import inspect
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
import interverse.worlds.tutorial
from interverse.worlds import WORLDS
from tests.conformance import test_rebuilt as rebuilt
from tests.conformance import test_worlds as laws
from tests.conformance.cases import Case

CASE = Case("mine/slider-v1")
LAWS = [
    law
    for name, law in {**vars(laws), **vars(rebuilt)}.items()
    if name.startswith("test_") and "case" in inspect.signature(law).parameters
]
worlds = laws.worlds


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The template's folder under another name, a heavier box: one line."""
    folder = tmp_path_factory.mktemp("template")
    source = Path(interverse.worlds.tutorial.__file__).parent
    shutil.copytree(source, folder / "my_slider", ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "my_slider" / "variables.py"
    text = file.read_text()
    line = "default=np.array(0.5),"  # the mass
    assert text.count(line) == 1
    file.write_text(text.replace(line, "default=np.array(0.55),"))
    sys.path.insert(0, str(folder))
    if CASE.id not in WORLDS:
        iv.register(CASE.id, "my_slider.world:Slider")
    yield CASE
    sys.path.remove(str(folder))


def test_it_is_another_world(copied):
    mine, theirs = copied.make(), iv.make("tutorial/slider-v1")
    assert mine.variables["box/mass"].default != theirs.variables["box/mass"].default
    for env in (mine, theirs):
        env.reset(seed=0)
    push = np.ones(2, dtype=np.float32)
    assert not np.array_equal(mine.step(push)[0], theirs.step(push)[0])


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_it_obeys(copied, worlds, law):
    given = {"worlds": worlds, "case": copied, "every": True}
    law(**{name: given[name] for name in inspect.signature(law).parameters})
