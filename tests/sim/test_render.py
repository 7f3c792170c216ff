"""Pictures of a world: colour, depth and segmentation agree with the scene; GL failures say so."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from interverse.core.errors import InvalidValueError, RenderError, UnknownNameError
from interverse.sim import gl, make_engine
from interverse.sim.elements import element_names
from interverse.sim.mujoco import MujocoEngine
from tests.sim.scenes import Values, build, edit, place

try:
    gl.backend()
except RenderError as problem:
    pytest.skip(str(problem), allow_module_level=True)

SIZE = (48, 64)
HEIGHT = 2.0  # of the camera "above"


@pytest.fixture(scope="module")
def engine() -> MujocoEngine:
    engine = make_engine(build(Values()), num_worlds=2, threads=1)
    assert isinstance(engine, MujocoEngine)
    engine.reset(np.arange(2))
    aside = np.tile([5.0, 5.0, 1.0], (2, 1))
    for body in ("ball", "rod", "drum", "mark"):
        place(engine, body, np.arange(2), aside)
    return engine


def test_depth_is_the_distance_in_metres(engine: MujocoEngine) -> None:
    engine.reset(np.arange(2))
    depth = engine.picture(0, camera="above", size=SIZE, kind="depth")
    assert depth.shape == SIZE
    assert depth.dtype == np.float32
    top = 0.2  # of the box, in the middle of the picture
    np.testing.assert_allclose(depth[24, 32], HEIGHT - top, rtol=1e-3)
    np.testing.assert_allclose(depth[2, 2], HEIGHT, rtol=1e-3)


def test_segmentation_names_what_is_seen(engine: MujocoEngine) -> None:
    seen = engine.picture(0, camera="above", size=SIZE, kind="segmentation")
    assert seen.shape == SIZE
    assert seen.dtype == np.int32
    names = element_names(engine.model, "geom")
    assert names[seen[24, 32]] == "box"
    assert names[seen[2, 2]] == "floor"


def test_a_picture_shows_its_own_worlds_edits(engine: MujocoEngine) -> None:
    before = [engine.picture(i, camera="above", size=SIZE) for i in range(2)]
    np.testing.assert_array_equal(before[0], before[1])
    one = np.array([1])
    engine.write([edit("red", np.array([0.1])), edit("box_size", np.array([[0.6, 0.4, 0.2]]))], one)
    after = [engine.picture(i, camera="above", size=SIZE) for i in range(2)]
    np.testing.assert_array_equal(after[0], before[0])
    assert int(after[1][24, 32, 0]) < int(before[1][24, 32, 0]) - 40
    seen = [engine.picture(i, camera="above", size=SIZE, kind="segmentation") for i in range(2)]
    box = element_names(engine.model, "geom").index("box")
    areas = [int(np.sum(s == box)) for s in seen]
    # the top faces: 0.2 x 0.2 m against 0.6 x 0.4 m
    np.testing.assert_allclose(areas[1] / areas[0], 6.0, rtol=0.2)
    engine.reset(one)
    restored = engine.picture(1, camera="above", size=SIZE)
    assert abs(int(restored[24, 32, 0]) - int(before[1][24, 32, 0])) <= 1


def test_drawing_changes_no_state_and_repeats(engine: MujocoEngine) -> None:
    before = engine.save(np.arange(2))
    first = engine.picture(0, camera="above", size=SIZE)
    second = engine.picture(0, camera="above", size=SIZE)
    np.testing.assert_array_equal(first, second)
    after = engine.save(np.arange(2))
    for name, rows in before.items():
        np.testing.assert_array_equal(rows, after[name])


def test_any_size_is_drawn_and_contexts_are_kept(engine: MujocoEngine) -> None:
    large = engine.picture(0, camera="above", size=(90, 120))  # beyond the model's own buffer
    assert large.shape == (90, 120, 3)
    camera = engine._camera
    assert camera is not None
    kept = dict(camera._drawings)
    engine.picture(1, camera="above", size=(90, 120), kind="depth")
    engine.picture(1, camera="above", size=SIZE)
    assert camera._drawings[90, 120] is kept[90, 120]
    engine.close()
    assert engine.picture(0, camera="above", size=SIZE).shape == (*SIZE, 3)  # opens anew


def test_any_thread_may_draw_and_a_forked_process_is_told_to_spawn(
    engine: MujocoEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw() -> np.ndarray:
        return engine.picture(0, camera="above", size=SIZE)

    here = draw()
    with ThreadPoolExecutor(1) as other:  # EGL's own error before
        assert np.array_equal(other.submit(draw).result(), here)
    monkeypatch.setattr(gl, "_LOADED_IN", [-1])  # as it looks to a child, which hung before
    with pytest.raises(RenderError, match="spawn"):
        draw()


def test_wrong_arguments_are_named(engine: MujocoEngine) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'above'"):
        engine.picture(0, camera="abov", size=SIZE)
    with pytest.raises(UnknownNameError, match="unknown kind of picture 'rbg'"):
        engine.picture(0, camera="above", size=SIZE, kind="rbg")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="a picture of 0 x 8 pixels"):
        engine.picture(0, camera="above", size=(0, 8))


_ELSEWHERE = """
from interverse.core.errors import RenderError
from interverse.sim import gl, make_engine
from tests.sim.scenes import Values, build
try:
    make_engine(build(Values()), num_worlds=1).picture(0, camera="above", size=(8, 8))
    print(gl.backend())
except RenderError as error:
    print(error)
"""


def backend_elsewhere(**variables: str) -> str:
    """Returns what draws a picture, or its error, in a process with other variables."""
    clean = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    return subprocess.run(
        [sys.executable, "-c", _ELSEWHERE],
        env={**clean, **variables},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout.strip()


def test_a_back_end_is_found_unasked_and_a_wish_is_kept() -> None:
    found = backend_elsewhere()
    assert found in ("egl", "osmesa")
    assert backend_elsewhere(MUJOCO_GL=found) == found


def test_osmesa_is_tried_where_egl_fails() -> None:
    answer = backend_elsewhere(MUJOCO_EGL_DEVICE_ID="77")  # a device no machine has
    assert answer == "osmesa" or ("egl: " in answer and "osmesa: " in answer)


@pytest.mark.parametrize(
    "variables",
    # PyOpenGL bound to another platform: neither EGL nor OSMesa can load. Or drawing forbidden.
    [{"PYOPENGL_PLATFORM": "glx"}, {"MUJOCO_GL": "off"}],
    ids=["no library", "off"],
)
def test_without_a_back_end_the_packages_are_named(variables: dict[str, str]) -> None:
    answer = backend_elsewhere(**variables)
    assert "no GL library can draw" in answer
    assert "libegl1 libgl1-mesa-dri or libosmesa6" in answer


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
