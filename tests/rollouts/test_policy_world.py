"""A policy is played in the world that it learned in, wherever that is written; or a line says."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.protocols.protocol import Protocol
from interverse.rollouts.policy import load_policy
from interverse.rollouts.policy_world import policy_world
from interverse.rollouts.saved import trained_policy

PUSHING, SLIDER = "trifinger/pushing-v1", "tutorial/slider-v1"
nn = pytest.importorskip("torch").nn
sb3 = pytest.importorskip("stable_baselines3")


def shipped():
    return load_policy(trained_policy("pushing_1"))


class Wraps:
    """A policy of one's own around a trained one."""

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, seen):
        return self.inner(seen)


def around(policy):
    return lambda seen: policy(seen)


class Ensemble:
    """The mean of several policies."""

    def __init__(self, *members):
        self.members = list(members)

    def __call__(self, seen):
        return np.mean([member(seen) for member in self.members], axis=0)


WRAPS = [around, Wraps, lambda p: Wraps(p).__call__, lambda p: partial(p)]
WRAPS += [lambda p: Ensemble(p, p), lambda p: Wraps({"a": p}["a"])]


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_trained_policy_inside_a_function_brings_its_options(wrap):
    known = policy_world(wrap(shipped()))
    assert known.task == PUSHING
    assert known.with_options({})["skip_frame"] == 3
    with pytest.raises(InvalidValueError, match="trained with skip_frame=3, and skip_frame=10"):
        iv.evaluate(wrap(shipped()), PUSHING, "P0", episodes=1, skip_frame=10)


def test_it_scores_what_the_policy_scores():
    given = {"protocols": "P0", "episodes": 1, "max_steps": 3}
    inside, bare = (iv.evaluate(p, PUSHING, **given) for p in (around(shipped()), shipped()))
    assert inside.data["trace"].equals(bare.data["trace"])


def test_policies_of_two_worlds_in_one_function_have_no_world():
    fast, slow = shipped(), load_policy(trained_policy("pushing_1"))
    slow.card.trained["options"] = {**slow.card.trained.get("options", {}), "skip_frame": 5}
    assert policy_world(lambda seen: fast(seen) + slow(seen)).task is None


def model(env, **given):
    made = sb3.PPO("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu", **given)
    made.num_timesteps = 8  # as if it had learned
    return made


def test_a_baseline_in_memory_brings_its_options_and_refuses_others():
    learned = model(iv.make(PUSHING, skip_frame=3, normalize_observations=False))
    assert policy_world(learned).task == PUSHING
    played = iv.evaluate(learned, PUSHING, "P0", episodes=1, max_steps=2, seed=5)
    assert played.provenance["options"]["skip_frame"] == 3
    assert played.provenance["options"]["normalize_observations"] is False
    raw = Protocol(name="raw", options={"normalize_observations": True})
    for given in ({"action_mode": "joint_torques"}, {"protocols": [raw]}):
        with pytest.raises(InvalidValueError, match="the policy was trained with"):
            iv.evaluate(learned, PUSHING, **({"protocols": "P0", "episodes": 1} | given))


def test_a_baseline_of_another_task_says_so(capsys):
    learned = model(iv.make("trifinger/picking-v1"))
    iv.evaluate(learned, PUSHING, "P0", episodes=1, max_steps=2, seed=5)
    assert "Trained for trifinger/picking-v1, plays trifinger/pushing-v1" in (
        capsys.readouterr().err
    )


class Halves(gym.ObservationWrapper):
    """Shows half of what the world shows, in a space of the same bounds."""

    def observation(self, observation):
        return observation / 2


class Repeats(gym.Wrapper):
    """Gives every action three times."""

    def step(self, action):
        for _ in range(2):
            self.env.step(action)
        return self.env.step(action)


class Weakens(gym.Wrapper):
    """Gives a tenth of every action."""

    def step(self, action):
        return self.env.step(0.1 * action)


class Shapes(gym.Wrapper):
    """Keeps the world as it is: rewards are no part of what a policy sees, nor are new masses."""

    def reset(self, **given):
        self.env.reset(**given)
        self.env.unwrapped.do({"box/mass": 0.8})
        return self.env.unwrapped.observe(), {}

    def step(self, action):
        seen, reward, *rest = self.env.step(action)
        return seen, reward - 1.0, *rest


def test_what_stands_between_a_baseline_and_its_world_is_asked_for(capsys):
    vec = sb3.common.vec_env
    plain = vec.DummyVecEnv([lambda: iv.make(SLIDER)])
    behind = {
        "VecNormalize": vec.VecNormalize(plain),
        "VecFrameStack": vec.VecFrameStack(plain, 3),
        "Halves": Halves(iv.make(SLIDER)),
        "RescaleAction": gym.wrappers.RescaleAction(iv.make(SLIDER), -2.0, 2.0),
        "Repeats": Repeats(iv.make(SLIDER)),
        "Weakens": gym.wrappers.TimeLimit(Weakens(iv.make(SLIDER)), 9),
    }
    for name, env in behind.items():
        learned = model(env)
        with pytest.raises(InvalidValueError, match=rf"learned behind .*{name}"):
            iv.evaluate(learned, SLIDER, "P0", episodes=1, max_steps=2)
        if name != "VecFrameStack":
            capsys.readouterr()
            by_hand = partial(lambda m, seen: m.predict(seen, deterministic=True)[0], learned)
            assert len(iv.evaluate(by_hand, SLIDER, "P0", episodes=1, max_steps=2, seed=5)) == 1
            assert f"{name}: the function must do the same" in capsys.readouterr().err
    normalise = behind["VecNormalize"].normalize_obs
    learned = model(behind["VecNormalize"])
    by_hand = lambda seen: learned.predict(normalise(seen), deterministic=True)[0]  # noqa: E731
    assert len(iv.evaluate(by_hand, SLIDER, "P0", episodes=1, max_steps=2)) == 1
    capsys.readouterr()
    for honest in (iv.make(SLIDER), Shapes(iv.make(SLIDER))):
        assert len(iv.evaluate(model(honest), SLIDER, "P0", episodes=1, max_steps=2)) == 1
        assert capsys.readouterr().err == ""


def test_a_model_that_never_learned_is_told(capsys, tmp_path):
    learned, fresh = (model(iv.make(SLIDER)) for _ in range(2))
    learned.save(tmp_path / "m.zip")
    fresh.num_timesteps = 0
    fresh.load(tmp_path / "m.zip", device="cpu")  # dropped, as many do
    given = {"task": SLIDER, "protocols": "P0", "episodes": 1, "max_steps": 2}
    for policy in (fresh, lambda seen: fresh.predict(seen, deterministic=True)[0]):
        iv.evaluate(policy, **given)
        assert "The model has learned for 0 steps. `load` returns" in capsys.readouterr().err
    iv.evaluate(sb3.PPO.load(tmp_path / "m.zip", device="cpu"), **given)
    assert "learned" not in capsys.readouterr().err


def test_predict_is_no_policy_by_itself():
    learned = model(iv.make(SLIDER))
    with pytest.raises(iv.InterverseError, match=r"returned a tuple.*Return its first part"):
        iv.evaluate(learned.predict, SLIDER, "P0", episodes=1, max_steps=2)
    assert len(iv.evaluate(learned.policy, SLIDER, "P0", episodes=1, max_steps=2)) == 1


def test_a_zip_has_its_bounds_and_no_world(tmp_path, capsys):
    model(iv.make(PUSHING, skip_frame=3)).save(tmp_path / "plain.zip")
    told = iv.evaluate(tmp_path / "plain.zip", PUSHING, "P0", episodes=1, max_steps=2)
    line = "No world recorded: played with skip_frame=10, joint_positions"
    assert line in capsys.readouterr().err
    assert line in told.provenance["notes"][0]
    model(gym.wrappers.RescaleAction(iv.make(SLIDER), -2.0, 2.0)).save(tmp_path / "wide.zip")
    for given in (tmp_path / "wide.zip", sb3.PPO.load(tmp_path / "wide.zip", device="cpu")):
        with pytest.raises(InvalidValueError, match=r"acts from -2 to 2, and .* from -1 to 1"):
            iv.evaluate(given, SLIDER, "P0", episodes=1, max_steps=2)


def test_a_torch_module_has_no_world_and_a_function_of_ones_own_needs_none(capsys):
    network = nn.Sequential(nn.Linear(56, 9), nn.Tanh())
    given = {"protocols": "P0", "episodes": 1, "max_steps": 2}
    iv.evaluate(network, PUSHING, **given)
    assert "No world recorded" in capsys.readouterr().err
    iv.evaluate(lambda seen: np.zeros((len(seen), 9), dtype=np.float32), PUSHING, **given)
    assert capsys.readouterr().err == ""
