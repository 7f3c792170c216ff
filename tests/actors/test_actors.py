"""Actors: they stay in their region, are seeded by address, and refusals are counted."""

import numpy as np
import pytest

import interverse as iv
from interverse.actors import ACTORS
from interverse.actors.actor import Actor, Moment, apply, matching
from interverse.actors.adaptive import Adaptive, Adversarial, AgentDriven, Interpolation
from interverse.actors.curriculum import (
    Curriculum,
    Stage,
    actor_from_word,
    curriculum_from_words,
    paper_curriculum,
)
from interverse.actors.uniform import (
    Everything,
    Goals,
    Joints,
    PhysicalProperties,
    RigidPose,
    Uniform,
    Visual,
)
from interverse.actors.wrappers import CurriculumEnv, CurriculumVectorEnv, attach_curriculum
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.rng import Noise
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
        region = declared.region(space)
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
    actor.on_episode_end(np.ones(8), np.arange(8))
    assert actor.share == 0.5
    actor.on_episode_end(np.zeros(4), np.arange(4))
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


def test_interpolation_takes_patterns():
    actor = Interpolation(target={"block_*/mass": 0.03, "block_1/mass": 0.02}, episodes=1)
    env = iv.make("trifinger/stacking2-v1", space="A")
    under = CurriculumEnv(env, Curriculum(stages=(Stage(actor=actor),)))
    for seed in (0, None):
        under.reset(seed=seed)
    assert [float(env.values[f"block_{i}/mass"]) for i in range(2)] == [0.03, 0.02]
    with pytest.raises(InvalidValueError, match=r"target of block_0/mass is 9\.0"):
        Interpolation(target={"block_*/mass": 9.0}).check(env.variables, "A")
    with pytest.raises(UnknownNameError, match="pattern 'blok"):
        Interpolation(target={"blok_*/mass": 0.03}).check(env.variables, "A")


def test_the_coin_of_everything_is_fair():
    drawn = Everything().act(trifinger_moment(n=400))
    kept = ~np.ma.getmaskarray(drawn["block_0/size"]).any(axis=1)
    placed = ~np.ma.getmaskarray(drawn["block_0/cylindrical_position"]).any(axis=1)
    assert (kept ^ placed).all()
    assert 0.4 < kept.mean() < 0.6


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
        Stage(actor=Uniform(ranges={"fence": (4, 6)}), step=2),
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


def test_a_stage_after_the_end_of_every_episode_is_refused():
    env = iv.make(ID)
    late = Stage(actor=Uniform(), step=10**6)
    with pytest.raises(InvalidValueError, match="before action 1000000"):
        CurriculumEnv(env, Curriculum(stages=(late,)))


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


def test_info_under_a_curriculum_is_each_step_s_own():
    curriculum = Curriculum(stages=(Stage(actor=Uniform(patterns=("light/diffuse",))),))
    env = CurriculumEnv(iv.make("control/cartpole_balance-v1", observation="state"), curriculum)
    _, info = env.reset(seed=0)
    held = info["body/color"].copy()
    for _ in range(3):
        info["body/color"][:] = -1.0
        info = env.step(np.zeros(1, np.float32))[-1]
        np.testing.assert_array_equal(info["body/color"], held)


def test_what_an_actor_learned_is_part_of_a_checkpoint():
    def curriculum():
        return Curriculum(stages=(Stage(actor=Adaptive(patterns=("gain",), window=4, step=0.25)),))

    old, new = (CurriculumEnv(iv.make(ID), curriculum()).hook for _ in range(2))
    old.curriculum.on_episode_end(np.ones(6), np.arange(6))
    new.load(old.save())
    assert new.curriculum.stages[0].actor == old.curriculum.stages[0].actor
    assert new.curriculum.stages[0].actor.share == 0.25


TRIFINGER = "trifinger/pushing-v1"


def trifinger_moment(task=TRIFINGER, n=40):
    venv = iv.make_vec(task, num_envs=n, threads=1)
    venv.reset(seed=0)
    driver = venv.unwrapped.driver
    noise = Noise(driver.seeds, driver.episodes, driver.steps)
    return Moment(driver, np.arange(n), noise, "A_B", "test")


def test_the_joints_actor_puts_the_tips_into_its_box():
    now = trifinger_moment()
    low, high = (-0.1, -0.1, 0.1), (0.1, 0.1, 0.2)
    drawn = Joints(low=low, high=high).act(now)
    refused = apply(now.driver, drawn, now.worlds)
    assert len(refused) < 30
    moved = [w for w in range(40) if w not in refused]
    tips = now.driver.values["end_effector_positions"][moved].reshape(-1, 3, 3)
    inside = np.all((tips > np.array(low) - 1e-6) & (tips < np.array(high) + 1e-6), axis=-1)
    assert inside.mean() > 0.9  # a point out of a finger's reach is replaced by the nearest
    alone = Joints(low=low, high=high).act(trifinger_moment(n=1))
    assert np.array_equal(alone["joint_positions"][0], drawn["joint_positions"][0])
    with pytest.raises(InvalidValueError, match="has no joint_positions of three fingers"):
        Joints().act(moment())


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (
            "rigid_pose",
            {
                f"block_{i}/{part}"
                for i in (0, 1)
                for part in ("cylindrical_position", "orientation")
            },
        ),
        ("rigid_pose:orientations=false,group=block_1", {"block_1/cylindrical_position"}),
        ("physical_properties:group=block", {"block_0/mass", "block_1/mass"}),
        ("physical_properties:group=floor", {"floor/friction"}),
        ("visual:group=floor,space=B", {"floor/color"}),
        ("uniform:patterns=floor/friction+gravity", {"floor/friction", "gravity"}),
    ],
)
def test_named_actors_draw_what_they_are_named_for(word, expected):
    now = trifinger_moment("trifinger/stacking2-v1", n=3)
    drawn = actor_from_word(word).act(now)
    assert set(drawn) == expected
    for name, rows in drawn.items():
        region = now.variables[name].resolve(now.driver.values).space("A_B")
        assert region.inside(rows).all(), name


def test_the_visual_actor_changes_looks_alone():
    now = trifinger_moment(n=2)
    before = {name: now.driver.values[name] for name in now.variables}
    assert not apply(now.driver, Visual().act(now), now.worlds)
    changed = {n for n, old in before.items() if not np.array_equal(old, now.driver.values[n])}
    assert "goal_0/color" in changed
    assert {now.variables[name].kind for name in changed} == {"appearance"}


def test_a_curriculum_can_be_written_in_words():
    made = curriculum_from_words(["goals", "uniform:patterns=gain,space=A@first=2,step=5"])
    assert isinstance(made.stages[0].actor, Goals)
    assert made.stages[1] == Stage(actor=Uniform(patterns=("gain",), space="A"), first=2, step=5)


@pytest.mark.parametrize(
    ("word", "error", "match"),
    [
        ("gaols", UnknownNameError, "Did you mean 'goals'"),
        ("visual:grop=block", UnknownNameError, "unknown setting 'grop'"),
        ("visual:group", InvalidValueError, "NAME=VALUE"),
        ("goals@first=soon", InvalidValueError, "first of"),
        ("goals@frist=1", UnknownNameError, "Did you mean 'first'"),
        ("adaptive", InvalidValueError, "patterns"),
        ("agent:patterns=gain", InvalidValueError, "needs choices"),
        ("adversarial:patterns=gain,critic=worst", InvalidValueError, "needs a critic"),
        ("adaptive:patterns=gain,raise_at=high", InvalidValueError, "raise_at is 'high'"),
        ("adaptive:patterns=gain,lower_at=0.9", InvalidValueError, "from 0 to 0.8"),
        ("uniform:patterns=gain,ranges=3", InvalidValueError, "ranges is 3. Allowed: a dict"),
        ("joints:low=x", InvalidValueError, "a list whose every value is a number"),
        ("interpolation:target=3", InvalidValueError, "target is 3. Allowed: a dict"),
        ("everything:but=3", InvalidValueError, "but is 3. Allowed: a dict"),
        ("rigid_pose:positions=false,orientations=false", InvalidValueError, "both off"),
    ],
)
def test_words_with_mistakes(word, error, match):
    with pytest.raises(error, match=match):
        curriculum_from_words([word])


@pytest.mark.parametrize(
    ("actor", "match"),
    [
        (RigidPose(group="gain"), "has no pose"),
        (PhysicalProperties(), "has no mass or friction"),
        (Visual(), "has no looks"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_an_actor_with_nothing_to_act_on_says_so(actor, match):
    with pytest.raises(InvalidValueError, match=match):
        actor.act(moment())


@pytest.mark.parametrize(
    "actor",
    [
        Adaptive(patterns=()),
        AgentDriven(patterns=()),
        Adversarial(patterns=(), critic=heavy_first),
        Interpolation(target={}),
    ],
    ids=lambda v: type(v).__name__,
)
def test_an_actor_of_no_variable_is_refused(actor):
    with pytest.raises(InvalidValueError, match="is empty"):
        actor.check(moment().variables, "A")


def test_everything_but():
    now = trifinger_moment(n=20)
    drawn = Everything(space="A", but={"block_*/mass": "B"}).act(now)
    spaces = now.driver.variables
    assert spaces["block_0/mass"].space_b.inside(drawn["block_0/mass"]).all()
    assert spaces["floor/friction"].space_a.inside(drawn["floor/friction"]).all()


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        (None, InvalidValueError, r"Mine\.act returned a NoneType"),
        (3, InvalidValueError, r"Mine\.act returned a int"),
        ({"box/mas": np.ones(2)}, UnknownNameError, r"from Mine\.act.*box/mass"),
        ({"box/mass": 0.5}, InvalidValueError, r"shape \(\).*shape \(2,\)"),
        ({"box/mass": np.ones((2, 3))}, InvalidValueError, r"shape \(2, 3\)"),
        ({"box/mass": ["a", "b"]}, InvalidValueError, "box/mass as <U1"),
        ({"box/size": [[1, 2], [3]]}, InvalidValueError, r"numbers of shape \(2, 3\)"),
        (lambda moment: moment.draw(("box/mas",), "A"), UnknownNameError, "'box/mass'"),
    ],
)
def test_a_mistake_names_the_actor_and_what_is_allowed(answer, error, told):
    class Mine(Actor):
        def act(self, moment):
            return answer(moment) if callable(answer) else answer

    env = iv.make_vec("tutorial/slider-v1", 2)
    attach_curriculum(env, Curriculum(stages=(Stage(actor=Mine()),)))
    with pytest.raises(error, match=told):
        env.reset(seed=0)
    env.close()
