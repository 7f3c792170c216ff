"""The window of `render_mode="human"`, on SDL's screen in memory."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import RenderError

pygame = pytest.importorskip("pygame")
ID = "blocks/observed-3-v1"


@pytest.fixture(autouse=True)
def _screen_in_memory(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.display.quit()


def _shown():
    return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)


@pytest.mark.parametrize("make", [iv.make, gym.make])
def test_the_window_follows_every_reset_and_step(make):
    with make(ID, render_mode="human") as env, iv.make(ID, render_mode="rgb_array") as twin:
        env.reset(seed=1), twin.reset(seed=1)
        np.testing.assert_array_equal(_shown(), twin.render())
        first = _shown()
        for action in range(4):
            env.step(action), twin.step(action)
        np.testing.assert_array_equal(_shown(), twin.render())
        assert (_shown() != first).any()
        assert env.render() is None
    assert not pygame.display.get_init()


def test_a_closed_window_does_not_end_the_episode():
    env = iv.make(ID, render_mode="human")
    env.reset(seed=1)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    env.step(0)
    assert not pygame.display.get_init()
    env.step(1)
    env.close()


def test_a_machine_without_a_screen_is_told_what_to_do(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "wayland")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nonexistent")
    with pytest.raises(RenderError, match="interverse view"):
        iv.make(ID, render_mode="human").reset(seed=0)


def test_nothing_greets_on_standard_output():
    code = f"import interverse as iv; iv.make({ID!r}, render_mode='human').reset(seed=0)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == ""
