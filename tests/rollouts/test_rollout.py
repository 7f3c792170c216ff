"""Rollouts, episodes on disk, counterfactuals: on the toy world, where all is known."""

import warnings

import gymnasium as gym
import h5py
import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import ActionError, FileFormatError, InvalidValueError
from interverse.envs import Snapshot
from interverse.rollouts.episode import EpisodeFolder, EpisodeWriter
from interverse.rollouts.policy import as_policy
from tests.envs.toy import ID, ensure_registered

SLIDER = "tutorial/slider-v1"

ensure_registered()


@pytest.fixture
def episode():
    return iv.rollout(ID, "random", seed=4, do={"gain": 1.2})


def test_shapes_and_record(episode):
    assert len(episode) == 20
    assert episode.observations.shape == (21, 3)
    assert episode.actions.shape == (20, 2)
    assert episode.rewards.shape == episode.terminated.shape == episode.truncated.shape == (20,)
    assert episode.truncated[-1]
    assert episode.values["gain"].shape == (21,)
    assert episode.info["distance"].shape == (20,)
    assert (episode.id, episode.seed, episode.episode) == (ID, 4, 0)
    assert episode.interventions[0].values == {"gain": 1.2}
    assert episode.version == iv.__version__


def test_the_random_policy_is_the_same_in_any_batch():
    from interverse.rollouts.policy import RandomPolicy

    space = iv.make(ID).action_space
    alone, many = RandomPolicy(space), RandomPolicy(space)
    alone.reset(np.ones(1, dtype=bool), np.array([7]))
    many.reset(np.ones(3, dtype=bool), np.array([1, 7, 9]))
    for _ in range(3):
        assert np.array_equal(alone(np.zeros((1, 3)))[0], many(np.zeros((3, 3)))[1])


def test_save_and_load_is_identity(episode, tmp_path):
    again = iv.Episode.load(episode.save(tmp_path / "deep" / "episode.h5"))
    assert again.fingerprint == episode.fingerprint
    assert again.interventions == episode.interventions
    assert np.array_equal(again.observations, episode.observations)
    assert list(tmp_path.glob("**/.*")) == []


def test_a_corrupt_file_is_refused(episode, tmp_path):
    path = episode.save(tmp_path / "episode.h5")
    whole = path.read_bytes()
    for bad in (b"", b"no file", whole[: len(whole) // 2]):
        path.write_bytes(bad)
        with pytest.raises(FileFormatError, match=r"episode\.h5 is no episode"):
            iv.Episode.load(path)
    path.write_bytes(whole)
    with h5py.File(path, "a") as file:
        file["rewards"][0] += 1.0
    with pytest.raises(FileFormatError, match="do not match their fingerprint"):
        iv.Episode.load(path)


def test_a_counterfactual_without_change_is_the_fact(episode):
    assert iv.counterfactual(episode, {}).fingerprint == episode.fingerprint


def test_a_counterfactual_differs_from_the_moment_of_the_change(episode):
    twin = iv.counterfactual(episode, {"gain": 2.0}, at=5)
    same = (twin.observations[:, :2] == episode.observations[:, :2]).all(axis=1)
    assert same[:6].all()
    assert not same[6:].any()
    assert np.array_equal(twin.actions, episode.actions)
    # x' = x + gain * action + noise: the difference is known exactly, the noise cancels.
    moved = np.cumsum(0.8 * episode.actions[5:].astype(float), axis=0)
    difference = twin.observations[6:, :2] - episode.observations[6:, :2]
    assert np.allclose(difference, moved, atol=1e-12)


def test_do_wins_over_the_facts_interventions(episode):
    twin = iv.counterfactual(episode, {"gain": 0.6})
    assert (twin.values["gain"] == 0.6).all()
    assert twin.interventions[0].values == {"gain": 0.6}


def test_the_facts_interventions_replay():
    env = iv.make(ID)

    def meddling(observations):
        if env.driver.steps[0] == 3:
            env.do({"gain": 1.9})
        if env.driver.steps[0] == 4:
            with pytest.raises(iv.InterventionError):
                env.do({"gain": 77.0})
        return np.ones((1, 2), dtype=np.float32)

    fact = iv.rollout(env, meddling, seed=2)
    assert [(i.step, i.values) for i in fact.interventions] == [(3, {"gain": 1.9})]
    assert [r.step for r in fact.refusals] == [4]
    assert fact.values["gain"][2:4].tolist() == [1.0, 1.9]
    twin = iv.counterfactual(fact, {"fence": 5})
    assert np.array_equal(twin.observations, fact.observations)
    late = iv.counterfactual(fact, {"gain": 0.5}, at=6)
    assert late.values["gain"][[2, 4, 6]].tolist() == [1.0, 1.9, 0.5]


def test_wrappers_above_do_not_disturb_the_record():
    env = gym.wrappers.RescaleAction(iv.make(ID), -0.5, 0.5)
    env = gym.wrappers.TransformReward(env, lambda r: 10 * r)
    fact = iv.rollout(env, lambda seen: np.full((1, 2), 0.25, dtype=np.float32), seed=1)
    assert np.allclose(fact.actions, 0.5)
    assert iv.counterfactual(fact, {}).fingerprint == fact.fingerprint


def test_shift_is_relative_to_the_fact(episode):
    twin = iv.counterfactual(episode, iv.Shift({"gain": 0.3}), at=2)
    assert twin.values["gain"][2] == pytest.approx(1.5)


@pytest.mark.parametrize("at", [-1, 21])
def test_a_time_outside_the_episode_is_refused(episode, at):
    with pytest.raises(InvalidValueError, match=f"at is {at}"):
        iv.counterfactual(episode, {}, at=at)


def test_a_policy_may_be_a_torch_module():
    import torch

    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    assert len(iv.rollout(ID, module, seed=0)) == 20


@pytest.mark.parametrize(
    ("bad", "match"), [(3, "cannot be a int"), ("randm", "Did you mean 'random'")]
)
def test_what_is_no_policy_is_refused(bad, match):
    with pytest.raises(iv.InterverseError, match=match):
        iv.rollout(ID, bad)


def test_a_foreign_environment_is_refused():
    with pytest.raises(InvalidValueError, match="env is a CartPoleEnv"):
        iv.rollout(gym.make("CartPole-v1"), "random")


@pytest.mark.parametrize("returned", [None, 3, [], np.zeros((3, 2), np.float32), {}])
def test_a_policy_without_one_action_for_its_world_is_told_so(returned):
    with pytest.raises(ActionError, match=r"the policy returned .* one row for each of 1 worlds"):
        iv.rollout("tutorial/slider-v1", lambda seen: returned, max_steps=2)


@pytest.mark.parametrize("steps", [-1, 1.5, "3"])
def test_the_number_of_steps_is_whole(steps):
    with pytest.raises(InvalidValueError, match="max_steps is"):
        iv.rollout("tutorial/slider-v1", "random", max_steps=steps)


@pytest.mark.parametrize("path", [None, 3])
def test_a_path_that_is_none_is_named(path):
    episode = iv.rollout("tutorial/slider-v1", "random", max_steps=1)
    for use in (episode.save, iv.Episode.load, EpisodeFolder, EpisodeWriter):
        with pytest.raises(InvalidValueError, match=f"is {path}. Allowed: a text, or the path"):
            use(path)
    with pytest.raises(InvalidValueError, match="data is None"):
        Snapshot.from_bytes(None)


class Counting:
    """Counts the steps of an episode; its `reset` takes nothing, as for a single environment."""

    def __init__(self):
        self.steps, self.seen = 0, []

    def reset(self):
        self.steps = 0

    def __call__(self, observations):
        self.seen.append(self.steps)
        self.steps += 1
        return np.zeros((len(observations), 2), dtype=np.float32)


def test_a_reset_without_arguments_serves_where_all_worlds_start_together():
    policy = Counting()
    for _ in range(2):
        iv.rollout("tutorial/slider-v1", policy, max_steps=3)
    assert policy.seen == [0, 1, 2] * 2
    given = as_policy(policy, iv.make("tutorial/slider-v1").world)
    with pytest.raises(InvalidValueError, match=r"reset\(\) takes no arguments, and only 1 of 2"):
        given.reset(np.array([True, False]), np.zeros(2, dtype=np.int64))


def test_an_intervention_that_a_rollout_undoes_is_told():
    env = iv.make(SLIDER)
    env.reset(seed=0)
    env.unwrapped.do({"box/mass": 0.8})
    with pytest.warns(UserWarning, match=r"intervention on box/mass is undone: pass do="):
        iv.rollout(env, "random", seed=1, max_steps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iv.rollout(env, "random", seed=1, max_steps=2, do={"box/mass": 0.8})


def test_random_episodes_that_are_one_are_told():
    env = iv.make(SLIDER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iv.rollout(env, "random", max_steps=2)
        iv.rollout(env, "random", max_steps=2, episode=1)
        iv.rollout(env, "random", max_steps=2, seed=0)
        iv.rollout(iv.make(SLIDER), "random", max_steps=2)
    iv.rollout(env, "random", max_steps=2)
    with pytest.warns(UserWarning, match="the last episode again, random actions and all"):
        iv.rollout(env, "random", max_steps=2)
