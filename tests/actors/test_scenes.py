"""Draws in tasks that build their scene: what is there follows from what is drawn."""

import numpy as np
import pytest

import interverse as iv
from interverse.actors.actor import Moment
from interverse.actors.adaptive import Adaptive, Adversarial
from interverse.actors.curriculum import Curriculum, Stage, paper_curriculum
from interverse.actors.uniform import Everything, Uniform
from interverse.actors.wrappers import CurriculumVectorEnv
from interverse.core.rng import Noise
from interverse.envs.wrappers import sample_new_goal
from interverse.protocols.protocol import Region

ROOM = [
    ("towers", None),
    ("towers", 27),
    ("stacked_blocks", None),
    ("stacked_blocks", 40),
    ("creative_stacked_blocks", None),
    ("general", 6),
]


def make_vec(task, count, room, **options):
    more = {} if room is None else {"max_blocks": room}
    return iv.make_vec(f"trifinger/{task}-v1", count, skip_frame=1, **more, **options)


@pytest.mark.parametrize(("task", "room"), ROOM)
def test_everything_can_start_where_a_scene_is_built(task, room):
    venv = CurriculumVectorEnv(make_vec(task, 6, room, max_steps=1), paper_curriculum(2))
    counts = set()
    venv.reset(seed=0)
    for _ in range(2):
        venv.reset()
        counts |= set(venv.unwrapped.world._store.rows["block/used"].sum(axis=1).tolist())
    assert venv.tried.tolist() == [3] * 6
    assert venv.refused.sum() <= 1
    assert len(counts) > 1
    venv.close()


@pytest.mark.parametrize("task", ["towers", "stacked_blocks"])
def test_a_protocol_of_everything_is_accepted(task):
    venv = make_vec(task, 4, None)
    venv.reset(seed=0)
    assert Region(rest="A").protocol("all").apply(venv.driver, np.arange(4)) == {}
    venv.close()


def test_pieces_of_a_drawn_scene_can_be_set_beside_it():
    env = iv.make("trifinger/towers-v1", max_blocks=8)
    env.reset(seed=0)
    tower = {"tower/counts": (2, 2, 2), "tower/dims": (0.1, 0.1, 0.1)}
    env.do(tower | {"block_7/color": (0.5, 0.5, 0.5), "goal_7/color": (0.5, 0.5, 0.5)})
    assert env.values["block_7/color"].tolist() == [0.5, 0.5, 0.5]
    with pytest.raises(iv.InterventionError, match=r"block_7 is not in use.*tower/counts"):
        env.do({"tower/counts": (1, 1, 2), "block_7/color": (0.7, 0.5, 0.5)})
    with pytest.raises(iv.InterventionError, match="max_blocks=27"):
        env.do({"tower/counts": (3, 3, 3), "block_7/color": (0.7, 0.5, 0.5)})
    env.close()


@pytest.mark.parametrize(
    "actor",
    [
        Uniform(patterns=("block_*/color",)),
        Adaptive(patterns=("block_*/color",), share=0.5),
        Adversarial(patterns=("block_*/color",), critic=lambda m, c: np.zeros(len(m.worlds))),
        Everything(),
    ],
    ids=lambda actor: type(actor).__name__,
)
def test_objects_that_are_not_there_are_not_drawn(actor):
    venv = CurriculumVectorEnv(
        make_vec("towers", 4, 9, max_steps=1), Curriculum(stages=(Stage(actor=actor),))
    )
    venv.reset(seed=0)
    assert not venv.refused.any()
    assert np.all(venv.unwrapped.values["block_0/color"][:, 1] != 0.0)
    venv.close()


def test_what_a_drawn_scene_builds_is_not_drawn_unless_asked_for():
    venv = make_vec("towers", 2, 27)
    venv.reset(seed=0)
    noise = Noise(*(np.arange(2) for _ in range(3)))
    moment = Moment(venv.driver, np.arange(2), noise, "A")
    drawn, asked = Everything().act(moment), Everything(but={"block_0/mass": "B"}).act(moment)
    assert not {"block_0/mass", "block_0/orientation"} & drawn.keys()
    assert {"tower/counts", "blocks/mass", "block_0/color"} <= drawn.keys()
    assert asked.keys() - drawn.keys() == {"block_0/mass"}
    assert all(np.array_equal(asked[name], values) for name, values in drawn.items())
    venv.close()


@pytest.mark.parametrize("task", ["towers", "general", "stacked_blocks", "pick_and_place"])
def test_a_sampled_goal_is_one_that_the_world_accepts(task):
    venv = iv.make_vec(f"trifinger/{task}-v1", 10, skip_frame=1)
    venv.reset(seed=0)
    before = venv.snapshot().arrays
    goal = sample_new_goal(venv)
    after = venv.snapshot().arrays
    assert all(np.array_equal(before[name], after[name]) for name in before)
    outcome = venv.do(goal)
    assert outcome.applied.all(), outcome.reasons
    venv.close()


def test_goals_have_numbers_of_any_size():
    env = iv.make("trifinger/pushing-v1")
    env.reset(seed=0)
    assert env.do(sample_new_goal(env, draw=2**62)).applied
    env.close()
