"""The declared causal graph against the simulation: what moves when one variable is changed."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import interverse as iv

STEPS = 25


def play(env):
    """Returns every variable after some steps that bring the fingers onto the floor."""
    wave = np.random.default_rng(3).uniform(-1, 1, (STEPS, 9)).astype(np.float32)
    wave[5:, 1::3] = -0.4
    for action in wave:
        env.step(action)
    return {name: value.copy() for name, value in env.unwrapped.values.items()}


def other_value(variable, rng):
    for space in (variable.space_a, variable.space_b, variable.domain):
        if space is not None:
            return space.sample(rng)
    raise AssertionError(variable.name)


# The others have their witnesses in tests/conformance.
@pytest.mark.parametrize(
    "task",
    [
        "pushing",
        *(
            pytest.param(t, marks=pytest.mark.slow)
            for t in ("reaching", "pick_and_place", "stacking2")
        ),
    ],
)
def test_the_graph_holds_every_effect_that_is_seen(envs, task):
    env = envs(task, skip_frame=4)
    rng = np.random.default_rng(0)
    fact = play(env)
    graph, acted = env.unwrapped.graph, 0
    for name, variable in list(env.unwrapped.variables.items()):
        if variable.read_only:
            continue
        env.reset(seed=0)
        try:
            env.unwrapped.do({name: other_value(env.unwrapped.variables[name], rng)})
        except iv.InterventionError:
            continue
        acted += 1
        seen = play(env)
        moved = {n for n in fact if not np.array_equal(fact[n], seen[n])}
        assert moved <= {name} | graph.effects_later(name), name
    assert acted > 20


def test_looks_cause_nothing_and_the_graph_is_a_dag_but_for_constraints(envs):
    graph = envs("pushing").unwrapped.graph
    for name in ("floor/color", "block_0/color", "light/direction", "camera_1/position"):
        assert not graph.effects_later(name), name
    plain = nx.DiGraph([(a, b) for a, b, d in graph.edges(data=True) if not d["constraint"]])
    assert nx.is_directed_acyclic_graph(plain)
    pairs = {(a, b) for a, b, d in graph.edges(data=True) if d["constraint"]}
    assert ("block_0/size", "goal_0/size") in pairs
    assert ("goal_0/cylindrical_position", "goal_0/cartesian_position") in pairs
