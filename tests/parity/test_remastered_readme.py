"""What the README of DMC Remastered shows, called as there: each of its lines makes our worlds."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.envs import remastered as dmcr
from interverse.envs.make import make
from interverse.protocols.remastered import ZERO_SHOT
from interverse.worlds.control.looks import SWITCHES

_FAST = {"quality": "fast", "max_steps": 2}


def _looks(env: gym.Env, episodes: int = 4) -> set[int]:
    return {int(env.reset(seed=seed)[1]["visual_seed"]) for seed in range(episodes)}


def _is_ours(env: gym.Env, id: str, pixels: tuple[int, ...] = (9, 84, 84)) -> None:
    assert isinstance(env, gym.Env)
    assert env.spec is not None
    assert env.spec.id == id
    assert env.observation_space == gym.spaces.Box(0, 255, pixels, np.uint8)


@pytest.mark.parametrize("look", [6985, 0])
def test_classic(look):
    pair = dmcr.classic("walker", "walk", visual_seed=look, **_FAST)
    for env in pair:
        _is_ours(env, "control/walker_walk-v1")
        assert _looks(env, 2) == {look}


@pytest.mark.parametrize(
    ("name", "domain", "task"),
    [("visual_generalization", "hopper", "stand"), ("visual_sim2real", "cheetah", "run")],
)
def test_levels(name, domain, task):
    train, test = getattr(dmcr, name)(domain, task, num_levels=100, **_FAST)
    for env in (train, test):
        _is_ours(env, f"control/{domain}_{task}-v1")
    low, high = train.world.options.visual_seed
    assert high - low == 99
    assert all(low <= look <= high for look in _looks(train))
    assert not any(low <= look <= high for look in _looks(test))
    assert (_looks(test) == {0}) == (name == "visual_sim2real")


@pytest.mark.parametrize("factor", ["floor", "body"])
def test_one_factor_varies(factor):
    train, test = dmcr.visual_generalization(
        "walker", "walk", num_levels=100, vary=[factor], **_FAST
    )
    for env in (train, test):
        assert env.world.options.vary == (factor,)
        default, _ = env.reset(seed=0, options={"visual_seed": 0, "dynamics_seed": 1})
        other, _ = env.reset(seed=0, options={"visual_seed": 7, "dynamics_seed": 1})
        assert (default != other).any()
        assert env.values["camera/position"].tolist() == pytest.approx([0.0, -2.0, 0.7])
    assert dmcr.DMCR_VARY == SWITCHES


def test_sizes_stack_and_skip():
    shape = {"frame_stack": 2, "frame_skip": 4, "height": 100, "width": 60}
    train, test = dmcr.visual_generalization("hopper", "stand", num_levels=100, **shape, **_FAST)
    for env in (train, test):
        _is_ours(env, "control/hopper_stand-v1", (6, 100, 60))
        assert env.world.options.frame_skip == 4


def test_make_fixes_both_seeds():
    env = dmcr.make("cheetah", "run", dynamics_seed=298, visual_seed=13, **_FAST)
    _is_ours(env, "control/cheetah_run-v1")
    first, info = env.reset(seed=0)
    again, _ = env.reset(seed=1)
    assert (info["visual_seed"], info["dynamics_seed"]) == (13, 298)
    np.testing.assert_array_equal(first, again)
    with pytest.raises(InvalidValueError, match="camera_id is 1"):
        dmcr.make("cheetah", "run", camera_id=1)


def test_arguments_by_position_and_ids():
    """The order of the original's arguments, and the task in one name."""
    env = dmcr.make("cheetah", "run", 13, 298, 1, 20, 30, 0, 4, True)
    _is_ours(env, "control/cheetah_run-v1", (20, 30, 3))
    by_place = dmcr.visual_sim2real("walker/walk", 5, observation="state")
    by_name = dmcr.visual_sim2real("walker", "walk", 5, observation="state")
    for one, other in zip(by_place, by_name, strict=True):
        assert one.world.options == other.world.options
    with pytest.raises(InvalidValueError, match="task is 5"):
        dmcr.visual_sim2real("walker", 5, 5)
    with pytest.raises(InvalidValueError, match="image_size is given twice"):
        dmcr.classic("walker", "walk", height=20, image_size=20)


def test_paper_test_as_a_loop_and_as_a_protocol():
    """An agent of one's own is tested in looks it never saw, by their loop and by ours."""

    def agent(observations: np.ndarray) -> np.ndarray:
        return np.zeros((len(observations), 1), np.float32)

    shape = {"height": 16, "width": 16, "frame_stack": 1, **_FAST}
    returns = []
    for look in np.random.default_rng(0).integers(1, 100_000_000, 2).tolist():
        _, test = dmcr.classic("cartpole", "balance", visual_seed=look, **shape)
        for _ in range(3):
            observation, _ = test.reset()
            done, total = False, 0.0
            while not done:
                observation, reward, terminated, done, _ = test.step(agent(observation[None])[0])
                total += reward
                assert not terminated
            returns.append(total)
    assert len(returns) == 6

    assert [len(set(values)) for values in ZERO_SHOT.grid.values()] == [100, 300]
    small = {"image_size": 16, "frame_stack": 1, **_FAST}
    found = iv.evaluate(
        agent, task="control/cartpole_balance-v1", protocols="train,zero_shot", episodes=3, **small
    )
    assert set(found.protocols) == {"train", "zero_shot"}


def test_pictures_are_drawn_as_their_bytes():
    """No texture is decoded as sRGB, which would draw a byte of 128 as 55."""
    env = make("control/walker_walk-v1", visual_seed=7, **_FAST)
    env.reset(seed=0)
    assert 2 not in env.world.physics.model.ptr.tex_colorspace
