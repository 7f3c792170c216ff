"""Training must not see the test: draws come from A unless another space is asked for by name."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import interverse as iv
from interverse.actors import ACTORS
from interverse.actors.actor import Actor, Moment
from interverse.actors.adaptive import Adaptive, Adversarial, AgentDriven, Interpolation
from interverse.actors.curriculum import Curriculum, Stage, paper_curriculum
from interverse.actors.uniform import (
    Everything,
    Goals,
    Joints,
    PhysicalProperties,
    Regional,
    RigidPose,
    Uniform,
    Visual,
)
from interverse.actors.wrappers import CurriculumEnv, CurriculumVectorEnv
from interverse.agents.train import Train, make_env, train
from interverse.core.errors import InterverseError, InvalidValueError, UnknownNameError
from interverse.core.rng import Noise
from interverse.envs.values import Overlay

DRAWS = 10_000
SLIDER, PUSHING = "tutorial/slider-v1", "trifinger/pushing-v1"
PAPER = [f"trifinger/{t}-v1" for t in ("pushing", "picking", "pick_and_place", "stacking2")]
SLOW = pytest.mark.slow


def numbers(driver, size):
    noise = Noise(np.arange(DRAWS), np.zeros(DRAWS, int), np.zeros(DRAWS, int))
    return 2.0 * noise.uniform("agent", (size,)) - 1.0


def agent():
    return AgentDriven(patterns=("block_*/mass", "goal_0/cylindrical_position"))


# Every actor of the table, as it is made without a word about spaces.
PLAIN = {
    "adaptive": Adaptive(
        patterns=("block_*", "floor/*", "stage/color", "finger_*/mass", "goal_0/size"), share=0.5
    ),
    "adversarial": Adversarial(
        patterns=("block_*/mass",), critic=lambda m, v: -v["block_0/mass"], draws=2
    ),
    "agent": agent(),
    "everything": Everything(),
    "goals": Goals(),
    "interpolation": Interpolation(target={"finger_0/upper/mass": 0.03}, episodes=3),
    "joints": Joints(),
    "physical_properties": PhysicalProperties(),
    "regional": Regional(regions={"block_*/mass": "A"}),
    "rigid_pose": RigidPose(),
    "uniform": Uniform(),
    "visual": Visual(),
}


@pytest.fixture(scope="module")
def driver():
    venv = iv.make_vec(PUSHING, 4)
    venv.reset(seed=0)
    yield venv.driver
    venv.close()


def drawn_in_b(driver, actor, curriculum):
    """Returns, by variable, how many of the draws lie in space B."""
    rows = np.zeros(DRAWS, dtype=np.int64)  # the same world again and again, with other noise
    noise = Noise(np.arange(DRAWS), np.arange(DRAWS) % 5, np.zeros(DRAWS, int))
    moment = Moment(driver, rows, noise, curriculum.region(driver), "leak")
    if isinstance(actor, AgentDriven):
        actor.choose(numbers(driver, actor.size(moment)))
    values = actor.act(moment)
    assert values
    given = {n: np.asarray(v) for n, v in values.items()}
    now = Overlay(driver.host_values, given, rows, driver.world.graph)
    out = {}
    for name, drawn in values.items():
        space = driver.world.variables[name].resolve(now).space_b
        if space is not None:
            asked = ~np.ma.getmaskarray(drawn).reshape(DRAWS, -1).any(axis=1)
            out[name] = int((space.inside(np.asarray(drawn)) & asked).sum())
    return out


def test_every_actor_is_here():
    assert set(PLAIN) == set(ACTORS)


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_no_actor_draws_from_the_test_space(driver, name):
    actor = PLAIN[name]
    found = drawn_in_b(driver, actor, Curriculum(stages=(Stage(actor=actor),)))
    assert not any(found.values()), found


@pytest.mark.parametrize("task", PAPER)
def test_no_curriculum_of_the_paper_draws_from_the_test_space(task, tmp_path):
    for number in (1, 2):
        config = Train(task=task, out=tmp_path, curriculum=number, num_envs=1, preset="paper")
        env = make_env(config)
        env.reset()
        driver = env.venv.unwrapped.driver
        assert driver.world.options.space == "A"
        (stage,) = env.hook.curriculum.stages
        found = drawn_in_b(driver, stage.actor, env.hook.curriculum)
        assert found
        assert not any(found.values()), found
        env.close()


def starts_in_b(env, resets):
    """Returns the variables of which a start under the environment's curriculum was in B."""
    driver, found = env.unwrapped.driver, set()
    before = None
    for _ in range(resets):
        env.reset(seed=0 if before is None else None)
        before = before or {n: v.default for n, v in driver.variables.items()}
        now = driver.host_values
        for name, variable in driver.world.variables.items():
            space = variable.resolve(now).space_b
            if space is not None and not variable.read_only:
                there = space.inside(now[name])
                changed = (now[name] != before[name]).reshape(len(there), -1).any(axis=1)
                found |= {name} if (there & changed).any() else set()
    return found


@pytest.mark.parametrize(("worlds", "resets"), [(20, 2), pytest.param(250, 40, marks=SLOW)])
@pytest.mark.parametrize("name", sorted(PLAIN.keys() - {"agent", "joints"}))
@pytest.mark.filterwarnings("ignore::interverse.errors.RefusedStartsWarning")
def test_no_start_of_a_training_is_in_the_test_space(name, worlds, resets):
    curriculum = Curriculum(stages=(Stage(actor=PLAIN[name]),), start="cumulative")
    venv = CurriculumVectorEnv(iv.make_vec(PUSHING, worlds, space="A"), curriculum)
    assert starts_in_b(venv, resets) == set()
    assert venv.hook.refused.min() < resets
    venv.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("task", PAPER)
def test_no_start_under_a_curriculum_of_the_paper_is_in_the_test_space(task, number):
    venv = CurriculumVectorEnv(iv.make_vec(task, 250, space="A"), paper_curriculum(number))
    assert starts_in_b(venv, 40) == set()
    venv.close()


@pytest.mark.parametrize("space", ["B", "A_B"])
def test_another_space_is_drawn_from_if_asked_for(driver, space):
    asked = Curriculum(stages=(Stage(actor=Uniform(patterns=("block_0/mass",))),), space=space)
    found = drawn_in_b(driver, asked.stages[0].actor, asked)
    assert found["block_0/mass"] > 0.4 * DRAWS
    own = Uniform(patterns=("block_0/mass",), space=space)
    assert drawn_in_b(driver, own, Curriculum())["block_0/mass"] > 0.4 * DRAWS


# ----------------------------------------------------------------- curricula that do nothing


@pytest.mark.parametrize(
    "actor",
    [
        Uniform(patterns=("block_0/friction",), space="A"),
        Uniform(patterns=("block_0/mass", "block_0/friction")),
        Uniform(patterns=("robot/*",)),
        Uniform(patterns=("block_*",), kinds=("graph",)),
        Regional(regions={"block_0/friction": "A"}),
        Regional(regions={"block_0/orientation": "B"}),
        Adaptive(patterns=("block_0/friction",)),
        Adversarial(patterns=("block_0/friction",), critic=lambda m, v: np.zeros(1)),
        AgentDriven(patterns=("robot/*",)),
        Uniform(ranges={"block_0/friction": (-1.0, 0.5)}),
        Regional(regions={}),
        Uniform(patterns=()),
        PhysicalProperties(group="goal"),
        RigidPose(group="goal"),
        Visual(group="robot"),
        Everything(but={"block_0/friction": "A"}),
        Everything(but={"block_0/orientation": "B"}),
        Everything(without=tuple(iv.make(PUSHING).variables)),
        Uniform(ranges={"block_0/friction": (0.5, 0.6)}, kinds=("goal",)),
        Uniform(ranges={"block_0/friction": "ab"}),
        Uniform(ranges={"block_0/friction": 0.5}),
        Interpolation(target={"block_0/friction": -3.0}),
        Interpolation(target={"block_0/friction": "x"}),
        Interpolation(target={"block_0/friction": [0.1, 0.2]}),
        Interpolation(target={"block_0/mass": "x"}),
    ],
    ids=lambda actor: type(actor).__name__,
)
def test_a_curriculum_without_effect_raises_before_any_episode(actor):
    env = iv.make(PUSHING)
    with pytest.raises(
        InvalidValueError, match=r"has no |the (range|target) of|is empty|every value is a list"
    ):
        CurriculumEnv(env, Curriculum(stages=(Stage(actor=actor),)))
    assert env.driver.hook is None


def test_a_name_that_is_left_out_must_exist():
    everything = Everything(without=("gravity", "blok_0/mass"))
    with pytest.raises(UnknownNameError, match="block_0/mass"):
        CurriculumEnv(iv.make(PUSHING), Curriculum(stages=(Stage(actor=everything),)))


def test_what_is_not_drawn_is_said_by_its_row_and_patterns():
    names = []
    for actor in (
        Everything(),
        Everything(without=("finger_*", "stage/*")),
        Everything(but={"gravity": "A"}),
    ):
        env = CurriculumEnv(iv.make(PUSHING), Curriculum(stages=(Stage(actor=actor),)))
        env.reset(seed=0)
        (entry,) = env.unwrapped.driver.log(0)
        names.append(set(entry.values))
    assert not {"gravity", "joint_positions"} & names[0]
    assert names[0] - names[1] == {n for n in names[0] if n.startswith(("finger_", "stage/"))}
    assert names[2] - names[0] == {"gravity"}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Adaptive(patterns=("*",), window=0),  # would count for ever
        lambda: Adaptive(patterns=("*",), step=0.0),
        lambda: Adaptive(patterns=("*",), share=2.0),
        lambda: Stage(actor=None),
        lambda: Stage(actor=Goals(), period=0.5),
        lambda: Curriculum(stages=(Goals(),)),
        lambda: Curriculum(space=[]),
    ],
)
def test_settings_without_a_meaning_are_refused(wrong):
    with pytest.raises(InterverseError):
        wrong()


def test_an_actor_that_waits_for_success_needs_a_world_that_has_it():
    actor = Adaptive(patterns=("light/*",))
    options = {"observation": "state", "max_steps": 2}
    env = iv.make("control/cartpole_balance-v1", **options)
    env = CurriculumEnv(env, Curriculum(stages=(Stage(actor=actor),)))
    env.reset(seed=0)
    env.step(env.action_space.sample())
    with pytest.raises(InvalidValueError, match="waits for success"):
        env.step(env.action_space.sample())


def test_scores_of_a_critic_have_a_row_for_each_world():
    actor = Adversarial(patterns=("block_0/mass",), critic=lambda moment, values: 0.0)
    env = CurriculumEnv(iv.make(PUSHING), Curriculum(stages=(Stage(actor=actor),)))
    with pytest.raises(InvalidValueError, match="the critic returned"):
        env.reset(seed=0)


@pytest.mark.parametrize(
    ("actor", "space"),
    [
        (Uniform(patterns=("block_0/mass",), space="B"), "A"),
        (Uniform(patterns=("block_0/mass",), space="A_B"), "A"),
        (Uniform(patterns=("block_0/mass",), space="A"), "B"),
        (Regional(regions={"block_0/mass": "B"}), "A"),
        (Everything(but={"block_0/mass": "B"}), "A"),
        (Goals(space="B"), "A"),
        (Joints(), "A"),
    ],
)
def test_draws_that_the_world_always_refuses_raise_before_any_episode(actor, space):
    env = iv.make(PUSHING, space=space)
    with pytest.raises(InvalidValueError, match=rf"in a world of space {space}.*--space"):
        CurriculumEnv(env, Curriculum(stages=(Stage(actor=actor),)))
    assert env.driver.hook is None
    whole = iv.make(PUSHING, space="A_B")
    CurriculumEnv(whole, Curriculum(stages=(Stage(actor=actor),))).reset(seed=0)
    whole.close()


@pytest.mark.parametrize(("low", "high", "world"), [(0.06, 0.09, "A"), (0.02, 0.045, "B")])
def test_a_range_outside_the_worlds_space_raises_before_any_episode(low, high, world):
    stages = (Stage(actor=Uniform(ranges={"block_0/mass": (low, high)})),)
    with pytest.raises(
        InvalidValueError, match=rf"range of block_0/mass lies outside space {world}"
    ):
        CurriculumEnv(iv.make(PUSHING, space=world), Curriculum(stages=stages))
    under = CurriculumEnv(iv.make(PUSHING, space="A_B"), Curriculum(stages=stages))
    under.reset(seed=0)
    assert low <= under.unwrapped.values["block_0/mass"] <= high


def test_a_training_with_such_an_actor_raises_before_it_begins(tmp_path):
    words = ("physical_properties:group=block,space=B",)
    with pytest.raises(InvalidValueError, match="draws from space B in a world of space A"):
        train(Train(task=PUSHING, out=tmp_path / "run", actor=words, num_envs=1))
    assert not (tmp_path / "run").exists()


def test_a_curriculum_that_is_refused_every_time_raises():
    outside = (0.24, 0.24, 0.03)  # of the arena, so that every draw is refused
    actor = Uniform(ranges={"goal_0/cartesian_position": (outside, outside)})
    venv = CurriculumVectorEnv(iv.make_vec(PUSHING, 8), Curriculum(stages=(Stage(actor=actor),)))
    venv.reset(seed=0)
    with pytest.raises(InvalidValueError, match=r"each of the first 16 starts .* refused: goal_0"):
        venv.reset(seed=1)
    venv.close()


def test_a_start_that_changes_nothing_does_not_count_as_taken():
    # Episode 0 asks for what holds already; every later one is refused.
    goal = "goal_0/cartesian_position"
    default = iv.make(PUSHING).variables[goal].default
    actor = Interpolation(target={goal: (0.24, 0.24, 0.03)}, episodes=1)
    venv = CurriculumVectorEnv(iv.make_vec(PUSHING, 16), Curriculum(stages=(Stage(actor=actor),)))
    venv.reset(seed=0)
    assert (venv.unwrapped.values[goal] == default).all()
    with pytest.raises(InvalidValueError, match="each of the first 16 starts"):
        venv.reset()
    venv.close()


def test_a_curriculum_that_a_task_has_no_room_for_raises_at_the_start():
    venv = iv.make_vec("trifinger/towers-v1", 16, space="B", max_blocks=5, contact="convex")
    under = CurriculumVectorEnv(venv, Curriculum(stages=(Stage(actor=Everything()),)))
    with pytest.raises(InvalidValueError, match=r"first 16 starts .* refused: .*max_blocks=\d+"):
        under.reset(seed=0)
    venv.close()


def test_a_goal_stands_on_the_floor_with_the_size_that_is_drawn_with_it():
    sizes, goals = "block_0/size", "goal_0/cylindrical_position"
    for patterns in ((sizes, goals), ("goal_0/size", "block_0/cylindrical_position", goals)):
        venv = iv.make_vec(PUSHING, 50)
        stages = (Stage(actor=Uniform(patterns=patterns)),)
        under = CurriculumVectorEnv(venv, Curriculum(stages=stages))
        under.reset(seed=0)
        assert not under.hook.refused.any()
        values = venv.values
        for thing in ("block_0", "goal_0"):
            height = values[f"{thing}/cartesian_position"][:, 2]
            assert height == pytest.approx(values[f"{thing}/size"][:, 2] / 2)
        assert np.ptp(values[sizes][:, 2]) > 0.01
        venv.close()


SIZE, GOAL = "block_0/size", "goal_0/cylindrical_position"


@pytest.mark.parametrize(
    "actors",
    [
        (Uniform(patterns=(SIZE,)), Goals()),
        (Uniform(patterns=(SIZE,)), RigidPose(orientations=False)),
        (Everything(), Goals()),
        (AgentDriven(patterns=(GOAL, SIZE)),),
        (Uniform(patterns=(SIZE,)), Adaptive(patterns=(GOAL,), share=0.5)),
        (Uniform(patterns=(SIZE,)), Interpolation(target={GOAL: (0.09, 1.0, 0.0325)}, episodes=1)),
    ],
    ids=lambda actors: "+".join(type(actor).__name__ for actor in actors),
)
def test_a_stage_sees_what_the_stages_before_it_drew(actors):
    venv = iv.make_vec(PUSHING, 20, space="A")
    stages = tuple(Stage(actor=actor) for actor in actors)
    under = CurriculumVectorEnv(venv, Curriculum(stages=stages))
    if isinstance(actors[0], AgentDriven):
        actors[0].choose(np.random.default_rng(0).uniform(-1.0, 1.0, (20, 6)))
    for seed in (0, None):
        under.reset(seed=seed)
    assert not under.hook.refused.any()
    values = venv.values
    assert np.ptp(values[SIZE][:, 2]) > 0.005
    assert values[GOAL][:, 2] == pytest.approx(values[SIZE][:, 2] / 2)
    venv.close()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_no_share_of_an_adaptive_actor_is_refused(share):
    patterns = ("block_0/orientation", "block_0/cylindrical_position", "finger_*/mass", "*/color")
    curriculum = Curriculum(stages=(Stage(actor=Adaptive(patterns=patterns, share=share)),))
    venv = CurriculumVectorEnv(iv.make_vec(PUSHING, 20, space="A"), curriculum)
    assert starts_in_b(venv, 2) == set()
    turns = venv.unwrapped.values["block_0/orientation"]
    assert (np.ptp(turns[:, 2]) > 0.3) == (share > 0.05)
    assert np.abs(np.linalg.norm(turns, axis=1) - 1.0).max() < 1e-12
    assert venv.hook.refused.sum() == 0
    venv.close()


@pytest.mark.parametrize("name", ["block_0/mass", "goal_0/cylindrical_position"])
def test_a_target_outside_the_space_needs_its_word(name):
    target = {name: 0.09 if name == "block_0/mass" else (0.14, 0.0, 0.0325)}
    for world in ("A", "A_B"):
        env, actor = iv.make(PUSHING, space=world), Interpolation(target=target, episodes=1)
        with pytest.raises(InvalidValueError, match=rf"{name}.*outside space A\b.*space='A_B'"):
            CurriculumEnv(env, Curriculum(stages=(Stage(actor=actor),)))
    asked = Interpolation(target=target, episodes=1, space="A_B")
    under = CurriculumEnv(env, Curriculum(stages=(Stage(actor=asked),)))
    for seed in (0, None):
        under.reset(seed=seed)
    assert env.values[name] == pytest.approx(np.asarray(target[name]))


def test_a_range_of_ones_own_is_drawn():
    actor = Uniform(ranges={"block_0/friction": (0.2, 0.9), "robot/action_delay": (0, 2)})
    env = CurriculumEnv(iv.make(PUSHING), Curriculum(stages=(Stage(actor=actor),)))
    seen = []
    for episode in range(20):
        env.reset(seed=0 if episode == 0 else None)
        values = env.unwrapped.values
        seen.append((float(values["block_0/friction"]), int(values["robot/action_delay"])))
    frictions, delays = zip(*seen, strict=True)
    assert 0.2 <= min(frictions) < 0.4 < 0.7 < max(frictions) <= 0.9
    assert set(delays) == {0, 1, 2}


def test_a_seed_of_starts_is_refused_for_it_comes_too_late():
    env = iv.make("control/cartpole_balance-v1", observation="state")
    actor = Uniform(ranges={"dynamics_seed": (5, 5)})
    wrapped = CurriculumEnv(env, Curriculum(stages=(Stage(actor=actor),)))
    with pytest.raises(
        InvalidValueError, match="dynamics_seed, which acts where an episode starts"
    ):
        wrapped.reset(seed=0)


def test_an_actor_of_ones_own_may_have_fields_that_are_set_later():
    @dataclass
    class Own(Actor):
        mean: float = field(init=False)
        where: np.Nothing = None

        def act(self, moment):
            return {}

    assert Stage(actor=Own()).step == 0


# ------------------------------------------------------------------------------- the agent's


def test_an_agent_chooses_for_some_worlds_with_spaces_that_depend_on_values():
    venv = iv.make_vec(SLIDER, 4)
    venv.reset(seed=0)
    sizes = np.full((4, 3), 0.1)
    sizes[2] = 0.14
    venv.do({"box/size": sizes})
    actor = AgentDriven(patterns=("box/position",))
    actor.choose(np.zeros((4, 3)))
    worlds = np.array([1, 2])
    noise = Noise(*np.zeros((3, 2), int))
    drawn = actor.act(Moment(venv.driver, worlds, noise, "A"))["box/position"]
    assert drawn[:, 2].tolist() == [0.05, 0.07]
