"""Networks and chances: how they are drawn, that tables and networks agree, that samples fit."""

import numpy as np
import pytest
from scipy import stats

from interverse.worlds.chemistry import cpt
from tests.worlds.chemistry.cases import SIZES, mechanisms


@pytest.mark.parametrize(("rows", "columns"), [(20, 25), (20, 15), (5, 20), (4, 4)])
def test_orthogonal_layers_are_orthonormal_along_their_short_side(rows, columns):
    layers = cpt.orthogonal(np.random.default_rng(0).normal(size=(7, rows, columns)))
    for layer in layers:
        small = layer @ layer.T if rows <= columns else layer.T @ layer
        np.testing.assert_allclose(small, np.eye(min(rows, columns)), atol=1e-12)


def test_orthogonal_is_torchs_initialisation_for_the_same_normal_numbers():
    torch = pytest.importorskip("torch")
    for shape in ((20, 25), (5, 20), (20, 15)):
        generator = torch.Generator().manual_seed(1)
        theirs = torch.empty(shape, dtype=torch.float64)
        torch.nn.init.orthogonal_(theirs, generator=generator)
        normal = torch.empty(shape, dtype=torch.float64).normal_(
            0, 1, generator=torch.Generator().manual_seed(1)
        )
        np.testing.assert_allclose(cpt.orthogonal(normal.numpy()), theirs.numpy(), atol=1e-12)


def test_uniform_layers_and_biases_fill_their_range():
    weights = cpt.draw_weights([np.random.default_rng(0)], SIZES, "uniform")
    for part in cpt.PARTS:
        values = getattr(weights, part).ravel()
        assert stats.kstest(values, stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_networks_are_what_a_plain_network_computes():
    """Against a dense one-hot network written with matrix products."""
    weights = cpt.draw_weights([np.random.default_rng(3)], SIZES, "orthogonal")
    rng = np.random.default_rng(0)
    colors = rng.integers(0, 5, (50, 5))
    for graph in ("chain", "full", "collider"):
        given = mechanisms(50, graph, weights)
        for v in range(5):
            mask = np.repeat(given.adjacency[0, v], 5)
            one_hot = np.eye(5)[colors].reshape(50, 25) * mask
            first = 3.5 * weights.first[0, v].reshape(25, 20)
            hidden = np.maximum(one_hot @ first + 2.1 * weights.first_bias[0, v], 0.0)
            scores = hidden @ (3.5 * weights.second[0, v]) + 2.1 * weights.second_bias[0, v]
            chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            ours = cpt.probabilities(given, v, colors)
            np.testing.assert_allclose(ours, chances, atol=1e-12)


def test_dense_features_of_one_hot_colours_give_the_same_sums():
    given, colors = mechanisms(30), np.random.default_rng(0).integers(0, 5, (30, 5))
    for v in range(5):
        dense = cpt.first_layer_dense(given, v, np.eye(5)[colors])
        np.testing.assert_allclose(dense, cpt.first_layer(given, v, colors), atol=1e-13)


@pytest.mark.parametrize("graph", ["chain", "full", "collider", "0->4"])
def test_tables_hold_the_bits_of_the_networks(graph):
    given = mechanisms(200, graph)
    tables = cpt.tabulate(given.weights, given.adjacency[0], 3.5, 2.1)
    colors = np.random.default_rng(0).integers(0, 5, (200, 5))
    for v, table in enumerate(tables):
        read = table.cumulative[cpt.table_row(table, colors)]
        direct = cpt.cumulative(given, v, cpt.first_layer(given, v, colors))
        assert read.tobytes() == direct.tobytes()


def test_a_table_too_large_is_left_out_and_not_missed():
    sizes = cpt.CptSizes(objects=8, features=5, hidden=32, colors=5)
    weights = cpt.draw_weights([np.random.default_rng(0)], sizes, "orthogonal")
    plain = mechanisms(64, "full", weights)
    tables = cpt.tabulate(weights, plain.adjacency[0], 3.5, 2.1)
    assert [table is None for table in tables] == [False] * 7 + [True]
    fast = mechanisms(64, "full", weights, tables=tables, standard=np.ones(64, bool))
    rng = np.random.default_rng(1)
    colors, uniforms = rng.integers(0, 5, (64, 8)), rng.random(64)
    for v in range(8):
        np.testing.assert_array_equal(
            cpt.sample(fast, v, colors, uniforms), cpt.sample(plain, v, colors, uniforms)
        )


def test_worlds_that_were_edited_leave_the_tables_and_others_do_not_notice():
    rng = np.random.default_rng(1)
    colors, uniforms = rng.integers(0, 5, (300, 5)), rng.random(300)
    gain = np.where(np.arange(300) % 3 == 0, 0.4, 3.5)
    plain = mechanisms(300, gain=gain)
    tables = cpt.tabulate(plain.weights, plain.adjacency[0], 3.5, 2.1)
    mixed = mechanisms(300, gain=gain, tables=tables, standard=gain == 3.5)
    for v in range(5):
        np.testing.assert_array_equal(
            cpt.sample(mixed, v, colors, uniforms), cpt.sample(plain, v, colors, uniforms)
        )


def test_only_parents_are_read():
    given = mechanisms(2, "chain")
    for v in range(1, 5):
        for other in range(5):
            colors = np.array([[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
            colors[1, other] = 3
            first, second = cpt.probabilities(given, v, colors)
            assert np.array_equal(first, second) == (other != v - 1)


def test_gain_and_bias_of_zero_make_every_colour_alike():
    given = mechanisms(3, gain=np.zeros(3), bias=np.zeros(3))
    colors = np.array([[0, 1, 2, 3, 4]] * 3)
    np.testing.assert_allclose(cpt.probabilities(given, 4, colors), 0.2, atol=1e-15)


def test_samples_have_the_chances_of_the_network():
    given = mechanisms(40_000, gain=np.full(40_000, 1.5))
    colors = np.repeat(np.array([[4, 1, 2, 0, 3]]), 40_000, axis=0)
    uniforms = np.random.default_rng(7).random(40_000)
    for v in range(1, 5):
        chances = cpt.probabilities(given, v, colors)[0]
        counts = np.bincount(cpt.sample(given, v, colors, uniforms), minlength=5)
        assert stats.chisquare(counts, 40_000 * chances).pvalue > 1e-4


def test_pick_inverts_cumulative_chances_at_their_ends():
    ends = np.array([[0.25, 0.5, 1.0]] * 5)
    uniforms = np.array([0.0, np.nextafter(0.25, 0), 0.25, 0.5, np.nextafter(1.0, 0)])
    assert cpt.pick(ends, uniforms).tolist() == [0, 0, 1, 2, 2]
