"""Random programs on every world; a failure shrinks to a short list of orders."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from interverse.envs.driver import Driver
from interverse.envs.interventions import InterventionRules
from tests.conformance.cases import CASES
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


@pytest.mark.parametrize("case", CASES, ids=str)
def test_programs_keep_the_laws(case):
    run_programs(case, 1 if case.id.startswith(_HEAVY) else 6)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_many_programs_keep_the_laws(case):
    run_programs(case, 20 if case.id.startswith(_HEAVY) else 200)


# ------------------------------------------------- the defects that they must find if put back


def case_of(world_id):
    return next(case for case in CASES if case.id == world_id and not case.options)


def test_they_find_a_check_switched_off_by_another_world(monkeypatch):
    """Space A_B is checked only if no world's value leaves its domain."""
    whole = InterventionRules._region

    def lax(rules, name, rows, index, beyond):
        return None if beyond[name].any() else whole(rules, name, rows, index, beyond)

    monkeypatch.setattr(InterventionRules, "_region", lax)
    with pytest.raises(AssertionError):
        run_programs(case_of("tutorial/slider-v1"), 200, shrink=False)


def test_they_find_asked_values_that_do_not_hold(monkeypatch):
    monkeypatch.setattr(InterventionRules, "_reapply", lambda self, rows, index, asked: {})
    with pytest.raises(AssertionError):
        run_programs(case_of("trifinger/pushing-v1"), 200, shrink=False)


def lose_refusals(monkeypatch):
    """Has counterfactuals forget what the fact was refused."""
    play = COUNTERFACTUAL._play

    def forgetful(env, fact, *rest):
        return play(env, replace(fact, refusals=()), *rest)

    monkeypatch.setattr(COUNTERFACTUAL, "_play", forgetful)


def test_they_find_lost_refusals(monkeypatch):
    lose_refusals(monkeypatch)
    with pytest.raises(AssertionError):
        run_programs(case_of("tutorial/slider-v1"), 100, shrink=False)


def test_they_find_a_bad_reset_that_changes_counters(monkeypatch):
    address = Driver._address

    def hasty(self, index, seeds, episode):
        if seeds is not None:
            self.seeds[index] = seeds
        address(self, index, seeds, episode)

    monkeypatch.setattr(Driver, "_address", hasty)
    with pytest.raises(AssertionError):
        run_programs(case_of("tutorial/slider-v1"), 100, shrink=False)


def test_a_failure_is_a_short_script(monkeypatch):
    """Shrinking leaves the orders that matter."""
    lose_refusals(monkeypatch)
    with pytest.raises(AssertionError) as caught:
        run_programs(case_of("tutorial/slider-v1"), 100)
    text = "".join(getattr(caught.value, "__notes__", []))
    assert "program=" in text
    assert text.count("'do'") == 1
