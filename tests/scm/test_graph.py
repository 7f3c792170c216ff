"""The causal graph against networkx itself."""

import copy
import pickle

import networkx as nx
import numpy as np
import pydot
import pytest

from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.scm import CausalGraph

EDGES = [("mass", "speed'"), ("speed", "speed'"), ("speed'", "place'"), ("place", "place'")]


@pytest.fixture
def graph():
    return CausalGraph.build(
        ["mass", "speed", "place", "size", "inertia"], [*EDGES, ("size", "inertia")]
    )


def test_it_is_a_networkx_digraph(graph):
    assert isinstance(graph, nx.DiGraph)
    assert nx.is_directed_acyclic_graph(graph)
    assert graph.descendants("mass") == nx.descendants(graph, "mass") == {"speed'", "place'"}
    assert graph.ancestors("place'") == {"mass", "speed", "speed'", "place"}
    assert graph.parents("speed'") == {"mass", "speed"}
    assert graph.children("size") == {"inertia"}
    assert isinstance(graph.copy(), CausalGraph)


def test_effects_now_stay_in_the_slice_and_later_ones_do_not(graph):
    assert graph.effects_now("size") == {"inertia"}
    assert graph.effects_now("mass") == set()
    assert graph.effects_later("mass") == {"speed", "place"}
    assert graph.effects_later("place") == {"place"}


def test_constraints_go_both_ways():
    graph = CausalGraph.build(["block", "goal"], [], constraints=[("block", "goal")])
    assert graph.effects_now("block") == {"goal"}
    assert graph.effects_now("goal") == {"block"}
    assert graph.edges["goal", "block"]["constraint"]


def test_the_unrolled_view_repeats_the_edges(graph):
    unrolled = graph.unrolled(2)
    assert unrolled.has_edge(("mass", 0), ("speed", 1))
    assert unrolled.has_edge(("speed", 1), ("place", 1))
    assert not unrolled.has_edge(("speed", 0), ("place", 0))
    assert nx.is_directed_acyclic_graph(unrolled)
    assert nx.has_path(unrolled, ("mass", 1), ("place", 2))
    assert not nx.has_path(unrolled, ("mass", 2), ("place", 1))


def test_the_adjacency_matrix_has_parents_in_columns(graph):
    order = ["mass", "speed", "speed'"]
    matrix = graph.adjacency_matrix(order)
    assert matrix.tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 0]]
    assert np.array_equal(matrix.T, nx.to_numpy_array(graph, nodelist=order).astype(int))


def test_causes_of_the_next_moment_are_causes_of_the_variable(graph):
    states = ["mass", "speed", "place"]
    summary = nx.DiGraph((a.strip("'"), b.strip("'")) for a, b in EDGES)
    wanted = nx.to_numpy_array(summary, nodelist=states).astype(int).T
    assert np.array_equal(graph.adjacency_matrix(states), wanted)
    assert graph.parents("place") == {"place", "speed"} == set(summary.predecessors("place"))
    assert graph.parents("mass") == set()
    for asked in (graph.parents, lambda name: graph.adjacency_matrix([name])):
        with pytest.raises(UnknownNameError, match=r"variable of the graph 'sped'.*'speed'"):
            asked("sped")


def test_json_round_trip_and_dot(graph):
    assert nx.utils.graphs_equal(CausalGraph.from_json(graph.to_json()), graph)
    (parsed,) = pydot.graph_from_dot_data(graph.to_dot())
    assert len(parsed.get_edges()) == graph.number_of_edges()
    with pytest.raises(FileFormatError, match="not a causal graph"):
        CausalGraph.from_json("{}")


def test_an_outcome_has_causes_and_is_no_variable():
    graph = CausalGraph.build(["a", "b"], [("a", "b")], outcomes={"reward": ["b", "a"]})
    assert graph.parents("reward") == {"a", "b"}
    assert set(graph) == {"a", "b"}
    assert CausalGraph.from_json(graph.to_json()).parents("reward") == {"a", "b"}
    assert graph.copy().parents("reward") == {"a", "b"}


def test_an_edge_to_nowhere_is_refused():
    with pytest.raises(InvalidValueError, match="undeclared variable"):
        CausalGraph.build(["a"], [("a", "b")])


def test_it_plots_every_node(graph):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    graph.plot(ax)
    assert {text.get_text() for text in ax.texts} == set(graph.nodes)
    pyplot.close(figure)


def test_a_built_graph_is_frozen_and_its_copy_is_not():
    built = CausalGraph.build(["a", "b", "c"], [("a", "b")], constraints=[("b", "c")])
    edits = [
        lambda g: g.add_edge("a", "c"),
        lambda g: g.remove_edges_from(list(g.edges)),
        lambda g: g.remove_nodes_from(list(g)),
        lambda g: g.clear(),
        lambda g: g.edges["b", "c"].update(constraint=False),
        lambda g: g.edges["b", "c"].clear(),
        lambda g: g.nodes["a"].__setitem__("color", "red"),
        lambda g: nx.set_edge_attributes(g, {("b", "c"): {"constraint": False}}),
    ]
    for edit in edits:
        with pytest.raises(nx.NetworkXError):
            edit(built)
        edit(built.copy())
        edit(CausalGraph(built))
    assert built.twins("c") == {"b"}
    kept = pickle.loads(pickle.dumps(built))
    assert nx.utils.graphs_equal(kept, built)
    assert nx.utils.graphs_equal(copy.deepcopy(built), built)
