"""A batch under a curriculum equals its single worlds, bit for bit, also across autoresets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import interverse as iv
from interverse.actors.curriculum import Curriculum, Stage
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
