"""The MuJoCo engine: edited equals rebuilt, a batch equals single worlds, readings are MuJoCo's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.scm import Binding
from interverse.sim import Scene, SimulationError, Solid, make_engine
from interverse.sim.mujoco import MujocoEngine
from tests.sim.scenes import BINDINGS, Values, build, edit, place, push

FREE = ("box", "ball", "rod", "drum")
MASSES = st.floats(0.05, 5.0)
LENGTHS = st.floats(0.02, 0.3)
# MuJoCo computes these for its viewer; since version 4 the physics does not read them.
UNUSED = {"stat.meaninertia", "stat.meanmass"}


def engine_of(values: Values, num_worlds: int = 1, **options: Any) -> MujocoEngine:
    engine = make_engine(build(values), num_worlds=num_worlds, threads=1, **options)
    assert isinstance(engine, MujocoEngine)
    return engine


def everyone(engine: MujocoEngine) -> np.ndarray:
    return np.arange(engine.num_worlds)


def physics(engine: MujocoEngine) -> np.ndarray:
    return engine.save(everyone(engine))["physics"]


def throw(engine: MujocoEngine) -> None:
    """Gives every world the same lively start."""
    worlds = everyone(engine)
    for k, body in enumerate(FREE):
        spin = np.tile([1.0 + k, -2.0, 0.5], (len(worlds), 1))
        push(engine, body, worlds, -spin[:, ::-1] / 2, spin)
    engine.set_joints(
        ("shoulder", "wrist"), worlds, velocity=np.tile([2.0, -1.0], (len(worlds), 1))
    )


def model_differences(a: mujoco.MjModel, b: mujoco.MjModel) -> set[str]:
    """Returns the names of all fields in which two models differ."""
    pairs = [("", a, b), ("opt.", a.opt, b.opt), ("stat.", a.stat, b.stat)]
    out = set()
    for prefix, mine, theirs in pairs:
        for name in dir(mine):
            x = getattr(mine, name)
            if name.startswith("_") or callable(x) or not isinstance(x, (np.ndarray, float, int)):
                continue
            if not np.array_equal(x, getattr(theirs, name)):
                out.add(prefix + name)
    return out


def world_model(engine: MujocoEngine, world: int) -> mujoco.MjModel:
    return engine._batch.get_model(world)


# ------------------------------------------------------------------- edited equals rebuilt

OTHERS = [
    {"gravity": -4.5},
    {"arm_mass": 0.37},
    {"arm_height": 0.61},
    {"box_mass": 2.3},
    {"box_size": (0.14, 0.22, 0.26)},
    {"box_friction": 0.77},
    {"ball_mass": 0.11, "ball_radius": 0.083},
    {"rod_mass": 1.7, "rod_size": (0.041, 0.13)},
    {"drum_mass": 0.9, "drum_size": (0.11, 0.02)},
    {"red": 0.9},
    {"box_mass": 0.3, "box_size": (0.3, 0.1, 0.12), "gravity": -7.0, "arm_mass": 0.05},
]


def check_edited_equals_rebuilt(values: dict[str, Any]) -> None:
    edited, rebuilt = engine_of(Values(), 3), engine_of(replace(Values(), **values))
    chosen = np.array([2, 0])
    edited.reset(everyone(edited))
    edited.write([edit(n, np.tile(v, (2, 1))) for n, v in values.items()], chosen)
    for world in chosen.tolist():
        differ = model_differences(world_model(edited, world), rebuilt.model) - UNUSED
        assert differ == set()
    assert model_differences(world_model(edited, 1), edited.model) == set()
    rebuilt.reset(everyone(rebuilt))
    for engine in (edited, rebuilt):
        place(engine, "box", everyone(engine), np.tile([0, 0, 0.4], (len(physics(engine)), 1)))
        throw(engine)
        engine.step(everyone(engine), 200)
    np.testing.assert_array_equal(physics(edited)[0], physics(rebuilt)[0])
    np.testing.assert_array_equal(physics(edited)[2], physics(rebuilt)[0])


@pytest.mark.parametrize("values", OTHERS, ids=lambda v: "+".join(v))
def test_edited_equals_rebuilt_to_the_last_bit(values: dict[str, Any]) -> None:
    check_edited_equals_rebuilt(values)


@given(mass=MASSES, edges=st.tuples(LENGTHS, LENGTHS, LENGTHS), link=MASSES)
def test_edited_equals_rebuilt_for_any_box_and_link(
    mass: float, edges: tuple[float, float, float], link: float
) -> None:
    check_edited_equals_rebuilt({"box_mass": mass, "box_size": edges, "arm_mass": link})


@pytest.mark.parametrize("shape", ["ball", "rod", "drum"])
@given(mass=MASSES, lengths=st.tuples(LENGTHS, LENGTHS))
def test_inertia_of_a_solid_equals_the_compilers(
    shape: str, mass: float, lengths: tuple[float, float]
) -> None:
    size = {"ball_radius": lengths[0]} if shape == "ball" else {f"{shape}_size": lengths}
    values = {f"{shape}_mass": mass, **size}
    edited, rebuilt = engine_of(Values()), engine_of(replace(Values(), **values))
    edited.write([edit(n, np.reshape(v, (1, -1))) for n, v in values.items()], np.array([0]))
    where = Binding("body_inertia", shape)
    np.testing.assert_array_equal(edited.field(where), rebuilt.field(where))


def test_appearance_and_friction_derive_no_constants() -> None:
    engine = engine_of(Values(), 2)
    engine.write([edit("red", [0.9, 0.8]), edit("box_friction", [0.1, 0.2])], everyone(engine))
    engine.write([edit("gravity", [-3.0, -4.0])], everyone(engine))
    assert engine._batch.expanded("dof_invweight0") is None
    engine.write([edit("box_mass", [2.0, 3.0])], everyone(engine))
    assert engine._batch.expanded("dof_invweight0") is not None


def test_a_scalar_fills_all_entries_of_a_binding() -> None:
    engine = engine_of(Values())
    engine.write([(BINDINGS["box_size"], np.array([0.3]))], np.array([0]))
    np.testing.assert_array_equal(engine.field(Binding("geom_size", "box")), [[0.15, 0.15, 0.15]])


def lively(num_worlds: int = 3) -> MujocoEngine:
    engine = engine_of(Values(), num_worlds)
    worlds = everyone(engine)
    engine.reset(worlds)
    engine.write([edit("box_mass", 1.0 + worlds), edit("gravity", -4.0 - worlds)], worlds)
    throw(engine)
    engine.set_controls(("shoulder",), 0.1 * worlds[:, None], worlds)
    engine.step(worlds, 60)
    return engine


def test_reset_undoes_edits_and_motion() -> None:
    engine, fresh = engine_of(Values(), 3), engine_of(Values(), 3)
    edits = [(where, np.full((3, 1), 0.07)) for n, where in BINDINGS.items() if n != "gravity"]
    engine.write(edits, everyone(engine))
    throw(engine)
    engine.step(everyone(engine), 5)
    engine.reset(np.array([1]))
    assert model_differences(world_model(engine, 1), engine.model) == set()
    assert model_differences(world_model(engine, 0), engine.model) != set()
    fresh.reset(everyone(fresh))
    engine.reset(np.array([2, 0]))
    for each in (engine, fresh):
        throw(each)
        each.step(everyone(each), 100)
    np.testing.assert_array_equal(physics(engine), physics(fresh))


def test_a_saved_moment_continues_to_the_same_bits_anywhere() -> None:
    engine = lively()
    saved = engine.save(everyone(engine))
    engine.step(everyone(engine), 80)
    target = engine_of(Values(), 5)  # other worlds, other edits
    target.write([edit("box_size", np.full((5, 1), 0.11))], everyone(target))
    target.step(everyone(target), 7)
    into = np.array([4, 1, 2])
    target.load(saved, into)
    target.step(into, 80)
    np.testing.assert_array_equal(physics(target)[into], physics(engine))
    for i, world in enumerate(into.tolist()):
        mine, theirs = world_model(target, world), world_model(engine, i)
        assert model_differences(mine, theirs) == set()


def test_load_restores_what_was_read_before() -> None:
    engine = lively()
    before = [engine.positions(("hand",)), engine.sensor("touch")]
    saved = engine.save(everyone(engine))
    engine.step(everyone(engine), 3)
    engine.load(saved, everyone(engine))
    after = [engine.positions(("hand",)), engine.sensor("touch")]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------------- reading, writing


def test_places_and_sensors_are_those_of_the_present_state() -> None:
    engine = lively()
    places = {}
    for _ in range(2):
        places = {b: engine.positions((b,))[:, 0] for b in ("arm", "hand", "box", "mark")}
        touch, swing = engine.sensor("touch"), engine.sensor("swing")
        for world in range(3):
            data = engine._batch.get_data(world)
            mujoco.mj_forward(world_model(engine, world), data)
            for body in places:
                np.testing.assert_array_equal(places[body][world], data.body(body).xpos)
            np.testing.assert_array_equal(touch[world], data.sensor("touch").data)
            np.testing.assert_array_equal(swing[world], data.sensor("swing").data)
        engine.step(everyone(engine), 1)


def test_readings_follow_every_kind_of_write() -> None:
    engine = engine_of(Values(), 2)
    worlds = everyone(engine)
    engine.reset(worlds)
    engine.step(worlds, 50)
    hand = engine.positions(("hand",))
    resting = engine.sensor("touch")[:, -1]
    engine.set_joints(("shoulder",), np.array([1]), position=np.array([[0.5]]))
    moved = engine.positions(("hand",))
    assert np.array_equal(moved[0], hand[0])
    assert not np.array_equal(moved[1], hand[1])
    engine.write([edit("arm_height", np.array([0.9]))], np.array([0]))
    np.testing.assert_allclose(engine.positions(("hand",))[0, 0, 2] - hand[0, 0, 2], 0.4)
    engine.write([edit("gravity", np.array([-1.0]))], np.array([0]))
    assert abs(engine.sensor("touch")[0, -1]) < abs(resting[0]) / 5
    engine.set_forces(("box",), worlds, force=np.tile([0.0, 0.0, -50.0], (2, 1, 1)))
    assert np.all(np.abs(engine.sensor("touch")[:, -1]) > 45.0)


def test_what_is_written_is_read() -> None:
    engine = engine_of(Values(), 4)
    rng = np.random.default_rng(0)
    chosen = np.array([3, 1])
    there, linear = rng.normal(size=(2, 2, 3))
    for body in ("box", "mark"):
        place(engine, body, chosen, there)
        np.testing.assert_array_equal(engine.positions((body,))[chosen, 0], there)
    engine.set_joints(("wrist", "shoulder"), chosen, position=there[:, :2], velocity=linear[:, :2])
    np.testing.assert_array_equal(
        engine.joint_positions(("shoulder", "wrist"))[chosen], there[:, 1::-1]
    )
    np.testing.assert_array_equal(engine.joint_velocities(("wrist",))[chosen, 0], linear[:, 0])
    untouched = np.array([0, 2])
    fresh = engine_of(Values(), 4)
    np.testing.assert_array_equal(physics(engine)[untouched], physics(fresh)[untouched])


def test_a_force_before_each_substep_gives_the_drag_recursion() -> None:
    model = """<mujoco><option timestep="0.004" gravity="0 0 0"/><worldbody><body name="ball">
        <freejoint/><geom size="0.1" mass="2"/></body></worldbody></mujoco>"""
    engine = make_engine(Scene(model=model), num_worlds=2)
    worlds, speed = np.arange(2), np.array([1.0, 3.0])
    push(engine, "ball", worlds, np.stack([speed, 0 * speed, 0 * speed], axis=1))

    def drag() -> None:
        linear = engine.live("qvel")[:, None, :3]
        engine.set_forces(("ball",), worlds, force=-5.0 * linear)

    engine.step(worlds, 50, before=drag)
    # semi-implicit Euler: v <- v - dt c v / m
    expected = speed * (1 - 0.004 * 5.0 / 2.0) ** 50
    np.testing.assert_allclose(engine.live("qvel")[:, 0], expected, rtol=1e-12)


# --------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("velocity", [np.nan, 1e30])
def test_broken_physics_names_the_worlds_and_changes_nothing(
    velocity: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log of its own beside the program
    engine = lively(4)
    push(engine, "box", np.array([1, 3]), np.full((2, 3), velocity))
    before = physics(engine)
    with pytest.raises(SimulationError, match="world 1, 3 broke down") as caught:
        engine.step(everyone(engine), 4)
    assert caught.value.worlds == (1, 3)
    np.testing.assert_array_equal(physics(engine), before)
    push(engine, "box", np.array([1, 3]), np.zeros((2, 3)))
    engine.step(everyone(engine), 4)  # mended, it runs on
    assert np.all(np.isfinite(physics(engine)))


BAD_BINDINGS = [
    (Binding("geom_sizes", "box"), UnknownNameError, "unknown model field 'geom_sizes'"),
    (Binding("geom_size", "boks"), UnknownNameError, "Did you mean 'box'"),
    (Binding("geom_size", "box", 3), InvalidValueError, "Allowed: 0 to 2"),
    (Binding("opt.gravity", "box"), InvalidValueError, "no named elements"),
    (Binding("mesh_vert", "box"), UnknownNameError, "unknown model field"),
]


@pytest.mark.parametrize(("binding", "error", "text"), BAD_BINDINGS)
def test_a_wrong_binding_is_named(binding: Binding, error: type[Exception], text: str) -> None:
    engine = engine_of(Values())
    with pytest.raises(error, match=text):
        engine.write([(binding, np.array([1.0]))], np.array([0]))


def test_wrong_arguments_are_named() -> None:
    engine = engine_of(Values(), 2)
    worlds = everyone(engine)
    with pytest.raises(InvalidValueError, match="geom_size has 2 values a world"):
        engine.write([(BINDINGS["box_size"], np.ones((2, 2)))], worlds)
    with pytest.raises(InvalidValueError, match="joint 'box' has several coordinates"):
        engine.joint_positions(("box",))
    with pytest.raises(UnknownNameError, match="unknown sensor 'toch'"):
        engine.sensor("toch")
    with pytest.raises(InvalidValueError, match="saved physics has shape"):
        engine.load(engine.save(worlds), np.array([0]))
    with pytest.raises(InvalidValueError, match="does not follow from geom 'arm'"):
        make_engine(Scene(model=engine.model, inertia=(Solid("box", "arm"),)), num_worlds=1)
    with pytest.raises(UnknownNameError, match="unknown device 'tpu'"):
        make_engine(build(Values()), num_worlds=1, device="tpu")


def test_live_fields_are_the_state_itself():
    engine = engine_of(Values(), num_worlds=2)
    worlds = everyone(engine)
    qpos = engine.live("qpos")
    before = engine.positions(("hand",)).copy()
    qpos[1, engine.model.joint("shoulder").qposadr[0]] += 0.5
    engine.wrote(worlds[1:])
    after = engine.positions(("hand",))
    assert np.array_equal(after[0], before[0])
    assert np.abs(after[1] - before[1]).max() > 0.01
    engine.step(worlds)
    assert np.array_equal(qpos, engine.live("qpos"))
    other = engine_of(Values(), num_worlds=2, device="torch")
    other.live("qvel")[:] = 1.5
    assert (other.joint_velocities(("shoulder",)) == 1.5).all()
    with pytest.raises(UnknownNameError, match="state field"):
        engine.live("qacc_smooth")
