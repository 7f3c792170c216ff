"""The MuJoCo Warp engine against the CPU one: the same scene, edits and commands."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.scm import Binding
from interverse.sim import CapacityError, Engine, Scene, Solid, make_engine
from interverse.worlds.trifinger.options import TriFingerOptions
from tests.sim.scenes import place, push

torch = pytest.importorskip("torch")
pytest.importorskip("mujoco_warp")

SCENE = """
<mujoco>
  <option timestep="0.004" cone="elliptic"/>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 0.1"/>
    <body name="arm" pos="0.8 0 0.6">
      <joint name="shoulder" axis="0 1 0" damping="0.01"/>
      <geom name="arm" type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02" mass="0.2"/>
    </body>
    <body name="box" pos="0 0 0.5">
      <freejoint name="box"/>
      <geom name="box" type="box" size="0.05 0.05 0.05" mass="0.5"/>
    </body>
  </worldbody>
  <actuator><motor name="shoulder" joint="shoulder"/></actuator>
</mujoco>
"""
FALLING = np.array([[0.1, 0.0, 0.0], [0.0, 0.2, 0.1], [0.3, 0.1, -0.1]])


def test_cuda_without_a_gpu_is_one_clear_line() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(InvalidValueError, match="no CUDA device") as caught:
        make_engine(Scene(model=SCENE), num_worlds=2, device="cuda")
    assert "\n" not in str(caught.value)


PUSHING, CUDA = "trifinger/pushing-v1", ("--option", "device=cuda")
VERBS = (
    ("bench", "--device", "cuda"),
    ("bench", "--only", "pixels", "--device", "cuda"),
    ("check", PUSHING, *CUDA),
    ("collect", PUSHING, "--policy", "random", "--out", "x", *CUDA),
    ("evaluate", "--task", PUSHING, "--policy", "random", "--device", "cuda"),
    ("explain", "random", "--task", PUSHING, *CUDA),
    ("fit", "blocks/observed-3-v1", "--device", "cuda", "--out", "x"),
    ("reproduce", "--benchmark", "causalworld", "--device", "cuda", "--out", "x"),
    ("train", "--task", PUSHING, "--device", "cuda", "--out", "x"),
    ("view", PUSHING, *CUDA),
)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("words", VERBS, ids=lambda words: words[0])
def test_every_verb_says_in_one_line_that_there_is_no_gpu(words, tmp_path, monkeypatch, capsys):
    from interverse.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith(f"interverse {words[0]}: device is 'cuda', but ")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", [PUSHING, "blocks/observed-3-v1", "chemistry/chain-v1"])
def test_worlds_say_in_one_line_that_there_is_no_gpu(name):
    for call in (iv.make, lambda *a, **k: iv.make_vec(*a, num_envs=2, **k)):
        with pytest.raises(InvalidValueError, match="no CUDA device") as caught:
            call(name, device="cuda")
        assert "\n" not in str(caught.value)


def test_room_for_contacts_is_an_option_of_warp_alone() -> None:
    with pytest.raises(InvalidValueError, match="room for any number"):
        TriFingerOptions(contacts=8)
    assert TriFingerOptions(device="warp", contacts=8, constraints=30).contacts == 8


def pair(num_worlds: int = 3, **room: Any) -> tuple[Engine, Engine]:
    scene = Scene(model=SCENE, inertia=(Solid("box", "box"),), **room)
    return tuple(  # type: ignore[return-value]
        make_engine(scene, num_worlds=num_worlds, device=device) for device in ("cpu", "warp")
    )


def throw(engine: Engine) -> None:
    worlds = np.arange(3)
    push(engine, "box", worlds, FALLING, FALLING[:, ::-1].copy())
    engine.set_controls(("shoulder",), np.array([[0.1], [0.0], [-0.1]]), worlds)


def apart(one: Engine, other: Engine) -> float:
    return float(np.abs(one.live("qpos") - other.live("qpos").numpy()).max())


@pytest.mark.slow  # Warp compiles for minutes when its cache is empty
def test_steps_agree_before_contact() -> None:
    cpu, warp = pair()
    for engine in (cpu, warp):
        throw(engine)
    done = 0
    for steps in (1, 10, 50):
        for engine in (cpu, warp):
            engine.step(np.arange(3), steps - done)
        done = steps
        assert apart(cpu, warp) < 1e-5


@pytest.mark.slow
def test_edits_act_alike() -> None:
    cpu, warp = pair()
    edits = [
        (Binding("body_mass", "box"), np.array([0.2, 0.5, 2.0])),
        (Binding("geom_size", "box", None, 0.5), np.array([[0.1] * 3, [0.12] * 3, [0.08] * 3])),
        (Binding("geom_friction", "box", 0), np.array([0.2, 0.5, 1.0])),
        (Binding("opt.gravity", None, 2), np.array([-9.81, -5.0, -2.0])),
    ]
    for engine in (cpu, warp):
        engine.write(edits, np.arange(3))
        throw(engine)
        engine.step(np.arange(3), 40)
    assert apart(cpu, warp) < 1e-5
    for field in ("body_inertia", "geom_rbound", "dof_invweight0", "body_subtreemass"):
        for world in range(3):
            wanted = getattr(cpu._batch.get_model(world), field)  # type: ignore[attr-defined]
            held = getattr(warp._warp_model, field).numpy()[world]  # type: ignore[attr-defined]
            np.testing.assert_allclose(held, wanted, rtol=1e-4, atol=1e-7)


@pytest.mark.slow
def test_some_worlds_step_and_states_pass_between_engines() -> None:
    cpu, warp = pair()
    for engine in (cpu, warp):
        throw(engine)
    before = warp.save(np.arange(3))
    warp.step(np.array([0, 2]), 5)
    np.testing.assert_array_equal(warp.save(np.array([1]))["physics"], before["physics"][1:2])
    cpu.load({n: v.numpy() for n, v in warp.save(np.arange(3)).items()}, np.arange(3))
    assert apart(cpu, warp) < 1e-6
    warp.load(cpu.save(np.arange(3)), np.arange(3))
    assert apart(cpu, warp) < 1e-6
    warp.reset(np.arange(3))
    np.testing.assert_allclose(warp.positions(("box",))[:, 0], [[0, 0, 0.5]] * 3)


@pytest.mark.slow
def test_a_world_that_breaks_down_is_marked_and_put_back() -> None:
    _, warp = pair()
    throw(warp)
    warp.live("qvel")[1] = float("nan")
    place = warp.live("qpos").clone()
    warp.step(np.arange(3), 2)
    assert warp.diverged.tolist() == [False, True, False]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(warp.live("qpos")[1], place[1])
    assert torch.isfinite(warp.live("qvel")).all()


@pytest.mark.slow
def test_contacts_without_room_raise() -> None:
    _, warp = pair(contacts=1, constraints=2)
    place(warp, "box", np.arange(3), np.array([[0.0, 0.0, 0.045]] * 3))
    with pytest.raises(CapacityError, match="Raise"):
        warp.step(np.arange(3), 5)


@pytest.mark.slow
def test_what_did_not_fit_between_two_looks_is_said_at_close() -> None:
    _, warp = pair(contacts=1, constraints=2)
    warp._every = 256  # type: ignore[attr-defined] # as on a GPU
    place(warp, "box", np.arange(3), np.array([[0.0, 0.0, 0.045]] * 3))
    warp.step(np.arange(3), 5)
    with pytest.raises(CapacityError, match="Raise contacts"):
        warp.close()
    warp.close()  # what was said is not said again


@pytest.mark.slow
def test_lesser_flags_are_counted_and_raise_nothing() -> None:
    import mujoco_warp

    _, warp = pair()
    warp._overflowed[1] = int(mujoco_warp.OverflowType.ITERATIONS)  # type: ignore[attr-defined]
    warp.check_capacity()
    assert warp.noted == {"ITERATIONS": 1}  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("full", [False, True])
def test_evaluation_on_warp_refuses_what_broke_down_and_says_what_did_not_fit(
    full: bool, monkeypatch
) -> None:
    from interverse.sim.warp import WarpEngine

    real, begin = WarpEngine.step, WarpEngine.__init__

    def made(self: Any, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        self._every = 256  # as on a GPU

    def step(self: Any, *given: Any) -> None:
        if self._steps == 3 and not full:
            self.live("qvel")[1] = float("nan")
        real(self, *given)

    monkeypatch.setattr(WarpEngine, "__init__", made)
    monkeypatch.setattr(WarpEngine, "step", lambda self, *g, before=None: step(self, *g, before))
    options = {"device": "warp", "skip_frame": 3, "max_steps": 8, "contacts": 1 if full else None}
    played = {"protocols": "P0", "episodes": 3, **options}
    if full:
        with pytest.raises(CapacityError, match="Raise contacts"):
            iv.evaluate("random", PUSHING, **played)
        return
    results = iv.evaluate("random", PUSHING, **played)
    assert results.refused.tolist() == [False, True, False]
    assert results.column("reason")[1].startswith("diverged: the physics of world 1 broke down")


@pytest.mark.slow
def test_readings_are_mujocos() -> None:
    cpu, warp = pair()
    for engine in (cpu, warp):
        throw(engine)
        engine.step(np.arange(3), 3)
    for name in ("arm", "box"):
        np.testing.assert_allclose(warp.positions((name,)), cpu.positions((name,)), atol=1e-5)
    assert len(warp.shapes(0)) == len(cpu.shapes(0))
    assert isinstance(warp.model, mujoco.MjModel)
