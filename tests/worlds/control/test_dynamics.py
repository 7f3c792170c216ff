"""Dynamics written into a compiled walker equal a recompiled one; rewards are dm_control's."""

import itertools

import mujoco
import numpy as np
import pytest
from dm_control.utils import rewards as stock

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.scm import Binding, Box, Variable, refuse_bindings
from interverse.worlds.control import dynamics as dynamics_module
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.dynamics import Dynamics, dynamics_variables
from interverse.worlds.control.scene import domain_spec
from interverse.worlds.control.suite import new_physics, suite, template, tolerance
from interverse.worlds.control.variables import control_variables
from tests.worlds.control.rebuild import quietly

# Textures and the table of names: our model has more textures than the rebuilt one.
OTHER = ("tex_", "name", "_sizes", "names_map", "bvh_aabb_dyn", "mat_texid")


def arrays(model):
    names = [n for n in dir(model) if not n.startswith(OTHER)]
    return {n: getattr(model, n) for n in names if isinstance(getattr(model, n), np.ndarray)}


def different(a, b):
    return [n for n, value in arrays(a).items() if not np.array_equal(value, getattr(b, n))]


def walker():
    physics = new_physics(template("walker", "walk"))
    return physics, Dynamics(physics, "walker")


def test_an_edited_walker_is_a_recompiled_one():
    physics, dynamics = walker()
    values = {variable.name: float(variable.default) for variable in dynamics_variables("walker")}
    values |= {"torso/radius": 0.09, "torso/length": 0.9, "foot/radius": 0.07, "foot/length": 0.3}
    values |= {"joint/damping": 0.5, "joint/armature": 0.05, "floor/friction": 1.2}
    values |= {"knee/lower_limit": np.deg2rad(-130.0), "ankle/limit": np.deg2rad(60.0)}
    assert dynamics.write(values)
    spec = domain_spec("walker")
    spec.geom("torso").size = [0.09, 0.45, 0.0]
    for leg in ("right", "left"):
        spec.geom(f"{leg}_foot").size = [0.07, 0.15, 0.0]
        spec.joint(f"{leg}_knee").range = [-130.0, 0.0]
        spec.joint(f"{leg}_ankle").range = [-60.0, 60.0]
    for joint in spec.joints:
        if not joint.name.startswith("root"):
            joint.damping, joint.armature = [0.5, 0.0, 0.0], 0.05
    for geom in spec.geoms:
        geom.friction = [1.2, 0.1, 0.1]
    assert different(physics.model.ptr, quietly(spec)) == []


def test_stock_values_leave_every_bit():
    physics, dynamics = walker()
    stock = {variable.name: float(variable.default) for variable in dynamics_variables("walker")}
    assert not dynamics.write(stock)
    dynamics.write(stock | {"torso/length": 0.9, "dynamics/mass_scale": 1.2})
    assert different(physics.model.ptr, template("walker", "walk").model)
    assert dynamics.write(stock)
    assert different(physics.model.ptr, template("walker", "walk").model) == []


@pytest.mark.parametrize("task", ["walker_walk", "finger_turn_hard", "ball_in_cup_catch"])
def test_a_value_set_at_the_start_is_in_the_model_like_one_set_later(task):
    first, later = (iv.make(f"control/{task}-v1", observation="state") for _ in range(2))
    models = [env.unwrapped.world._stages[0].physics.model.ptr for env in (first, later)]
    for variable in dynamics_variables(task.partition("_")[0].replace("ball", "ball_in_cup")):
        value = variable.space("A").high
        first.reset(seed=3, options={"do": {variable.name: value}})
        later.reset(seed=3)
        later.do({variable.name: value})
        assert different(*models) == [], variable.name


def test_a_variable_of_several_numbers_is_refused(monkeypatch):
    wind = Variable(
        name="air/wind",
        kind="latent",
        default=np.zeros(3),
        domain=Box(-9.0, 9.0, shape=(3,)),
        bindings=(Binding("opt.wind"),),
    )
    monkeypatch.setattr(dynamics_module, "SCALES", (*dynamics_module.SCALES, wind))
    with pytest.raises(InvalidValueError, match="air/wind is no single number"):
        walker()


@pytest.mark.parametrize("domain", DOMAINS)
def test_scales_scale_what_they_name(domain):
    made = template(domain, DOMAINS[domain].tasks[0])
    physics = new_physics(made)
    values = {v.name: float(v.default) for v in dynamics_variables(domain)}
    rubs = "dynamics/friction" in values
    values |= {"dynamics/mass_scale": 1.25} | ({"dynamics/friction": 0.5} if rubs else {})
    values |= {"dynamics/damping": 2.0, "dynamics/actuator_strength": 0.75}
    Dynamics(physics, domain).write(values)
    ours, stock = physics.model.ptr, made.model
    np.testing.assert_allclose(ours.body_mass, 1.25 * stock.body_mass)
    np.testing.assert_allclose(ours.body_subtreemass, 1.25 * stock.body_subtreemass)
    np.testing.assert_allclose(ours.body_inertia, 1.25 * stock.body_inertia)
    np.testing.assert_allclose(ours.geom_friction, (0.5 if rubs else 1.0) * stock.geom_friction)
    np.testing.assert_allclose(ours.dof_damping, 2.0 * stock.dof_damping)
    np.testing.assert_allclose(ours.actuator_gainprm, 0.75 * stock.actuator_gainprm)
    np.testing.assert_allclose(ours.actuator_gear, stock.actuator_gear)


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_scale_acts_and_states_can_be_sampled(domain):
    env = iv.make(f"control/{domain}_{DOMAINS[domain].tasks[0]}-v1", observation="state")
    env.reset(seed=0)
    model = env.world.physics.model
    bits = mujoco.mjtDisableBit
    off = bool(model.opt.disableflags & (bits.mjDSBL_CONTACT | bits.mjDSBL_CONSTRAINT))
    assert ("dynamics/friction" in env.variables) == (not off)
    for name in ("qpos", "qvel"):
        assert np.isfinite(env.variables[name].domain.sample(np.random.default_rng(0))).all()
    env.close()


@pytest.mark.parametrize("domain", DOMAINS)
def test_gravity_and_springs_are_variables_where_they_act(domain):
    physics = new_physics(template(domain, DOMAINS[domain].tasks[0]))
    model, names = physics.model.ptr, {v.name for v in dynamics_variables(domain)}
    springs = model.jnt_stiffness.any() or model.tendon_stiffness.any()
    assert ("dynamics/stiffness" in names) == bool(springs)
    off = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
    assert ("dynamics/gravity" in names) == (not off and domain != "reacher")


def test_gravity_is_mujocos():
    env = iv.make("control/pendulum_swingup-v1", observation="state", dynamics_seed=3)
    falls = []
    for factor in (1.0, 1.5):
        env.reset(seed=0, options={"do": {"dynamics/gravity": factor}})
        env.do({"qpos": [0.5], "qvel": [0.0]})
        env.step(np.zeros(1))
        falls.append(env.values["qvel"][0])
        assert env.unwrapped.world.stage(0).physics.model.opt.gravity[2] == -9.81 * factor
    env.close()
    assert falls[1] == pytest.approx(1.5 * falls[0], rel=0.01)


def test_wind_alone_pushes_and_thick_air_carries():
    env = iv.make("control/cartpole_balance-v1", observation="state", dynamics_seed=0)
    env.reset(seed=0)
    rest = {"qpos": [0.0, 0.0], "qvel": [0.0, 0.0]}
    speeds = []
    for values in ({"dynamics/wind": 5.0}, {"dynamics/viscosity": 1.0, "dynamics/wind": 5.0}):
        env.do({**rest, **values}, check=False)
        env.step(np.zeros(1))
        speeds.append(env.values["qvel"][0])
    env.close()
    assert 0.0 < speeds[0] < speeds[1]


def test_a_new_variable_with_a_binding_acts_by_its_declaration_alone(monkeypatch):
    dry = Variable(
        name="dynamics/dry_friction",
        kind="latent",
        default=np.array(0.0),
        domain=Box(0.0, 1000.0),
        bindings=(Binding("dof_frictionloss"),),
    )
    monkeypatch.setattr(dynamics_module, "AIR", (*dynamics_module.AIR, dry))
    control_variables.cache_clear()
    ends = []
    for value in (0.0, 9.0):
        env = iv.make("control/walker_walk-v1", observation="state", dynamics_seed=0)
        env.reset(seed=0, options={"do": {"dynamics/dry_friction": value}})
        for _ in range(10):
            env.step(np.ones(6))
        ends.append(env.values["qpos"])
        env.close()
    control_variables.cache_clear()
    assert np.abs(ends[1] - ends[0]).max() > 1e-3


def test_a_binding_that_nothing_writes_by_is_refused():
    look = Variable(
        name="light/glow",
        kind="latent",
        default=np.array(0.0),
        domain=Box(0.0, 1.0),
        bindings=(Binding("light_diffuse"),),
    )
    with pytest.raises(InvalidValueError, match="light/glow has a binding to light_diffuse"):
        refuse_bindings([look])


@pytest.mark.parametrize("sigmoid", ["gaussian", "linear", "quadratic", "long_tail"])
@pytest.mark.parametrize("at_margin", [0.1, 0.5])
def test_every_bit_is_dm_controls(sigmoid, at_margin):
    rng = np.random.default_rng(0)
    for _ in range(300):
        low, number = rng.normal(), 5.0 * rng.normal()
        high = rng.choice([low, low + rng.exponential(), np.inf])
        margin = rng.choice([0.0, 3.0 * rng.exponential()])
        numbers = number, np.float64(number), np.array([number]), np.array([number, 0.0, -1.0])
        for x, bounds in itertools.product(numbers, ((low, high), (0.0, 0.0))):
            given = x, bounds, margin, sigmoid, at_margin
            wanted, found = stock.tolerance(*given), tolerance(*given)
            assert np.array_equal(wanted, found)
            assert type(wanted) is type(found)


def test_what_dm_control_refuses_is_refused():
    with pytest.raises(ValueError, match="Lower bound"):
        tolerance(0.0, (1.0, 0.0))
    with pytest.raises(ValueError, match="non-negative"):
        tolerance(0.5, (0.0, 1.0), -1.0)


def test_the_suite_itself_is_left_alone():
    ours, theirs = template("cartpole", "balance").task, suite.load("cartpole", "balance").task
    assert isinstance(ours, type(theirs))
    assert type(ours) is not type(theirs)
    assert type(theirs)._get_reward.__globals__["rewards"] is stock
    assert type(ours)._get_reward.__globals__["rewards"].tolerance is tolerance
