"""A mass changed in mid-episode: every force that depends on it follows at once."""

from __future__ import annotations

import numpy as np

import interverse as iv
from interverse.envs.snapshot import Snapshot


def test_drag_follows_a_mass_that_changes_in_mid_episode():
    """Equal to a world declared with that mass and given the state: a stale drag law is not."""
    masses = {"finger_0/lower/mass": 0.09, "finger_1/middle/mass": 0.5, "block_0/mass": 0.09}
    env = iv.make("trifinger/pushing-v1")
    rebuilt = iv.make("trifinger/pushing-v1", defaults=masses)
    for world in (env, rebuilt):
        world.reset(seed=0)
    still = np.zeros(env.action_space.shape, dtype=np.float32)
    env.step(still)
    env.do(masses, check=False)
    saved = env.snapshot()
    rebuilt.restore(Snapshot(saved.id, rebuilt.driver.options_json, saved.arrays))
    for _ in range(3):
        seen, wanted = env.step(still)[0], rebuilt.step(still)[0]
        assert np.array_equal(seen, wanted)
