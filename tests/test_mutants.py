"""Mutants: small wrong changes, each of which a named fast test must notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import interverse

PACKAGE = Path(interverse.__file__).parent
ROOT = PACKAGE.parent


@dataclass(frozen=True)
class Mutant:
    """One change of one line, and the test that must fail under it."""

    name: str
    file: str
    line: str
    instead: str
    test: str


MUTANTS = [
    Mutant(
        "a shifted bit in the uniform numbers",
        "core/rng.py",
        "words[:, :, 1::2] >> 6",
        "words[:, :, 1::2] >> 7",
        "tests/core/test_rng.py::test_uniform_numbers_stay_what_they_are",
    ),
    Mutant(
        "a drag law kept after a change of mass",
        "worlds/trifinger/physics.py",
        'store.cached("drag", _MASSES,',
        'store.cached("drag", (),',
        "tests/conformance/test_rebuilt.py::test_a_do_in_mid_episode_is_the_world_rebuilt[trifinger/pushing-v1-False]",
    ),
    Mutant(
        "values not held against their causes",
        "envs/interventions.py",
        "for n in (name, *causes)]",
        "for n in (name,)]",
        "tests/envs/test_driver.py::test_a_value_is_handed_on_where_its_cause_changes",
    ),
    Mutant(
        "one policy seed for all episodes",
        "rollouts/policy.py",
        "seed + (self._numbers << 32)",
        "seed + (self._numbers * 0)",
        "tests/protocols/test_unit.py::test_every_episode_gives_its_policy_a_seed_of_its_own",
    ),
    Mutant(
        "a policy that acts on what was seen before an intervention",
        "protocols/unit.py",
        "                observation = world.observe()\n",
        "",
        "tests/protocols/test_unit.py::test_a_policy_sees_what_an_intervention_within_the_episode_changed",
    ),
    Mutant(
        "interventions in episodes that have ended",
        "protocols/unit.py",
        "everyone[~scorer.done]",
        "everyone",
        "tests/protocols/test_unit.py::test_one_diverged_episode_is_a_row_and_the_others_go_on",
    ),
    Mutant(
        "refused values carried into later episodes",
        "actors/wrappers.py",
        "                if world in entry.reasons:\n                    continue\n",
        "",
        "tests/actors/test_silence.py::test_a_refused_value_is_not_carried_into_later_episodes",
    ),
    Mutant(
        "a coin that is not fair",
        "actors/uniform.py",
        'coin") < 0.5',
        'coin") < 0.25',
        "tests/actors/test_actors.py::test_the_coin_of_everything_is_fair",
    ),
    Mutant(
        "what was worked out from rows kept after a restart",
        "scm/store.py",
        "            rows[where] = self.start[key]\n        self.touch(self.rows)\n",
        "            rows[where] = self.start[key]\n",
        "tests/scm/test_store.py::test_what_was_worked_out_from_rows_is_worked_out_anew_after_a_restart",
    ),
    Mutant(
        "steps of ended rows counted",
        "protocols/unit.py",
        "        self._length += alive\n",
        "        self._length += 1\n",
        "tests/protocols/test_unit.py::test_rows_that_have_ended_count_no_more_steps",
    ),
    Mutant(
        "one world's bad value switches the others' check off",
        "envs/interventions.py",
        "            if region is not None:\n",
        "            if region is not None and not bad.any():\n",
        "tests/envs/test_driver.py::test_a_bad_value_elsewhere_does_not_switch_a_check_off",
    ),
    Mutant(
        "asked values that do not hold",
        "envs/interventions.py",
        "        if before is None:\n",
        "        if True:\n",
        "tests/envs/test_driver.py::test_two_descriptions_that_disagree_are_refused_by_both_names",
    ),
    Mutant(
        "refusals lost in a counterfactual",
        "rollouts/counterfactual.py",
        "refusals=tuple(refusals)",
        "refusals=()",
        "tests/rollouts/test_counterfactual.py",
    ),
    Mutant(
        "what a hook restored is not shown",
        "envs/driver.py",
        "self.diverged.pop(world, None)\n        self._edits += 1\n",
        "self.diverged.pop(world, None)\n",
        "tests/envs/test_driver.py::test_a_step_shows_what_a_hook_restored",
    ),
    Mutant(
        "a parent credited though others moved as well",
        "rollouts/evidence.py",
        "if not acting - same - {parent} - graph.equals(parent):",
        "if True:",
        "tests/conformance/test_witnesses.py::test_every_edge_and_variable_acts_and_nothing_else_does[tutorial/slider-v1]",
    ),
    Mutant(
        "a parent credited that was never set",
        "rollouts/evidence.py",
        "if not self._was_set(graph, parent):",
        "if False:",
        "tests/conformance/test_witnesses.py::test_what_merely_moves_together_with_a_cause_is_no_cause",
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_each_mutant_is_still_a_change_of_one_place(mutant):
    assert (PACKAGE / mutant.file).read_text().count(mutant.line) == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_each_mutant_is_noticed(mutant, tmp_path):
    for folder in ("interverse", "tests", "tools"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", mutant.test]
    settings = {**os.environ, "PYTHONPATH": str(tmp_path)}
    file = tmp_path / "interverse" / mutant.file
    original = file.read_text()
    file.write_text(original.replace(mutant.line, mutant.instead))
    killed = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert killed.returncode == 1, killed.stdout + killed.stderr
    assert "failed" in killed.stdout
    file.write_text(original)
    alive = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert alive.returncode == 0, alive.stdout + alive.stderr
