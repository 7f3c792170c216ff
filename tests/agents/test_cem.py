"""Planning with the true model: it finds better plans than chance, and plays what it found."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.agents.cem import CEM, Planner, run_planner
from interverse.core.errors import InvalidValueError
from tests.envs.toy import ID, ensure_registered

ensure_registered()


@pytest.mark.slow
def test_a_plan_beats_chance_and_keeps_its_word():
    env = iv.make("trifinger/picking-v1", skip_frame=35)
    env.reset(seed=0, options={"do": {"block_0/mass": 0.03}})
    config = CEM(horizon=4, iterations=6, population=60, elites=8)
    planner = Planner(env, config)
    moment = env.snapshot()
    plan = planner.plan(moment, rng=np.random.default_rng(0))
    random = np.random.default_rng(1).uniform(-1, 1, (60, 4, 9))
    chance = planner.score(moment, random)
    # sixty random plans are one generation's worth: six generations must beat the best of them
    assert plan.score > chance.max()
    assert plan.score == plan.scores.max()
    played = sum(env.step(action)[1] for action in plan.actions)
    assert played == pytest.approx(plan.score, abs=1e-12)
    planner.close()
    env.close()


def test_one_plan_after_another_to_the_end_of_the_episode():
    env = iv.make(ID)
    env.reset(seed=0)
    planner = Planner(env, CEM(horizon=2, iterations=2, population=8, elites=2, hold=2))
    assert planner.plan(env.snapshot(), rng=np.random.default_rng(0)).actions.shape == (4, 2)
    run_planner(env, planner, plans=2, rng=np.random.default_rng(0))
    assert env.unwrapped.driver.steps[0] == 8
    run_planner(env, planner, plans=100, rng=np.random.default_rng(0))
    assert env.unwrapped.driver.steps[0] == 20  # the episode's length
    planner.close()
    env.close()


@pytest.mark.parametrize(
    ("setting", "value"),
    [("horizon", 0), ("population", 1.5), ("elites", 501), ("memory", 1.0), ("hold", 0)],
)
def test_settings_that_cannot_be(setting, value):
    with pytest.raises(InvalidValueError, match=setting):
        CEM(**{setting: value})


def test_discrete_actions_are_refused():
    with pytest.raises(InvalidValueError, match="continuous"):
        Planner(iv.make("chemistry/chain-v1"))
