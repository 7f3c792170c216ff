"""The named benchmarks of control, and the dm_env interface held against dm_control's own."""

from __future__ import annotations

import itertools
import random

import gymnasium as gym
import numpy as np
import pytest
from absl.testing import absltest
from dm_env import StepType, test_utils

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.envs import remastered
from interverse.envs.dm import DmEnv
from interverse.protocols import remastered as protocols
from interverse.worlds.control.suite import suite

_SMALL = {"image_size": 16, "quality": "fast", "frame_stack": 1, "max_steps": 3}
_ID = "control/cartpole_balance-v1"


def _seeds(env: gym.Env, episodes: int) -> list[tuple[int, int]]:
    found = []
    for episode in range(episodes):
        _, info = env.reset(seed=7 if episode == 0 else None)
        found.append((int(info["visual_seed"]), int(info["dynamics_seed"])))
    return found


# --------------------------------------------------------------------------- seed ranges


@pytest.mark.parametrize("ranges", [remastered.LOOKS, remastered.STARTS])
def test_no_seed_is_in_two_splits(ranges):
    assert list(ranges) == ["train", "valid", "test"]
    ordered = list(ranges.values())
    for before, after in itertools.pairwise(ordered):
        assert before.stop <= after.start
    assert all(each.step == 1 for each in ordered)


def test_ranges_are_those_of_the_protocols():
    found = protocols.TRAIN_SEEDS, protocols.VALID_SEEDS, protocols.TEST_SEEDS
    assert tuple(remastered.LOOKS.values()) == found
    assert remastered.DEFAULT_LOOK == protocols.DEFAULT_LOOK
    for protocol in protocols.REMASTERED:  # their starting states are nobody's training
        assert max(protocol.grid["dynamics_seed"]) < remastered.STARTS["train"][0]


def test_levels_are_exactly_as_many_as_asked_for():
    for count in (1, 2, 10, 999_999):
        options = remastered.split_options(
            "visual_generalization", "train", "walker/walk", num_levels=count
        )
        low, high = options["visual_seed"]
        assert high - low + 1 == count
        assert low in remastered.LOOKS["train"]
        assert high in remastered.LOOKS["train"]


def test_two_levels_are_two_looks_and_not_three():
    train, test = remastered.visual_generalization(_ID, 2, observation="state")
    low, high = train.world.options.visual_seed
    assert {look for look, _ in _seeds(train, 24)} == {low, high}
    assert not {look for look, _ in _seeds(test, 24)} & set(remastered.LOOKS["train"])


def test_which_levels_is_up_to_the_levels_seed_alone():
    def chosen(seed: int) -> tuple[int, int]:
        random.seed(np.random.default_rng().integers(99).item())
        return remastered.split_options(
            "visual_sim2real", "train", _ID, num_levels=5, levels_seed=seed
        )["visual_seed"]

    assert chosen(3) == chosen(3)
    assert len({chosen(seed) for seed in range(20)}) == 20


# ---------------------------------------------------------------------------- benchmarks


def test_classic_shows_one_look_from_other_states():
    train, test = remastered.benchmark("classic", "cartpole/balance", visual_seed=6985, **_SMALL)
    assert train.spec.id == _ID
    looks, starts = zip(*_seeds(train, 4) + _seeds(test, 4), strict=True)
    assert set(looks) == {6985}
    assert len(set(starts)) == 8
    assert all(start in remastered.STARTS["train"] for start in starts[:4])
    assert all(start in remastered.STARTS["test"] for start in starts[4:])


def test_sim2real_is_tested_in_the_default_look():
    train, test = remastered.visual_sim2real(_ID, 50, observation="state")
    assert all(look in remastered.LOOKS["train"] for look, _ in _seeds(train, 5))
    assert {look for look, _ in _seeds(test, 5)} == {0}
    valid = remastered.split_options("visual_sim2real", "valid", _ID, num_levels=50)
    assert valid["visual_seed"] == (1_000_000, 1_999_999)


def test_dynamics_differ_between_the_levels_and_from_the_test():
    train, test = remastered.dynamics_generalization("walker/walk", 2, observation="state")
    masses = [set(), set()]
    for found, env in zip(masses, (train, test), strict=True):
        for episode in range(10):
            _, info = env.reset(seed=1 if episode == 0 else None)
            assert info["visual_seed"] == 0
            found.add(float(env.values["dynamics/mass_scale"]))
            assert env.variables["torso/length"].space("A").contains(env.values["torso/length"])
    assert len(masses[0]) == 2
    assert len(masses[1]) == 10
    assert not masses[0] & masses[1]


def test_full_generalization_varies_both():
    train, test = remastered.full_generalization(_ID, observation="state")
    for env in (train, test):
        assert len({look for look, _ in _seeds(env, 4)}) == 4
        assert env.values["dynamics/mass_scale"] != 1.0


def test_vector_form_has_the_same_episodes():
    single = remastered.visual_generalization(_ID, 4, **_SMALL)
    vector = remastered.visual_generalization(_ID, 4, num_envs=2, **_SMALL)
    for env, venv in zip(single, vector, strict=True):
        assert isinstance(venv, gym.vector.VectorEnv)
        _, infos = venv.reset(seed=[5, 6])
        for i, seed in enumerate((5, 6)):
            _, info = env.reset(seed=seed)
            assert infos["visual_seed"][i] == info["visual_seed"]


def test_bad_input_is_named():
    with pytest.raises(UnknownNameError, match="benchmark"):
        remastered.benchmark("visual", _ID)
    with pytest.raises(UnknownNameError, match="control task"):
        remastered.classic("walker/fly")
    with pytest.raises(InvalidValueError, match="num_levels is 0"):
        remastered.visual_generalization(_ID, 0)
    with pytest.raises(InvalidValueError, match="num_levels is None"):
        remastered.benchmark("visual_sim2real", _ID)
    with pytest.raises(InvalidValueError, match="at most 999999"):
        remastered.visual_generalization(_ID, 1_000_000)
    with pytest.raises(InvalidValueError, match="decides dynamics_seed itself"):
        remastered.classic(_ID, dynamics_seed=3)
    with pytest.raises(InvalidValueError, match="Only classic"):
        remastered.benchmark("full_generalization", _ID, visual_seed=4)


# -------------------------------------------------------------------------------- dm_env


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("task", ["cartpole/balance", "walker/walk"])
def test_dm_env_equals_dm_control(task, dtype):
    ours = DmEnv(remastered.task_id(task), observation="state", dynamics_seed=11)
    theirs = suite.load(*task.split("/"), task_kwargs={"random": 11})
    spec, stock = ours.action_spec(), theirs.action_spec()
    assert spec.shape == stock.shape
    np.testing.assert_array_equal(spec.minimum, stock.minimum)
    sizes = {name: int(np.prod(s.shape)) for name, s in theirs.observation_spec().items()}
    assert {name: s.shape[0] for name, s in ours.observation_spec().items()} == sizes
    pair = ours.reset(), theirs.reset()
    rng = np.random.default_rng(0)
    for _ in range(20):
        for name, value in pair[1].observation.items():
            np.testing.assert_array_equal(pair[0].observation[name], np.ravel(value))
        assert pair[0][:3] == pair[1][:3]  # step type, reward, discount
        action = rng.uniform(-1, 1, spec.shape).astype(dtype)
        pair = ours.step(action), theirs.step(action.astype(np.float64))


def test_dm_env_ends_at_the_time_limit_as_dm_control_does():
    ours = DmEnv(_ID, observation="state", frame_skip=8)
    theirs = suite.load("cartpole", "balance")
    lengths = []
    for env, skip in ((ours, 8), (theirs, 1)):
        last = env.reset()
        assert last.first()
        assert last.reward is None
        assert last.discount is None
        count = 0
        while not last.last():
            last, count = env.step(np.zeros(1)), count + skip
        assert last.discount == 1.0
        assert env.step(np.zeros(1)).step_type == StepType.FIRST
        lengths.append(count)
    assert lengths == [1000, 1000]


def test_dm_env_wraps_an_environment_that_was_made():
    train, _ = remastered.classic(_ID, **_SMALL)
    env = DmEnv(train, seed=4)
    assert env.reset().observation.shape == (3, 16, 16)
    env.gymnasium.do({"visual_seed": 9})
    with pytest.raises(InvalidValueError, match="Give an id"):
        DmEnv(train, image_size=32)


class DmEnvTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
    """dm_env's own conformance tests."""

    def make_object_under_test(self):
        return DmEnv("control/reacher_easy-v1", **_SMALL)


class DmEnvDictTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
    """The same on an observation of several parts."""

    def make_object_under_test(self):
        return DmEnv(_ID, observation=("pixels", "state", "depth"), **_SMALL)
