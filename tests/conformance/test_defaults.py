"""What is declared is what runs from the start: simulators hold what values mean after a reset.

Bindings send what changes. So a default that a scene was not compiled with must be sent as well,
or values say one thing and the simulator runs with another. And a default equals a `do` at every
reset, bit for bit.
"""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import interverse as iv
from interverse.core.arrays import as_rows
from interverse.scm import Binding, Box, CausalGraph, Variable, table
from interverse.scm.variable import KINDS
from interverse.sim.elements import STATE_FIELDS, find_slot, template
from interverse.worlds.control import dynamics as control_dynamics
from interverse.worlds.control.paint import PIXELS, SHOWN
from interverse.worlds.control.variables import control_variables
from interverse.worlds.trifinger.physics import PHYSICAL
from interverse.worlds.tutorial import world as tutorial

from .cases import CASES, Case, as_numpy, play, same, some_value, state, writable

# Distractions write over what looks write, so the looks' own fields hold something else.
SIMULATED = [
    case
    for case in CASES
    if case.id.startswith(("control/", "trifinger/", "tutorial/"))
    and "distraction" not in case.options
]


def not_held(world):
    """Returns the fields of the first world's model that are not what the values mean."""
    store = world._store
    kinds = {"kinds": PHYSICAL} if hasattr(world, "_physics") else {}
    edits = store.edits(store.rows, set(store.slots), **kinds)
    return [b.field for b, values in edits if not holds(world, b, values)]


def holds(world, binding, values):
    # A factor says nothing by itself; pictures are made when something is drawn; state moves.
    if binding.relative or binding.field in (PIXELS, SHOWN, *STATE_FIELDS):
        return True
    engine = world._physics.engine if hasattr(world, "_physics") else getattr(world, "_engine", 0)
    if engine:
        return engine.holds(binding, values, np.arange(world.num_worlds))
    model = world._stages[0].physics.model.ptr
    columns = find_slot(model, binding, visual=True).columns
    held = template(model, binding.field).reshape(-1)[columns]
    meant = as_rows(values, 1, len(columns), binding.field)[0] * binding.scale
    return np.allclose(held, meant, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("case", SIMULATED, ids=str)
def test_after_a_reset_the_model_has_what_the_values_mean(case):
    env = case.make()
    env.reset(seed=0)
    assert not_held(env.unwrapped.world) == []
    env.close()


@pytest.mark.parametrize("case", SIMULATED, ids=str)
def test_after_a_do_the_model_has_what_the_values_mean(case):
    """A field made from several values follows each of them: friction of two things, say."""
    env = case.make()
    env.reset(seed=0)
    world, rng = env.unwrapped.world, np.random.default_rng(0)
    env.step(env.action_space.sample() * 0)
    kinds = {name.rpartition("/")[2]: name for name, v in world.variables.items() if v.bindings}
    for name in kinds.values():
        space = env.unwrapped.variables[name].space_a or env.unwrapped.variables[name].domain
        with contextlib.suppress(iv.InterventionError):
            env.unwrapped.do({name: space.sample(rng)}, check=False)
        assert not_held(world) == [], name
    env.close()


# ------------------------------------------------- a default that the scene does not have


def heavy_air(field):
    return Variable(
        name="air/density",
        kind="latent",
        default=np.array(500.0),
        domain=Box(0.0, 1000.0),
        bindings=(Binding(field),),
    )


def field_of(world, field):
    if hasattr(world, "_engine"):
        return world._engine.field(Binding(field))[0]
    return np.atleast_1d(template(world._stages[0].physics.model.ptr, field)).ravel()


def check_there_and_back(env, field):
    """The default is sent at the start, after another value, and at the next start."""
    world = env.unwrapped.world
    for _ in range(2):
        env.reset(seed=0)
        assert np.all(field_of(world, field) == 500.0)
        env.do({"air/density": 900.0})
        assert np.all(field_of(world, field) == 900.0)
        env.do({"air/density": 500.0})
        assert np.all(field_of(world, field) == 500.0)
        assert not_held(world) == []
        env.do({"air/density": 900.0})
    env.close()


def test_the_template_sends_a_default_that_its_scene_does_not_have(monkeypatch):
    declared = table(*tutorial.VARIABLES.values(), heavy_air("opt.density"))
    graph = CausalGraph(tutorial.GRAPH)
    graph.add_node("air/density")
    monkeypatch.setattr(tutorial, "VARIABLES", declared)
    monkeypatch.setattr(tutorial, "GRAPH", graph)
    check_there_and_back(iv.make("tutorial/slider-v1"), "opt.density")


@pytest.mark.parametrize("field", ["dof_frictionloss", "dof_armature"])
def test_control_sends_a_default_that_its_scene_does_not_have(monkeypatch, field):
    monkeypatch.setattr(control_dynamics, "AIR", (*control_dynamics.AIR, heavy_air(field)))
    control_variables.cache_clear()
    try:
        check_there_and_back(iv.make("control/cartpole_balance-v1", observation="state"), field)
    finally:
        control_variables.cache_clear()


# ------------------------------------------------------- a default is a do at every reset

META = [
    Case("chemistry/random-v1", {"meta": True, "objects": 4}),
    Case("blocks/observed-4-v1", {"max_steps": 3}),
]
_A_KIND = 5  # variables of a kind that are tried in one world


def some_of_each_kind(env):
    """Returns a few settable variables of each kind, unlike ones first."""
    rng, out = np.random.default_rng(0), []
    for kind in KINDS:
        names = [n for n in writable(env) if env.unwrapped.variables[n].kind == kind]
        unlike = list({name.rpartition("/")[2]: name for name in rng.permutation(names)}.values())
        out += unlike[:_A_KIND]
    return out


def beginning(env, episode, do=None):
    """Returns values, observation, state and first steps of an episode, or None if refused."""
    options = {"episode": episode} | ({} if do is None else {"do": do})
    try:
        seen, _ = env.reset(seed=7, options=options)
    except iv.InterventionError:
        return None
    out = {"seen": as_numpy(seen), **{f"value/{n}": v for n, v in env.unwrapped.values.items()}}
    out |= {f"state/{n}": v for n, v in state(env).items()}  # grows with the first edit of a field
    for step, (later, reward) in enumerate(play(env, 5, 1)):
        out |= {f"seen/{step}": as_numpy(later), f"reward/{step}": np.asarray(reward)}
    return out


def made_with(case, name, value):
    """Returns an environment with another default, or None where that is refused at once.

    Chemistry refuses places that every episode draws.
    """
    try:
        return case.make(defaults={name: value})
    except iv.InterverseError:
        return None


@pytest.mark.parametrize("case", [*CASES, *META], ids=str)
def test_a_default_is_a_do_at_every_reset(case):
    plain = case.make()
    for name in some_of_each_kind(plain):
        plain.reset(seed=7)
        variable, now = plain.unwrapped.variables[name], plain.unwrapped.values[name]
        value = some_value(variable, now, np.random.default_rng(3))
        other = made_with(case, name, value)
        if other is None:
            assert "position" in name or beginning(plain, 0, {name: value}) is None, name
            continue
        for episode in (0, 3):
            told, declared = beginning(plain, episode, {name: value}), beginning(other, episode)
            assert (told is None) == (declared is None), name
            if told is not None and declared is not None:
                both = told.keys() & declared.keys()
                assert not [key for key in both if not same(told[key], declared[key])], name
        other.close()
    plain.close()
