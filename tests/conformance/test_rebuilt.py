"""What is declared is what runs: simulators hold what values mean, edited equals rebuilt.

Bindings send what changes. So a default that a scene was not compiled with must be sent as well,
or values say one thing and the simulator runs with another. A default equals a `do` at every reset,
and a `do` after some steps is the world declared that way and given the edited one's state but not
its model: what the model is then comes from building alone. All bit for bit.
"""

import contextlib

import numpy as np
import pytest

import interverse as iv
from interverse.core.arrays import as_rows
from interverse.core.errors import InvalidValueError
from interverse.envs.snapshot import Snapshot
from interverse.scm import Binding, Box, CausalGraph, Variable, table
from interverse.sim.elements import STATE_FIELDS, find_slot, template
from interverse.worlds.control import dynamics as control_dynamics
from interverse.worlds.control.paint import PIXELS, SHOWN
from interverse.worlds.control.variables import control_variables
from interverse.worlds.trifinger.physics import PHYSICAL
from interverse.worlds.tutorial import world as tutorial

from .cases import (
    CASES,
    Case,
    as_numpy,
    chosen,
    play,
    same,
    same_play,
    some_value,
    state,
    writable,
)

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
def test_after_a_reset_and_a_do_the_model_has_what_the_values_mean(case):
    """A field made from several values follows each of them: friction of two things, say."""
    env = case.make()
    env.reset(seed=0)
    world, rng = env.unwrapped.world, np.random.default_rng(0)
    assert not_held(world) == []
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


# --------------------------------------------------------------- edited equals rebuilt

META = [
    Case("chemistry/random-v1", {"meta": True, "objects": 4}),
    Case("blocks/observed-4-v1", {"max_steps": 3}),
]
EVERY = [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
_MODEL = "model/"  # a simulator's fields in a snapshot
_STEPS = 2


def beginning(env, episode, steps, do=None):
    """Returns values, observation, state and first steps of an episode, or None if refused."""
    options = {"episode": episode} | ({} if do is None else {"do": do})
    try:
        seen, _ = env.reset(seed=7, options=options)
    except iv.InterventionError:
        return None
    out = {"seen": as_numpy(seen), **{f"value/{n}": v for n, v in env.unwrapped.values.items()}}
    out |= {f"state/{n}": v for n, v in state(env).items()}  # grows with the first edit of a field
    for step, (later, reward) in enumerate(play(env, 5, steps)):
        out |= {f"seen/{step}": as_numpy(later), f"reward/{step}": np.asarray(reward)}
    return out


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("case", [*CASES, *META], ids=str)
def test_a_default_is_a_do_at_every_reset(case, every):
    plain = case.make()
    names = writable(plain)
    for name in names if every else chosen(names):
        plain.reset(seed=7)
        variable, now = plain.unwrapped.variables[name], plain.unwrapped.values[name]
        value = some_value(variable, now, np.random.default_rng(3))
        try:
            other = case.make(defaults={name: value})
        except iv.InterverseError:  # chemistry refuses places that every episode draws
            refused = beginning(plain, 0, 1, {name: value}) is None
            assert "position" in name or refused, name
            continue
        for episode in (0, 3):
            told = beginning(plain, episode, case.steps, {name: value})
            declared = beginning(other, episode, case.steps)
            assert (told is None) == (declared is None), name
            if told is not None and declared is not None:
                both = told.keys() & declared.keys()
                assert not [key for key in both if not same(told[key], declared[key])], name
        other.close()
    plain.close()


def edited_equals_rebuilt_in_mid_episode(case, names):
    """Returns how many variables were checked; the first one that differs fails."""
    env = case.make()
    env.reset(seed=3)
    checked = 0
    for name in names:
        variable = env.unwrapped.variables[name]
        if variable.kind == "state":
            continue
        env.reset(seed=3)
        play(env, 3, min(_STEPS, case.steps - 1))
        value = some_value(variable, env.unwrapped.values[name], np.random.default_rng(5))
        try:
            env.unwrapped.do({name: value})
            rebuilt = case.make(defaults={name: value})
        except InvalidValueError:
            continue
        rebuilt.reset(seed=3)
        saved = env.unwrapped.snapshot()
        arrays = {n: v for n, v in saved.arrays.items() if not n.startswith(_MODEL)}
        built = rebuilt.unwrapped.snapshot().arrays
        arrays |= {n: v for n, v in built.items() if n.startswith(_MODEL)}
        try:
            moved = Snapshot(saved.id, rebuilt.unwrapped.driver.options_json, arrays)
            rebuilt.unwrapped.restore(moved)
        except InvalidValueError:
            continue  # another number of blocks or objects: another shape of state
        left = max(1, case.steps - _STEPS)
        mine, theirs = (play(e, 3, left, start=_STEPS) for e in (env, rebuilt))
        assert same_play(mine, theirs), name
        checked += 1
        rebuilt.close()
    env.close()
    return checked


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_do_in_mid_episode_is_the_world_rebuilt(case, every):
    """Of many names one of each kind: block_0/mass stands for the mass of every block."""
    env = case.make()
    names = chosen(writable(env))
    env.close()
    if not every:
        kinds = {"".join(c for c in n if not c.isdigit()): n for n in reversed(names)}
        costly = case.id.startswith(("control/", "rooms/")) or "stacked" in case.id
        names = list(kinds.values())[:: max(1, len(kinds) // 4) if costly else 1]
    if not every or case.steps > _STEPS:
        assert edited_equals_rebuilt_in_mid_episode(case, names) > 0  # of one step, before it


def test_a_lost_model_field_is_noticed(monkeypatch):
    """The law fails for a world whose `do` does not reach the simulator."""
    intervene = tutorial.Slider.intervene

    def forgetful(self, values, worlds):
        refused = intervene(self, values, worlds)
        if "box/mass" in values:
            engine = self._engine
            before = engine.save(worlds)
            engine.load({n: v for n, v in before.items() if not n.startswith(_MODEL)}, worlds)
        return refused

    monkeypatch.setattr(tutorial.Slider, "intervene", forgetful)
    with pytest.raises(AssertionError, match="box/mass"):
        edited_equals_rebuilt_in_mid_episode(Case("tutorial/slider-v1"), ["box/mass"])
