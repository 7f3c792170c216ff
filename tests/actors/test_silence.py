"""A curriculum that changes nothing, or little, is noticed: it raises, or warns and counts."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np
import pytest

import interverse as iv
from interverse.actors.actor import Actor, Moment
from interverse.actors.adaptive import AgentDriven, Interpolation
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.uniform import Goals, Uniform
from interverse.actors.wrappers import CurriculumEnv, CurriculumVectorEnv
from interverse.core.errors import InvalidValueError, RefusedStartsWarning
from interverse.core.rng import Noise
from interverse.envs.wrappers import sample_new_goal
from tests.envs.toy import ID, ensure_registered

ensure_registered()
PUSHING = "trifinger/pushing-v1"
WITH_GOALS = [
    "blocks/observed-3-v1",
    "blocks/unobserved-3-v1",
    "blocks/fixed_unobserved-3-v1",
    "chemistry/chain-v1",
    "chemistry/random-v1",
    "chemistry/custom-v1",
    PUSHING,
]


def under(actor, world=ID, count=8, *, step=0, start="per_episode"):
    stages = (Stage(actor=actor, step=step),)
    return CurriculumVectorEnv(iv.make_vec(world, count), Curriculum(stages=stages, start=start))


@pytest.mark.parametrize("world", WITH_GOALS)
def test_the_goal_actor_gives_another_goal_than_the_reset(world):
    plain, venv = iv.make_vec(world, 20), under(Goals(), world, 20)
    plain.reset(seed=0)
    drawn = sample_new_goal(plain)
    venv.reset(seed=0)
    now, other = venv.unwrapped.values, np.zeros(20, dtype=bool)
    for name, rows in drawn.items():
        other |= (rows != plain.values[name]).reshape(20, -1).any(axis=1)
    assert other.sum() > 15
    changed = [(now[n] != plain.values[n]).reshape(20, -1).any(axis=1) for n in drawn]
    assert np.any(changed, axis=0).sum() > 15
    assert venv.tried.sum() == 20
    assert not venv.refused.any()


@pytest.mark.parametrize("world", ["blocks/observed-3-v1", "chemistry/chain-v1", PUSHING])
def test_a_refused_goal_is_drawn_again_with_other_noise(world):
    venv = iv.make_vec(world, 20)
    venv.reset(seed=0)
    driver = venv.unwrapped.driver
    noise = Noise(driver.seeds, driver.episodes, driver.steps)
    first, second = (
        Goals().act(Moment(driver, np.arange(20), noise, "A", f"curriculum/0/{k}", {}, k))
        for k in range(2)
    )
    assert any(not np.array_equal(first[name], second[name]) for name in first)


class Contented(Actor):
    """Asks for what holds already."""

    def act(self, moment):
        return {"gain": moment.values("gain")}


class Patient(Contented):
    """Does so on purpose."""

    may_idle: ClassVar[bool] = True


@pytest.mark.parametrize("step", [0, 2])
def test_starts_that_change_nothing_raise(step):
    venv = under(Contented(), step=step)

    def begin(seed):
        venv.reset(seed=seed)
        for _ in range(step):
            venv.step(np.zeros((8, 2), dtype=np.float32))

    begin(0)
    with pytest.raises(InvalidValueError, match=r"none of the first 16 starts .* changed anything"):
        begin(1)


@pytest.mark.parametrize(
    "actor",
    [
        Patient(),
        AgentDriven(patterns=("gain",)),
        Interpolation(target={"fence": 4}, episodes=1000),
        Uniform(patterns=("gain",)),
    ],
    ids=lambda actor: type(actor).__name__,
)
def test_starts_that_may_change_nothing_go_on(actor):
    if isinstance(actor, AgentDriven):
        actor.choose(np.zeros((8, 1)))  # the middle of the space, which is the default
    venv = under(actor)
    venv.reset(seed=0)
    for _ in range(5):
        venv.reset()
    assert (venv.tried == 6).all()


def test_a_run_that_goes_on_from_a_checkpoint_is_past_its_first_starts():
    venv = under(Contented())
    venv.hook.load(under(Patient()).hook.save())
    for seed in range(4):
        venv.reset(seed=seed)


class Half(Actor):
    """Asks three of four worlds for what the toy refuses, and one for another gain."""

    def act(self, moment):
        x = np.where((moment.worlds % 4 > 0)[:, None], 1.25, 0.5)
        return {"x": x * np.ones(2), "gain": np.full(len(moment.worlds), 1.3)}


def test_a_curriculum_that_is_mostly_refused_warns_once():
    venv = under(Half())
    venv.reset(seed=0)
    with pytest.warns(RefusedStartsWarning, match=r"12 of 16 .* were refused"):
        venv.reset(seed=1)
    for seed in range(2, 6):  # a second warning would be an error
        venv.reset(seed=seed)
    assert venv.tried.tolist() == [6] * 8
    assert venv.refused.tolist() == [0, 6, 6, 6] * 2


def test_a_single_environment_counts_too():
    env = CurriculumEnv(iv.make(ID), Curriculum(stages=(Stage(actor=Half()),)))
    env.reset(seed=0)
    assert (env.tried.tolist(), env.refused.tolist()) == ([1], [0])


def test_a_refused_value_is_not_carried_into_later_episodes():
    venv = under(Half(), count=4, start="cumulative")
    for episode in range(3):
        venv.reset(seed=0 if episode == 0 else None)
    # A carried refusal would be tried, and refused, once more at each start.
    assert venv.tried.tolist() == [3] * 4
    assert venv.refused.tolist() == [0, 3, 3, 3]
    assert venv.unwrapped.values["gain"].tolist() == [1.3, 1.0, 1.0, 1.0]


class OutOfReach(Actor):
    """Asks for what every world refuses."""

    def act(self, moment):
        return {"gain": np.full(len(moment.worlds), 1e9)}


def test_a_stage_that_is_always_refused_is_noticed_beside_one_that_acts():
    stages = (Stage(actor=Uniform(patterns=("gain",))), Stage(actor=OutOfReach(), step=1))
    venv = CurriculumVectorEnv(iv.make_vec(ID, 8), Curriculum(stages=stages))
    venv.reset(seed=0)
    actions = itertools.repeat(venv.action_space.sample(), 40)
    with pytest.raises(InvalidValueError, match="was refused"):
        [venv.step(action) for action in actions]
