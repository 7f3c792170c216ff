"""A MUJOCO_GL that no library knows stops drawing, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import interverse as iv
from interverse.core.errors import RenderError
env = iv.make("tutorial/slider-v1", render_mode="rgb_array")
env.reset(seed=0)
env.step(env.action_space.sample())
try:
    env.render()
except RenderError as error:
    print(error)
"""


def run(*words, **variables):
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [sys.executable, *words],
        env={**clean, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_an_unknown_wish_is_told_when_something_is_drawn():
    done = run("-c", CODE, MUJOCO_GL="garbage")
    assert done.returncode == 0, done.stderr
    assert "MUJOCO_GL is 'garbage'" in done.stdout


@pytest.mark.parametrize("wish", ["garbage", "glfw"])
def test_a_world_is_described_whatever_the_wish(wish):
    done = run("-m", "interverse", "describe", "trifinger/pushing-v1", MUJOCO_GL=wish)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("wish", ["garbage", "glfw"])
def test_the_doctor_names_what_cannot_draw(wish):
    done = run("-m", "interverse", "doctor", MUJOCO_GL=wish)
    assert done.returncode == 0, done.stderr
    assert "no GL library draws" in done.stdout
