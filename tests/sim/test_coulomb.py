"""Exact sliding friction: a body slides as the textbook says, and other models are left alone."""

import os
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mujoco.batch import Batch

from interverse.sim import coulomb, native
from interverse.worlds.trifinger.contacts import contact_mode

MU, G, DT = 0.5, 9.81, 0.004
MODEL = f"""
<mujoco>
  <option timestep="{DT}" cone="elliptic" impratio="10" tolerance="1e-10"/>
  <default><geom solref="-5000 -250" solimp="0.99 0.99 0.001" friction="{MU}"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="box" pos="0 0 0.05"><freejoint/>
      <geom name="box" type="box" size="0.05 0.05 0.05" mass="0.1"/></body>
  </worldbody>
  <sensor><contact name="push" geom1="floor" geom2="box" data="force" reduce="netforce"/></sensor>
</mujoco>
"""


def _model(exact):
    spec = mujoco.MjSpec.from_string(MODEL)
    if exact:
        coulomb.attach(spec)
    return spec.compile()


def _slide(model, steps=25, speed=1.0):
    data = mujoco.MjData(model)
    data.qvel[0] = speed
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return data


def test_a_sliding_box_slows_by_mu_g():
    data = _slide(_model(exact=True))
    assert data.qvel[0] == pytest.approx(1.0 - MU * G * 25 * DT, abs=5e-3)


@pytest.mark.parametrize(("exact", "low", "high"), [(True, -1e-3, 1e-3), (False, 5e-3, 1.0)])
def test_only_convex_friction_lifts_a_box_that_starts_to_slide(exact, low, high):
    model = _model(exact)
    data = _slide(model, steps=100, speed=0.0)  # it has settled
    data.qvel[0] = 1.0
    mujoco.mj_step(model, data)
    assert low < data.qvel[2] < high


def test_the_solver_says_that_it_has_converged():
    data = _slide(_model(exact=True), steps=3)
    steps, unsolved, error = data.sensor(coulomb.SENSOR).data
    assert steps > 0
    assert unsolved == 0
    assert error < 1e-8


def test_forces_sensors_and_accelerations_agree():
    model = _model(exact=True)
    data = _slide(model, steps=5)
    mujoco.mj_forward(model, data)
    inertia = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, inertia)
    assert inertia @ data.qacc == pytest.approx(data.qfrc_smooth + data.qfrc_constraint, abs=1e-8)
    push = data.sensor("push").data
    assert push == pytest.approx(data.qfrc_constraint[:3], abs=1e-8)
    assert abs(push[0]) == pytest.approx(MU * push[2], rel=1e-6)


def test_a_resting_box_is_left_to_the_simulator():
    plain, exact = (_slide(_model(e), steps=200, speed=0.0) for e in (False, True))
    assert np.array_equal(plain.qpos, exact.qpos)


def test_other_models_of_the_process_are_untouched():
    before = _slide(_model(exact=False)).qpos
    assert not np.array_equal(_slide(_model(exact=True)).qpos, before)
    assert np.array_equal(_slide(_model(exact=False)).qpos, before)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_is_singles_bit_for_bit(threads):
    model, speeds = _model(exact=True), np.linspace(0.1, 2.0, 7)
    batch = Batch(model, len(speeds), nthread=threads)
    batch.reset()
    batch.bind("qvel")[:, 0] = speeds
    batch.step(nstep=25)
    singles = [_slide(model, speed=speed) for speed in speeds]
    assert np.array_equal(batch.bind("qpos"), [data.qpos for data in singles])
    assert np.array_equal(batch.bind("qvel"), [data.qvel for data in singles])


@pytest.fixture
def no_compiler(monkeypatch, tmp_path):
    """A machine without a C compiler, on which nothing was ever built."""
    monkeypatch.setenv("INTERVERSE_CACHE", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    coulomb._loaded.cache_clear()
    yield
    coulomb._loaded.cache_clear()


def test_without_a_compiler_worlds_are_convex_and_say_so(no_compiler):
    assert "no C compiler" in (coulomb.missing() or "")
    with pytest.warns(UserWarning, match=r"contact is convex, not exact: .*no C compiler"):
        assert contact_mode(None, "cpu", 1) == "convex"


_BROUGHT = """
import hashlib, sys
from pathlib import Path
from interverse.sim import coulomb
from interverse.worlds.trifinger.contacts import contact_mode
coulomb.SOURCE = Path(sys.argv[1]).with_name("coulomb.c")
assert coulomb.library_path() == Path(sys.argv[1])
assert contact_mode(None, "cpu", 1) == "exact"
assert coulomb.solver_hash() == hashlib.sha256(Path(sys.argv[1]).read_bytes()).hexdigest()[:16]
"""


def test_what_the_package_brings_needs_no_compiler(tmp_path):
    brought = tmp_path / native.file_name(mujoco.__version__)
    native.compile_solver(Path(mujoco.__file__).parent, brought)
    env = {**os.environ, "CC": "no-such-compiler", "INTERVERSE_CACHE": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", _BROUGHT, str(brought)], env=env, check=True)


def test_a_solver_for_another_mujoco_is_never_loaded(no_compiler, monkeypatch, tmp_path):
    monkeypatch.setattr(coulomb, "SOURCE", tmp_path / "coulomb.c")
    (tmp_path / native.file_name("4.0.99")).write_bytes(b"not for this one")
    assert f"no friction solver for MuJoCo {mujoco.__version__}" in (coulomb.missing() or "")


def test_without_a_compiler_exact_is_refused_with_the_reason(no_compiler):
    with pytest.raises(ValueError, match="no C compiler"):
        contact_mode("exact", "cpu", 1)


def test_a_compiler_that_fails_is_quoted(no_compiler, monkeypatch):
    monkeypatch.setenv("CC", "false")
    assert "cannot be compiled" in (coulomb.missing() or "")


def test_gpus_and_piles_are_convex_unless_asked():
    assert contact_mode(None, "cpu", 1) == "exact"
    assert contact_mode(None, "cpu", 35) == "convex"
    assert contact_mode("exact", "cpu", 35) == "exact"
    assert contact_mode(None, "cuda:0", 1) == "convex"
    with pytest.raises(ValueError, match="cannot be had on cuda"):
        contact_mode("exact", "cuda", 1)
