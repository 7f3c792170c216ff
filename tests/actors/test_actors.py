"""Actors: they stay in their region, are seeded by address, and refusals are counted."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.actors import ACTORS
from interverse.actors.actor import Actor, Moment, matching
from interverse.actors.adaptive import Adaptive
from interverse.actors.adversarial import Adversarial
from interverse.actors.agent import AgentDriven
from interverse.actors.curriculum import Curriculum, Stage, paper_curriculum
from interverse.actors.interpolation import Interpolation
from interverse.actors.uniform import Everything, Uniform
from interverse.actors.wrappers import CurriculumEnv, CurriculumVectorEnv
from interverse.errors import InvalidValueError, UnknownNameError
from interverse.rng import Noise
from tests.envs.toy import ID, ensure_registered

ensure_registered()
ZERO = np.zeros(2, dtype=np.float32)


def moment(n=4, space="A", seed=0, tag="test"):
    venv = iv.make_vec(ID, num_envs=n)
    venv.reset(seed=seed)
    driver = venv.unwrapped.driver
    noise = Noise(driver.seeds, driver.episodes, driver.steps)
    return Moment(driver, np.arange(n), noise, space, tag)


def heavy_first(moment, values):
    """A critic that fears large gains."""
    return -values["gain"]


ALL = [
    Uniform(patterns=("gain", "x")),
    Everything(),
    Interpolation(target={"gain": 1.5}),
    Adaptive(patterns=("gain",), share=0.5),
    Adversarial(patterns=("gain",), critic=heavy_first),
]


@pytest.mark.parametrize("actor", ALL, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("space", ["A", "B", "A_B"])
def test_it_stays_in_its_region_and_repeats_itself(actor, space):
    now = moment(space=space)
    values = actor.act(now)
    again = actor.act(moment(space=space))
    alone = actor.act(moment(n=1, space=space))
    assert values
    for name, rows in values.items():
        declared = now.variables[name].resolve(now.driver.values)
        region = declared.space("A_B" if isinstance(actor, Interpolation | Adaptive) else space)
        assert rows.shape == (4, *declared.shape)
        assert region.inside(rows).all(), (name, rows)
        assert np.array_equal(rows, again[name])
        assert np.array_equal(rows[0], alone[name][0])


def test_every_row_of_the_table_loads():
    for name in ACTORS:
        assert ACTORS.load(name)


def test_a_pattern_that_matches_nothing_is_an_error():
    with pytest.raises(UnknownNameError, match="unknown variable pattern 'gian'"):
        Uniform(patterns=("gian",)).act(moment())
    assert matching(moment().variables, ["*"]) == ["gain", "fence", "x"]


def test_the_adversary_takes_the_worst_of_k():
    now = moment()
    worst = Adversarial(patterns=("gain",), critic=heavy_first, draws=16).act(now)["gain"]
    one = Uniform(patterns=("gain",)).act(now)["gain"]
    assert (worst >= 1.3).all()
    assert worst.mean() > one.mean()


def test_the_adaptive_range_grows_with_success_and_shrinks_without():
    actor = Adaptive(patterns=("gain",), window=4, step=0.25)
    assert (actor.act(moment())["gain"] == 1.0).all()
    actor.heard(np.ones(8), np.arange(8))
    assert actor.share == 0.5
    actor.heard(np.zeros(4), np.arange(4))
    assert actor.share == 0.25


def test_interpolation_ends_at_the_target():
    actor = Interpolation(target={"gain": 2.0, "fence": 9}, episodes=4)
    shares = []
    for episode in range(6):
        venv = iv.make_vec(ID, num_envs=1)
        venv.reset(seed=0, options={"episode": episode})
        d = venv.unwrapped.driver
        now = Moment(d, np.arange(1), Noise(d.seeds, d.episodes, d.steps), "A_B")
        values = actor.act(now)
        shares.append((float(values["gain"][0]), int(values["fence"][0])))
    assert shares[0] == (1.0, 3)
    assert shares[2] == (1.5, 6)
    assert shares[4] == shares[5] == (2.0, 9)


def test_the_agent_chooses():
    now = moment(n=2)
    actor = AgentDriven(patterns=("gain",))
    assert actor.act(now) == {}
    actor.choose(np.array([[-1.0], [0.0]]))
    assert actor.act(now)["gain"].tolist() == [0.5, 1.0]
    actor.choose(np.zeros((3, 1)))
    with pytest.raises(InvalidValueError, match="one row per world"):
        actor.act(now)


def test_a_curriculum_acts_when_its_stages_say():
    stages = (
        Stage(actor=Uniform(patterns=("gain",)), first=1, last=3, period=2),
        Stage(actor=Uniform(patterns=("fence",), space=None), step=2),
    )
    env = CurriculumEnv(iv.make(ID), Curriculum(stages=stages))
    changed = []
    for episode in range(5):
        env.reset(seed=0 if episode == 0 else None)
        changed.append(bool(env.unwrapped.values["gain"] != 1.0))
    assert changed == [False, True, False, True, False]


def test_in_episode_stages_fire_in_every_episode_and_replace_the_observation():
    stage = Stage(actor=Uniform(patterns=("gain",)), step=2)
    env = CurriculumEnv(iv.make(ID), Curriculum(stages=(stage,)))
    for episode in range(3):
        env.reset(seed=0 if episode == 0 else None)
        seen = [env.step(ZERO)[0][2] for _ in range(4)]
        assert seen[0] == 1.0
        assert seen[1] == seen[3] != 1.0


def test_the_vector_wrapper_acts_on_autoreset_worlds():
    curriculum = Curriculum(stages=(Stage(actor=Uniform(patterns=("gain",)), first=1),))
    venv = CurriculumVectorEnv(iv.make_vec(ID, num_envs=3, max_steps=2), curriculum)
    venv.reset(seed=0)
    assert (venv.unwrapped.values["gain"] == 1.0).all()
    for _ in range(3):
        observation, *_ = venv.step(np.zeros((3, 2), dtype=np.float32))
    gains = venv.unwrapped.values["gain"]
    assert (gains != 1.0).all()
    assert np.array_equal(observation[:, 2], gains)


@pytest.mark.parametrize("start", ["per_episode", "cumulative"])
def test_starting_states_accumulate_only_if_asked(start):
    stages = (Stage(actor=Uniform(patterns=("gain",)), last=0),)
    env = CurriculumEnv(iv.make(ID), Curriculum(stages=stages, start=start))
    env.reset(seed=0)
    first = float(env.unwrapped.values["gain"])
    env.reset()
    second = float(env.unwrapped.values["gain"])
    assert second == (first if start == "cumulative" else 1.0)


class Stubborn(Actor):
    """Always asks for what the toy refuses."""

    def act(self, moment):
        return {"x": np.full((len(moment.worlds), 2), 1.25)}


def test_refusals_are_counted_and_visible():
    env = CurriculumEnv(iv.make(ID), Curriculum(stages=(Stage(actor=Stubborn()),)))
    env.reset(seed=0)
    env.reset()
    *_, info = env.step(ZERO)
    assert info["refused_interventions"] == 2


def test_the_papers_curricula_have_names():
    assert paper_curriculum(0).stages == ()
    assert isinstance(paper_curriculum(2).stages[0].actor, Everything)
    with pytest.raises(UnknownNameError, match="curriculum '3'"):
        paper_curriculum(3)


def test_two_curricula_in_one_environment_are_refused():
    env = iv.make(ID)
    CurriculumEnv(env, Curriculum())
    with pytest.raises(InvalidValueError, match="has a curriculum already"):
        CurriculumEnv(env, Curriculum())


def test_a_rollout_under_a_curriculum_replays():
    stage = Stage(actor=Uniform(patterns=("gain",)), step=3)
    env = CurriculumEnv(iv.make(ID), Curriculum(stages=(stage,)))
    fact = iv.rollout(env, "random", seed=1)
    assert iv.counterfactual(fact, {}).fingerprint == fact.fingerprint
