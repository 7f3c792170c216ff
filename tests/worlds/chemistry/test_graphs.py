"""Graphs by family, by text, by matrix, by chance; and what is refused."""

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.core.rng import Noise
from interverse.worlds.chemistry import graphs


def as_networkx(adjacency):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(adjacency)))
    graph.add_edges_from(graphs.edges_of(adjacency))
    return graph


@pytest.mark.parametrize("n", range(2, 16))
def test_families_are_the_textbook_graphs(n):
    def edges(family):
        return set(as_networkx(graphs.parse(family, n)).edges)

    assert edges("chain") == set(nx.path_graph(n, create_using=nx.DiGraph).edges)
    assert edges("tree") == set(nx.full_rary_tree(2, n, create_using=nx.DiGraph).edges)
    assert edges("full") == {(a, b) for a, b in nx.complete_graph(n).edges}
    star = nx.star_graph(n - 1)
    assert edges("collider") == {(n - 1 - b, n - 1 - a) for a, b in star.edges}
    chain = nx.path_graph(n, create_using=nx.DiGraph)
    two_on = {(a, b) for a in chain for b in chain if b - a in (1, 2)}
    assert edges("bidiag") == two_on
    tree = nx.full_rary_tree(2, n, create_using=nx.DiGraph)
    grand = {(a, c) for a in tree for b in tree[a] for c in tree[b]}
    assert edges("jungle") == set(tree.edges) | grand


@pytest.mark.parametrize(
    ("text", "objects", "edges"),
    [
        ("0->1->2", 3, [(0, 1), (1, 2)]),
        (" 0 -> 1 -> 2 , { 0 - 2 } -> 4 ", 5, [(0, 1), (1, 2), (0, 4), (1, 4), (2, 4)]),
        ("{0-2,4}->5", 6, [(0, 5), (1, 5), (2, 5), (4, 5)]),
        ("{0-2}->{0-2}", 3, [(0, 1), (0, 2), (1, 2)]),
        ("1->{0-3}", 4, [(1, 2), (1, 3)]),
        ("{2,0}->1", 3, [(0, 1)]),
        ("0->1,0->1", 2, [(0, 1)]),
        ("0,1,2", 3, []),
        ("Chain3", 3, [(0, 1), (1, 2)]),
        ("fork3", 3, [(0, 1), (0, 2)]),
        ("confounder", 3, [(0, 1), (0, 2), (1, 2)]),
    ],
)
def test_texts_mean_these_edges(text, objects, edges):
    assert sorted(graphs.edges_of(graphs.parse(text, objects))) == sorted(edges)


def test_a_matrix_means_itself():
    matrix = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    for given in (matrix, matrix.tolist(), matrix.astype(bool), matrix.astype(float)):
        np.testing.assert_array_equal(graphs.parse(given, 3), matrix)


@pytest.mark.parametrize("text", ["random", "Random", "None"])
def test_no_graph_means_a_random_one(text):
    assert graphs.parse(text, 5) is None


@pytest.mark.parametrize(
    ("graph", "objects", "message"),
    [
        ("0->1->0", 3, "has a cycle: 0 -> 1 -> 0"),
        ("0->1->2->0", 3, "has a cycle: 0 -> 1 -> 2 -> 0"),
        ("2->1,3->4->3", 5, "has a cycle: 3 -> 4 -> 3"),
        ("1->1", 3, "has a cycle: 1 -> 1"),
        ("2->1", 3, "2->1, against the order of the objects"),
        ("0->5", 5, "names object 5, but there are 5.*0 to 4.*objects=6"),
        ("{0-9}->1", 5, "names object 9"),
        ("chian", 5, "unknown graph 'chian'.*Did you mean 'chain'"),
        ("chain7", 5, "'chain7' has 7 objects, but objects is 5.*objects=7"),
        ("fork", 5, "has three objects, but objects is 5.*'tree'"),
        ("confounder4", 4, "has three objects"),
        ("0->", 3, "an object is missing"),
        ("", 3, "an object is missing"),
        ("0-1", 3, "'0-1' is no object"),
        ("0->x", 3, "'x' is no object"),
        ("0>1", 3, "is no object"),
        ("{0-2->1", 3, "braces do not match"),
        ("{0-{1}}->2", 3, "braces do not match"),
        ("}0{->2", 3, "braces do not match"),
        ("{2-0}->2", 3, "runs backwards"),
        ("{1-2}->0", 3, r"no edge can run from \[1, 2\] up to \[0\]"),
        ("-1->2", 3, "is no object"),
        ("²->3", 4, "is no object"),
        ([[0, 1], [1, 0]], 2, "has a cycle: 0 -> 1 -> 0"),
        ([[0, 1], [0, 0]], 2, "1->0, against the order"),
        ([[0, 0], [2, 0]], 2, "other values.*0 and 1"),
        ([[0, 0], [float("nan"), 0]], 2, "other values"),
        ([[0, 0, 0]], 3, r"has shape \(1, 3\).*\(3, 3\)"),
        ([[0], [1, 0]], 2, "is no matrix"),
        ([["a", "b"], ["c", "d"]], 2, "other values"),
    ],
)
def test_what_is_no_graph_is_refused_by_name(graph, objects, message):
    with pytest.raises(InvalidValueError, match=message):
        graphs.parse(graph, objects)


def test_random_graphs_have_the_published_chances():
    n, worlds = 15, 4000
    noise = Noise(np.arange(worlds), np.zeros(worlds, np.int64), np.zeros(worlds, np.int64))
    drawn = graphs.random_adjacency(noise, n)
    assert not np.any(np.triu(drawn))
    for i, chance in [(1, 0.25), (2, 1 / 3), (3, 0.375), (4, 0.4), (10, 5 / 11), (14, 5 / 15)]:
        count = int(drawn[:, i, :i].sum())
        test = stats.binomtest(count, worlds * i, chance)
        assert test.pvalue > 1e-4, (i, count / (worlds * i))


def test_a_random_graph_is_a_function_of_its_address():
    many = Noise(np.arange(9), np.full(9, 2), np.zeros(9, np.int64))
    together = graphs.random_adjacency(many, 5)
    for seed in range(9):
        alone = graphs.random_adjacency(Noise.single(seed=seed, episode=2), 5)
        np.testing.assert_array_equal(together[seed], alone[0])
    assert len(np.unique(together.reshape(9, -1), axis=0)) > 4


def worlds_of(count: int) -> Noise:
    nothing = np.zeros(count, np.int64)
    return Noise(nothing, np.arange(count), nothing)


@pytest.mark.parametrize("density", [0.0, 0.25, 0.5, 1.0])
def test_a_density_is_the_share_of_possible_edges_in_every_graph(density):
    drawn = graphs.random_adjacency(worlds_of(200), 5, density=density)
    assert set(drawn.sum((1, 2)).tolist()) == {round(10 * density)}
    assert not np.triu(drawn).any()
    if density == 0.5:  # no place is likelier than another
        assert np.abs(drawn.mean(0)[np.tril_indices(5, -1)] - 0.5).max() < 0.15


@pytest.mark.parametrize("density", [None, 0.5])
def test_a_longest_chain_is_that_of_networkx(density):
    rows = worlds_of(20)
    drawn = graphs.random_adjacency(rows, 5, density=density, longest_chain=3)
    for graph in drawn:
        assert nx.dag_longest_path_length(nx.DiGraph(graphs.edges_of(graph))) == 3
    alone = graphs.random_adjacency(
        Noise.single(seed=0, episode=7), 5, density=density, longest_chain=3
    )
    np.testing.assert_array_equal(alone[0], drawn[7])


def test_a_chain_that_no_such_graph_has_is_told():
    with pytest.raises(InvalidValueError, match=r"longest_chain 4 and density 0\.2"):
        graphs.random_adjacency(Noise.single(seed=0), 5, density=0.2, longest_chain=4)


def test_density_and_chain_are_options_of_a_drawn_graph():
    env = iv.make("chemistry/random-v1", density=0.3, longest_chain=2, graph_seed=4)
    env.reset(seed=0)
    assert env.values["graph/adjacency"].sum() == 3
    with pytest.raises(InvalidValueError, match="the graph is not drawn"):
        iv.make("chemistry/chain-v1", density=0.3)
