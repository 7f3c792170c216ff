"""Sequences of actions in one room: factors of every frame, nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.worlds.rooms import generate_sequence

SMALL = {"image_size": 48}


@pytest.mark.parametrize(("view", "nuisance"), [("multi", "none"), ("single", "both")])
def test_each_action_changes_its_target_and_frames_are_rebuilt(view, nuisance):
    options = {**SMALL, "pair_nuisance": nuisance}
    found = generate_sequence(f"rooms/{view}-v1", 0, 3, actions=4, options=options)
    assert len(found.images) == len(found.actions) + 1 > 2
    states = [n for n in found.factors if n.endswith("/state")]
    for step, (slot, verb) in enumerate(found.actions):
        before, after = (
            np.stack([found.factors[n][at] for n in states]) for at in (step, step + 1)
        )
        assert np.array_equal(before != after, found.targets[step])
        assert found.factors["action/object"][step + 1] == slot
        assert found.factors["action/verb"][step + 1] == verb
    env = iv.make(f"rooms/{view}-v1", **options)
    env.reset(seed=9)
    settable = [n for n, v in env.world.variables.items() if not v.read_only]
    for at, image in enumerate(found.images):
        do = {name: found.factors[name][at] for name in settable}
        assert np.array_equal(env.do(do, check=False).observation["image"], image)
    env.close()


def test_the_same_address_gives_the_same_sequence():
    first, second = (
        generate_sequence("rooms/multi-v1", 1, 7, actions=2, options=SMALL) for _ in range(2)
    )
    assert np.array_equal(first.images, second.images)
    assert np.array_equal(first.actions, second.actions)


def test_an_episode_has_as_many_actions_as_asked_for():
    env = iv.make("rooms/multi-v1", image_size=16, objects=4, actions=3)
    env.reset(seed=0)
    ends = [env.step(np.array([0, verb]))[2:4] for verb in (0, 1, 0)]
    assert ends == [(False, False), (False, False), (True, False)]
    env.close()
    with pytest.raises(InvalidValueError, match="actions"):
        iv.make("rooms/multi-v1", actions=0)
