"""The pages for the originals' users: every word of CausalWorld's callers, commands, names."""

from __future__ import annotations

import pkgutil
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
from interverse.cli import VERBS, _load
from interverse.core.errors import FORMER
from interverse.worlds.trifinger import grip_locations

PAGES = {
    name: (Path(__file__).parents[2] / "docs" / f"{name}.md").read_text()
    for name in ("causalworld", "causalmbrl", "remastered", "causaltriplet", "dmcgb")
}
PAGE = PAGES["causalworld"]
# The classes, functions and arguments of CausalWorld 1.2 that its own callers name.
WORDS = (Path(__file__).parent / "data" / "causalworld_words.txt").read_text().split()
INSIDE = {"append", "end_sim", "initialize", "contains_err", "model", "task_name"}  # of their parts
INSIDE |= {"action_lower_bound", "action_upper_bound", "env_wrappers_args"}


def test_the_page_names_every_word_that_callers_use():
    assert {w for w in WORDS if not re.search(rf"\b{w}\b", PAGE)} <= INSIDE
    assert len(WORDS) - len(INSIDE) >= 120


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_a_page_have_flags_that_exist_and_its_names_resolve(name):
    verbs = "|".join(VERBS)
    commands = re.findall(
        rf"(?m)(?:`(?:interverse )?|^interverse )((?:{verbs}) [^`\n(]+)(?:`|$)", PAGES[name]
    )
    assert commands
    for command in commands:
        verb, *words = shlex.split(command)
        _load(verb, words)  # a wrong flag or value raises
    for dotted in re.findall(r"\binterverse(?:\.\w+)+", PAGES[name]):
        pkgutil.resolve_name(dotted)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"variables_space": "space_a"}, "space='A', 'B' or 'A_B'"),
        ({"tool_block_mass": 0.05}, "defaults={'block_0/mass': ...}"),
        ({"space": "space_b"}, "is B here"),
        ({"camera_indicies": [0]}, "is cameras here"),
    ],
)
def test_old_arguments_raise_with_the_new_ones(asked, told):
    with pytest.raises(iv.errors.UnknownNameError, match=re.escape(told)):
        iv.make("trifinger/pushing-v1", **asked)


@pytest.mark.parametrize("name", ["tool_block", "tool_block/mass", "floor_friction", "blocks_mass"])
def test_old_variables_raise_with_the_new_ones(name):
    env = iv.make("trifinger/pushing-v1")
    env.reset(seed=0)
    with pytest.raises(iv.InterventionError, match=re.escape(FORMER[name.partition("/")[0]])):
        env.unwrapped.do({name: 0.05})
    env.close()


def test_a_grip_is_at_the_face_turned_to_y_and_across():
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    turn = (0.0, 0.0, np.sin(np.pi / 12), np.cos(np.pi / 12))  # by 30 degrees
    near, far = grip_locations((0.1, 0.0, 0.03), turn, (0.08, 0.06, 0.05))
    np.testing.assert_allclose(
        near - (0.1, 0.0, 0.03), 0.03175 * np.array((-s, c, 0.0)), atol=1e-12
    )
    np.testing.assert_allclose(near + far, (0.2, 0.0, 0.06), atol=1e-12)
