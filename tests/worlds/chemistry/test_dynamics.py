"""What painting does: against the textbook model, along the graph only, and where objects move."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interverse.core.rng import Noise
from interverse.scm import Do
from interverse.sim.raster import GRID
from interverse.worlds.chemistry import dynamics, graphs
from interverse.worlds.chemistry.reference import causes, start_model, step_model
from tests.worlds.chemistry.cases import mechanisms

GRAPHS = ["chain", "full", "collider", "jungle", "bidiag", "0->1,0->2,0->3,1->3,2->4"]
NAMES = [f"object_{i}/color" for i in range(5)]


def noise_of(count, step):
    return Noise(np.arange(count), np.full(count, 2), np.full(count, step))


@pytest.mark.parametrize("graph", GRAPHS)
def test_batched_dynamics_are_the_textbook_model(graph):
    """Same networks, same noise addresses: start and steps equal a plain SCM, world by world."""
    count = 24
    given = mechanisms(count, graph, gain=np.full(count, 1.2))
    noise = noise_of(count, 0)
    colors = dynamics.start(given, noise.uniforms(NAMES)[:, :, 0])
    for i in range(count):
        sampled = start_model(given, i).sample(noise.take(np.array([i])))
        assert [sampled[name] for name in NAMES] == colors[i].tolist()
    rng = np.random.default_rng(0)
    for step in range(1, 4):
        actions, noise = rng.integers(0, 25, count), noise_of(count, step)
        after = dynamics.propagate(
            colors, actions // 5, actions % 5, given, noise.uniforms(NAMES)[:, :, 0]
        )
        for i in range(count):
            do = causes(colors[i], int(actions[i]), 5)
            sampled = step_model(given, i).sample(noise.take(np.array([i])), do)
            assert [sampled[name] for name in NAMES] == after[i].tolist()
        colors = after


@pytest.mark.parametrize("graph", GRAPHS)
def test_mechanisms_read_their_parents_and_nothing_else(graph):
    """The reads that the model records are the graph that was asked for."""
    model = start_model(mechanisms(1, graph))
    reads = model.reads(Noise.single(seed=0))
    declared = graphs.edges_of(graphs.parse(graph, 5))
    assert {(j, i) for i in range(5) for j in range(5) if NAMES[j] in reads[NAMES[i]]} == set(
        declared
    )
    colors = model.graph.adjacency_matrix(NAMES)
    np.testing.assert_array_equal(colors, graphs.parse(graph, 5))


def test_the_step_model_declares_what_it_reads_when_everything_is_reached():
    model = step_model(mechanisms(1, "full"))
    for action in range(25):
        # SCM.sample raises if a mechanism reads an undeclared variable.
        model.sample(Noise.single(seed=3, step=1), causes([0, 1, 2, 3, 4], action, 5))


def test_a_counterfactual_of_the_textbook_model_keeps_what_the_paint_does_not_reach():
    model, noise = step_model(mechanisms(1, "0->1,2->3")), Noise.single(seed=5, step=1)
    fact = causes([0, 0, 0, 0, 0], 0, 5)
    other = model.counterfactual(noise, fact, Do({"action/object": 2, "action/color": 4}))
    assert [other[f"object_{i}/reached"] for i in range(5)] == [0, 0, 1, 1, 0]
    assert [other[f"object_{i}/color"] for i in (0, 1, 2, 4)] == [0, 0, 4, 0]


@pytest.mark.parametrize("graph", GRAPHS)
def test_painting_changes_descendants_only_exactly(graph):
    """Other paints, the same noise: only the painted object and its descendants differ."""
    count = 1000
    given = mechanisms(count, graph, gain=np.full(count, 3.0), bias=np.full(count, 0.4))
    network = nx.DiGraph()
    network.add_nodes_from(range(5))
    network.add_edges_from(graphs.edges_of(graphs.parse(graph, 5)))
    rng = np.random.default_rng(1)
    before, uniforms = rng.integers(0, 5, (count, 5)), rng.random((count, 5))
    for node in range(5):
        paints = [np.full(count, paint) for paint in range(5)]
        where = np.full(count, node)
        after = [dynamics.propagate(before, where, p, given, uniforms) for p in paints]
        reach = {node} | nx.descendants(network, node)
        for other in range(5):
            if other not in reach:
                np.testing.assert_array_equal(after[0][:, other], before[:, other])
            differs = any(np.any(a[:, other] != after[0][:, other]) for a in after)
            assert differs == (other in reach), (node, other)


def test_the_same_paint_still_redraws_the_descendants():
    given = mechanisms(200, "chain", gain=np.full(200, 0.5))
    before = np.zeros((200, 5), dtype=np.int64)
    uniforms = np.random.default_rng(0).random((200, 5))
    zero = np.zeros(200, dtype=np.int64)
    after = dynamics.propagate(before, zero, zero, given, uniforms)
    assert np.all(after[:, 0] == 0)
    assert np.mean(after[:, 4] != 0) > 0.5


def test_propagate_leaves_its_arguments_alone():
    given = mechanisms(10)
    before = np.random.default_rng(0).integers(0, 5, (10, 5))
    copy = before.copy()
    zero = np.zeros(10, dtype=np.int64)
    dynamics.propagate(before, zero, zero, given, np.full((10, 5), 0.5))
    np.testing.assert_array_equal(before, copy)
    still = dynamics.play(before, np.zeros((10, 0), np.int64), given, np.zeros((10, 5, 0)))
    still[:] = 9
    np.testing.assert_array_equal(before, copy)


def test_play_is_propagate_in_a_row():
    given, rng = mechanisms(30), np.random.default_rng(2)
    colors, actions = rng.integers(0, 5, (30, 5)), rng.integers(0, 25, (30, 4))
    uniforms = rng.random((30, 5, 4))
    step_by_step = colors
    for t in range(4):
        a = actions[:, t]
        step_by_step = dynamics.propagate(step_by_step, a // 5, a % 5, given, uniforms[:, :, t])
    np.testing.assert_array_equal(dynamics.play(colors, actions, given, uniforms), step_by_step)


# ------------------------------------------------------------------------------ moving

STEPS = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1), 4: (-1, 1)}


def moved_one_by_one(positions, before, after):
    """The plain rule, one object at a time."""
    out = [tuple(cell) for cell in positions.tolist()]
    for i, (old, new) in enumerate(zip(before.tolist(), after.tolist(), strict=True)):
        down, right = STEPS[new]
        there = (out[i][0] + down, out[i][1] + right)
        inside = all(0 <= part < GRID for part in there)
        if old != new and inside and there not in out:
            out[i] = there
    return out


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), objects=st.integers(1, 25))
def test_moves_follow_the_plain_rule(seed, objects):
    rng = np.random.default_rng(seed)
    cells = np.stack([rng.permutation(25)[:objects] for _ in range(8)])
    positions = np.stack([cells // GRID, cells % GRID], axis=-1)
    before, after = rng.integers(0, 5, (2, 8, objects))
    ours = dynamics.move(positions, before, after)
    for world in range(8):
        plain = moved_one_by_one(positions[world], before[world], after[world])
        assert [tuple(cell) for cell in ours[world].tolist()] == plain
        assert len(set(plain)) == objects


def test_rewards_are_fractions_of_matches():
    colors = np.array([[0, 1, 2], [0, 0, 0]])
    targets = np.array([[0, 1, 2], [1, 1, 0]])
    np.testing.assert_array_equal(dynamics.matches(colors, targets), [1.0, 1 / 3])
