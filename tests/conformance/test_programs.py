"""Random programs on every world; a failure shrinks to a short list of orders."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from interverse.envs.driver import Driver
from interverse.envs.interventions import InterventionRules
from tests.conformance.cases import CASES, Case
from tests.conformance.programs import Machine, programs

COUNTERFACTUAL = sys.modules["interverse.rollouts.counterfactual"]  # a function has its name
_HEAVY = ("control/", "rooms/", "trifinger/stacked", "trifinger/creative", "trifinger/general")


def run_programs(case, examples, *, shrink=True):
    """Runs so many programs on one world."""
    machine = Machine(case)
    phases = [Phase.generate, *([Phase.shrink] if shrink else [])]

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    @given(program=programs)
    def run(program):
        machine.run(program)

    try:
        run()
    finally:
        machine.close()


@pytest.mark.parametrize(
    ("few", "many"),
    [(1, 6), pytest.param(20, 200, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])],
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_programs_keep_the_laws(case, few, many):
    run_programs(case, few if case.id.startswith(_HEAVY) else many)


# ------------------------------------------------- the defects that they must find if put back

REGION, ADDRESS, PLAY = InterventionRules._region, Driver._address, COUNTERFACTUAL._play


def lax(rules, name, rows, index, beyond):
    """Checks space A_B only if no world's value leaves its domain."""
    return None if beyond[name].any() else REGION(rules, name, rows, index, beyond)


def forgetful(env, fact, *rest):
    """Has counterfactuals forget what the fact was refused."""
    return PLAY(env, replace(fact, refusals=()), *rest)


def hasty(driver, index, seeds, episode):
    """Has a bad reset change the counters."""
    if seeds is not None:
        driver.seeds[index] = seeds
    ADDRESS(driver, index, seeds, episode)


def careless(rules, rows, index, asked):
    """Lets asked values not hold."""
    return {}


@pytest.mark.parametrize(
    ("owner", "name", "defect", "world_id"),
    [
        (InterventionRules, "_region", lax, "tutorial/slider-v1"),
        (InterventionRules, "_reapply", careless, "trifinger/pushing-v1"),
        (COUNTERFACTUAL, "_play", forgetful, "tutorial/slider-v1"),
        (Driver, "_address", hasty, "tutorial/slider-v1"),
    ],
)
def test_they_find_a_defect(monkeypatch, owner, name, defect, world_id):
    monkeypatch.setattr(owner, name, defect)
    with pytest.raises(AssertionError) as caught:
        run_programs(Case(world_id), 200, shrink=defect is forgetful)
    text = "".join(getattr(caught.value, "__notes__", []))
    assert defect is not forgetful or text.count("'do'") == 1, "a failure is a short script"
