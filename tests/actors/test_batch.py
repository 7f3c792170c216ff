"""A batch under a curriculum equals its single worlds, bit for bit, also across autoresets."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import interverse as iv
from interverse.actors.actor import Actor
from interverse.actors.curriculum import Curriculum, Stage, paper_curriculum
from interverse.actors.uniform import Uniform
from interverse.actors.wrappers import CurriculumEnv, CurriculumVectorEnv
from interverse.core.rng import generator

SLIDER = "tutorial/slider-v1"
LENGTH = 4  # steps of an episode


def curriculum(step, start):
    """Draws at the start and within episodes; positions are often refused."""
    return Curriculum(
        stages=(
            Stage(actor=Uniform(patterns=("box/mass", "goal/*"))),
            Stage(actor=Uniform(patterns=("box/position", "box/size"), space="A_B"), step=step),
        ),
        start=start,
    )


def action(seed, t):
    return generator(seed=seed, name="push", step=t).uniform(-1, 1, 2).astype(np.float32)


def rows_of(info, i):
    return {n: v[i] for n, v in info.items() if not n.startswith("_") and info["_" + n][i]}


def single(seed, stages, steps, late):
    """Plays one world as NEXT_STEP autoreset does: the step after an end is a reset."""
    env = CurriculumEnv(iv.make(SLIDER, max_steps=LENGTH), stages)
    seen, info = env.reset(seed=seed)
    out, ended = [(seen, 0.0, False, False, info)], False
    for t in range(steps):
        if t == late:
            env.reset()
            ended = False
        if ended:
            seen, info = env.reset()
            out.append((seen, 0.0, False, False, info))
            ended = False
            continue
        out.append(env.step(action(seed, t)))
        ended = out[-1][2] or out[-1][3]
    return out, env.hook.refused.tolist()


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    seed=st.integers(0, 1000),
    step=st.integers(1, 3),
    start=st.sampled_from(["per_episode", "cumulative"]),
    late=st.integers(0, 3),
)
def test_a_batch_under_a_curriculum_is_its_singles(seed, step, start, late):
    """World 1 is reset in mid-episode of the others, so that their ends fall on different steps."""
    n, steps = 3, 11
    venv = CurriculumVectorEnv(iv.make_vec(SLIDER, n, max_steps=LENGTH), curriculum(step, start))
    seen, info = venv.reset(seed=seed)
    batch = [(seen, np.zeros(n), np.zeros(n, bool), np.zeros(n, bool), info)]
    for t in range(steps):
        if t == late:
            venv.reset(options={"reset_mask": np.arange(n) == 1})
        batch.append(venv.step(np.stack([action(seed + i, t) for i in range(n)])))
    for i in range(n):
        alone, refused = single(seed + i, curriculum(step, start), steps, late if i == 1 else -1)
        for t, (one, many) in enumerate(zip(alone, batch, strict=True)):
            where = (i, t)
            assert np.array_equal(one[0], many[0][i]), where
            assert one[1:4] == tuple(part[i] for part in many[1:4]), where
            theirs = rows_of(many[4], i)
            assert one[4].keys() == theirs.keys(), where
            assert all(np.array_equal(one[4][k], theirs[k]) for k in theirs), where
        assert refused == [venv.hook.refused[i]]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_worlds_that_go_on_keep_their_own_step_when_another_is_reset(mode):
    """World 0 ends a step before world 1, whose curriculum moves the box at that very step."""
    stages = Curriculum(stages=(Stage(actor=Uniform(patterns=("box/position",)), step=3),))
    make = {"max_steps": 6, "autoreset_mode": mode}
    venv = CurriculumVectorEnv(iv.make_vec(SLIDER, 2, **make), stages)
    venv.reset(seed=0)
    for t in range(3):
        venv.step(np.stack([action(i, t) for i in range(2)]))
    venv.reset(options={"reset_mask": np.array([False, True])})  # world 1 starts anew
    env = CurriculumEnv(iv.make(SLIDER, max_steps=6), stages)
    env.reset(seed=1)
    env.reset()
    for t in range(6):
        _, reward, _, _, info = venv.step(np.stack([action(i, t) for i in range(2)]))
        _, alone, _, ended, told = env.step(action(1, t))
        assert reward[1] == alone, t
        assert info["success"][1] == told["success"], t
        assert info["refused_interventions"][1] == told["refused_interventions"]
        assert ended or info["_refused_interventions"][1]
        if ended:
            break


def positions(names):
    """Sets positions in one episode and sizes in the next, so that worlds set them in turns."""
    first, second = (Uniform(patterns=(name,), space="A_B") for name in names)
    stages = (Stage(actor=first, period=2), Stage(actor=second, first=1, period=2))
    return Curriculum(stages=stages, start="cumulative")


def test_what_is_carried_keeps_the_order_of_its_own_world():
    stages = positions(("box/position", "box/size"))
    venv = CurriculumVectorEnv(iv.make_vec(SLIDER, 2), stages)
    venv.reset(seed=9, options={"episode": [0, 1]})
    alone = [CurriculumEnv(iv.make(SLIDER), stages) for _ in range(2)]
    for i, env in enumerate(alone):
        env.reset(seed=9 + i, options={"episode": i})
    for _ in range(4):
        venv.reset()
        for i, env in enumerate(alone):
            env.reset()
            for name, value in env.unwrapped.values.items():
                np.testing.assert_array_equal(venv.unwrapped.values[name][i], value, name)


@pytest.mark.parametrize("number", [1, 2])
def test_a_batch_under_the_paper_s_curricula_is_its_singles(number):
    """Worlds whose coins fall differently set other names, and so have logs of other lengths."""
    task, count = "trifinger/pushing-v1", 6
    venv = CurriculumVectorEnv(iv.make_vec(task, count), paper_curriculum(number))
    alone = [CurriculumEnv(iv.make(task), paper_curriculum(number)) for _ in range(count)]
    venv.reset(seed=11)
    for i, env in enumerate(alone):
        env.reset(seed=11 + i)
    for _ in range(4):
        venv.reset()
        for i, env in enumerate(alone):
            env.reset()
            for name, value in env.unwrapped.values.items():
                np.testing.assert_array_equal(venv.unwrapped.values[name][i], value, name)


def test_what_is_carried_comes_back_from_a_checkpoint_in_its_order():
    stages = positions(("box/position", "box/size"))
    one, other = (CurriculumVectorEnv(iv.make_vec(SLIDER, 2), stages) for _ in range(2))
    one.reset(seed=9, options={"episode": [0, 1]})
    for _ in range(3):
        one.reset()
    other.reset(seed=9, options={"episode": [3, 4]})
    other.hook.load(one.hook.save())
    one.reset()
    other.reset()
    for name, rows in one.unwrapped.values.items():
        np.testing.assert_array_equal(other.unwrapped.values[name], rows, name)


class Listener(Actor):
    """Counts the episodes that it is told about."""

    def __init__(self):
        self.heard = np.zeros(2, dtype=np.int64)

    def act(self, moment):
        return {"box/mass": moment.values("box/mass") * 0 + 0.3}

    def on_episode_end(self, success, worlds):
        self.heard[worlds] += 1


def test_actors_hear_of_every_episode_that_ends():
    actor = Listener()
    venv = CurriculumVectorEnv(
        iv.make_vec(SLIDER, 2, max_steps=2), Curriculum(stages=(Stage(actor=actor),))
    )
    venv.reset(seed=0)
    for t in range(8):  # two steps and a reset, again and again
        venv.step(np.stack([action(i, t) for i in range(2)]))
    assert actor.heard.tolist() == [3, 3]
