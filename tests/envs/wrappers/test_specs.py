"""Every wrapper of a single environment is made again from its spec, or says that it cannot be."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import interverse as iv
from interverse.actors.adaptive import Adaptive
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.uniform import Uniform
from interverse.actors.wrappers import CurriculumEnv
from interverse.envs.wrappers import GoalDict, MovingAverageAction, ObjectSelector, StartingState
from interverse.rollouts.runner import RecordEpisodes

PUSHING = "trifinger/pushing-v1"
MASSES = Curriculum(stages=(Stage(actor=Uniform(patterns=("block_0/mass",))),))


@pytest.mark.parametrize(
    "wrap",
    [
        GoalDict,
        lambda env: MovingAverageAction(env, window=3),
        ObjectSelector,
        StartingState,
        lambda env: CurriculumEnv(env, MASSES),
        lambda env: GoalDict(CurriculumEnv(env, MASSES)),
    ],
    ids=["goals", "mean", "selector", "start", "curriculum", "both"],
)
def test_a_wrapped_environment_is_made_again_from_its_spec(wrap):
    first = wrap(iv.make(PUSHING, skip_frame=1))
    second = gym.make(first.spec)
    assert str(second) == str(first)
    for env in (first, second):
        env.action_space.seed(0)
        env.reset(seed=0)
    for _ in range(3):
        one, other = (env.step(env.action_space.sample()) for env in (first, second))
        assert one[1] == other[1]
    masses = [float(env.unwrapped.values["block_0/mass"]) for env in (first, second)]
    assert masses[0] == masses[1]


def test_what_an_actor_learns_stays_with_its_own_environment():
    actor = Adaptive(patterns=("block_0/mass",), window=1, step=0.5)
    first = CurriculumEnv(iv.make(PUSHING), Curriculum(stages=(Stage(actor=actor),)))
    second = gym.make(first.spec)
    first.hook.curriculum.on_episode_end(np.ones(1), np.arange(1))
    assert actor.share == 0.5
    assert second.hook.curriculum.stages[0].actor.share == 0.0


def test_a_recorder_is_not_made_again_beside_the_first(tmp_path):
    env = RecordEpisodes(iv.make("tutorial/slider-v1"), tmp_path)
    with pytest.raises(ValueError, match=r"RecordEpisodes wrapper .* cannot be recreated"):
        gym.make(env.spec)
