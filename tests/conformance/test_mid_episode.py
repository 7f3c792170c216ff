"""Edited equals rebuilt in mid-episode: `do` after some steps is the world declared that way.

The rebuilt world is made with the value as default and given the edited world's state but not its
model: what the model is then comes from building alone.
"""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.envs.snapshot import Snapshot
from tests.conformance.cases import CASES, chosen, play, same_play, some_value, writable

_MODEL = "model/"  # a simulator's fields in a snapshot
_STEPS = 2


def edited_equals_rebuilt(case, names):
    """Returns how many variables were checked; the first one that differs fails."""
    env = case.make()
    env.reset(seed=3)
    checked = 0
    for name in names:
        variable = env.unwrapped.variables[name]
        if variable.kind == "state":
            continue
        rng = np.random.default_rng(5)
        env.reset(seed=3)
        play(env, 3, min(_STEPS, case.steps - 1))
        value = some_value(variable, env.unwrapped.values[name], rng)
        try:
            env.unwrapped.do({name: value})
            rebuilt = case.make(defaults={name: value})
        except InvalidValueError:
            continue
        checked += _compare(case, env, rebuilt, name)
        rebuilt.close()
    env.close()
    return checked


def _compare(case, env, rebuilt, name):
    rebuilt.reset(seed=3)
    saved = env.unwrapped.snapshot()
    arrays = {n: v for n, v in saved.arrays.items() if not n.startswith(_MODEL)}
    built = rebuilt.unwrapped.snapshot().arrays
    arrays |= {n: v for n, v in built.items() if n.startswith(_MODEL)}
    moved = Snapshot(saved.id, rebuilt.unwrapped.driver.options_json, arrays)
    try:
        rebuilt.unwrapped.restore(moved)
    except InvalidValueError:
        return 0  # another number of blocks or objects: another shape of state
    left = max(1, case.steps - _STEPS)
    mine, theirs = (play(e, 3, left, start=_STEPS) for e in (env, rebuilt))
    assert same_play(mine, theirs), name
    return 1


def one_of_each_kind(names):
    """Returns a variable of each kind: block_0/mass stands for the mass of every block."""
    return list({_kind(name): name for name in reversed(chosen(names, most=0))}.values())


def _kind(name):
    return "".join(c for c in name if not c.isdigit())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_do_in_mid_episode_is_the_world_rebuilt(case):
    env = case.make()
    names = one_of_each_kind(writable(env))
    costly = case.id.startswith(("control/", "rooms/")) or "stacked" in case.id
    names = names[:: max(1, len(names) // 4)] if costly else names
    env.close()
    assert edited_equals_rebuilt(case, names) > 0  # of one step, before it


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_do_on_any_variable_in_mid_episode_is_the_world_rebuilt(case):
    env = case.make()
    names = writable(env)
    env.close()
    if case.steps > _STEPS:
        assert edited_equals_rebuilt(case, chosen(names)) > 0


def test_a_lost_model_field_is_noticed(monkeypatch):
    """The law fails for a world whose `do` does not reach the simulator."""
    from interverse.worlds.tutorial.world import Slider

    case = next(c for c in CASES if c.id == "tutorial/slider-v1")
    intervene = Slider.intervene

    def forgetful(self, values, worlds):
        refused = intervene(self, values, worlds)
        if "box/mass" in values:
            engine = self._engine
            before = engine.save(worlds)
            engine.load({n: v for n, v in before.items() if not n.startswith(_MODEL)}, worlds)
        return refused

    monkeypatch.setattr(Slider, "intervene", forgetful)
    with pytest.raises(AssertionError, match="box/mass"):
        edited_equals_rebuilt(case, ["box/mass"])
    assert iv.make(case.id)
