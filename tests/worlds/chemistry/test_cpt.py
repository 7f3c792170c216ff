"""Networks and chances: how they are drawn and screened, that tables agree, that samples fit."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import interverse as iv
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.envs.build import build_world
from interverse.models.effects import TrueWorld, chemistry_trials, effects, score_effects
from interverse.worlds.chemistry import SKEWNESS, ChemistryOptions, cpt, layout
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


IDS = [f"chemistry/{name}-v1" for name in ("chain", "collider", "custom", "full", "random")]
DRAWS = range(3)


def world_and_effects(name, worlds=1, **options):
    world = build_world(name, worlds, options)
    screen = layout.screen(world.options)
    return world, screen, screen.effects(screen.weights(world.options.cpt_seed))


@pytest.mark.parametrize("name", IDS)
def test_every_edge_of_every_default_draw_has_an_effect(name):
    for cpt_seed in range(10):
        _, screen, found = world_and_effects(name, cpt_seed=cpt_seed)
        assert (found[screen.adjacency == 1] >= 0.2).all()


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("cpt_seed", DRAWS)
def test_the_true_world_as_a_model_recovers_its_whole_graph(name, cpt_seed):
    world = build_world(name, 3000, {"cpt_seed": cpt_seed})
    trials = chemistry_trials(world, seed=11)
    found = effects(TrueWorld(trials), trials)
    scores = score_effects(trials.graph, truth=found, found=found)
    assert (scores.fixed.f1, scores.fixed.shd) == (1.0, 0)
    assert scores.edges.average_precision == 1.0


def test_the_first_draw_had_a_dead_edge():
    """The draw that chain-v1 had: object 3 takes its colour whatever its parent shows."""
    _, _, found = world_and_effects("chemistry/chain-v1", least_effect=0)
    assert found[3, 2] < 0.02


def test_an_effect_is_the_mean_total_variation_counted_by_hand():
    env = iv.make("chemistry/chain-v1", objects=2, colors=3, least_effect=0)
    world, screen = env.unwrapped.world, layout.screen(env.unwrapped.world.options)
    ends = world._tables[1].cumulative
    chances = np.diff(ends, axis=1, prepend=0.0)
    pairs = [(0, 1), (0, 2), (1, 2)]
    by_hand = np.mean([0.5 * np.abs(chances[a] - chances[b]).sum() for a, b in pairs])
    assert screen.effects(screen.weights(0))[1, 0] == pytest.approx(by_hand, abs=1e-12)


def test_objects_that_pass_keep_their_first_draw():
    screened, first = (
        build_world("chemistry/chain-v1", 1, options)._weights
        for options in ({}, {"least_effect": 0})
    )
    same = [np.array_equal(screened.first[0, v], first.first[0, v]) for v in range(5)]
    assert same == [True, True, True, False, True]


def test_where_no_draw_can_pass_the_strongest_of_all_is_kept():
    options = {"graph": "full", "gain": 0.5, "bias": 0.5, "least_effect": 0.9, "objects": 3}
    _, screen, found = world_and_effects("chemistry/custom-v1", **options)
    _, _, first = world_and_effects("chemistry/custom-v1", **{**options, "least_effect": 0})
    assert found[screen.adjacency == 1].min() >= first[screen.adjacency == 1].min()


def test_named_levels_are_screened_and_numbers_of_ones_own_are_not():
    assert ChemistryOptions(graph="chain").screened_at == 0.2
    assert ChemistryOptions(graph="chain", skewness="orthogonal-1.5").screened_at == 0.2
    assert ChemistryOptions(graph="chain", gain=1.0).screened_at == 0.0
    assert ChemistryOptions(graph="chain", gain=1.0, least_effect=0.1).screened_at == 0.1
    assert ChemistryOptions(graph="chain", skewness="uniform-2.0", meta=True).screened_at == 0.0


@pytest.mark.parametrize("level", SKEWNESS)
def test_no_level_of_figure_24_has_a_dead_edge(level):
    for draw in range(3):
        _, screen, found = world_and_effects("chemistry/chain-v1", skewness=level, cpt_seed=draw)
        least = 0.19 if level == "orthogonal-1.5" else 0.2  # of so even chances few reach 0.2
        assert found[screen.adjacency == 1].min() >= least


@pytest.mark.parametrize("bad", [{"least_effect": 1.5}, {"least_effect": 0.1, "meta": True}])
def test_bad_screens_are_refused(bad):
    with pytest.raises(InvalidValueError, match="least_effect"):
        ChemistryOptions(graph="chain", **bad)


RECORDED = Path(__file__).parents[2] / "parity" / "data" / "gridworlds.json"


def table_world(**options):
    env = iv.make("chemistry/chain-v1", cpt="table", objects=3, colors=3, **options)
    env.reset(seed=0)
    return env


def test_chances_can_be_read_and_are_those_of_the_networks():
    env, plain = table_world(), iv.make("chemistry/chain-v1", objects=3, colors=3)
    plain.reset(seed=0)
    rows = env.values["object_1/cpt"]
    assert rows.shape == (3, 3)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    ends = plain.unwrapped.world._tables[1].cumulative
    np.testing.assert_allclose(np.cumsum(rows, axis=1), ends, atol=1e-12)
    for action in (0, 4, 8, 1, 5):
        a, b = env.step(action), plain.step(action)
        assert a[0]["image"].tobytes() == b[0]["image"].tobytes()


def test_chances_can_be_set_and_are_obeyed():
    env = table_world()
    env.unwrapped.do({"object_1/cpt": np.roll(np.eye(3), 1, axis=1)})  # its parent's colour, plus 1
    for color in (0, 1, 2, 0):
        env.step(color)  # paint object 0
        assert env.values["object_1/color"] == (color + 1) % 3
    twin = table_world(defaults={"object_1/cpt": np.roll(np.eye(3), 1, axis=1)})
    np.testing.assert_array_equal(twin.values["object_1/cpt"], env.values["object_1/cpt"])


def test_worlds_of_a_batch_have_chances_of_their_own():
    venv = iv.make_vec("chemistry/chain-v1", num_envs=2, cpt="table", objects=3, colors=3)
    venv.reset(seed=0)
    always = np.stack([np.tile(np.eye(3)[c], (3, 1)) for c in (0, 2)])
    venv.unwrapped.do({"object_1/cpt": always})
    for action in (0, 1, 2):
        venv.step(np.full(2, action))
        assert venv.unwrapped.values["object_1/color"].tolist() == [0, 2]


def test_rows_that_are_no_chances_are_refused():
    env = table_world()
    with pytest.raises(iv.InterventionError, match=r"row 0 of object_1/cpt sums to 0\.6"):
        env.unwrapped.do({"object_1/cpt": np.full((3, 3), 0.2)})
    with pytest.raises(InvalidValueError, match="sums to"):
        table_world(defaults={"object_1/cpt": np.full((3, 3), 0.2)})
    with pytest.raises(ValueError, match="edge_0_1"):
        env.unwrapped.do({"edge_0_1": 0})  # the graph can only be read


@pytest.mark.parametrize(
    "options", [{"cpt": "tabel"}, {"cpt": "table", "meta": True}, {"cpt": "table", "objects": 25}]
)
def test_bad_tables_are_refused(options):
    with pytest.raises((InvalidValueError, UnknownNameError), match=r"cpt|table"):
        iv.make("chemistry/full-v1", **options)


def saved(path, graph):
    """Writes the networks that the recorded chances are of, as the original saves them."""
    torch = pytest.importorskip("torch")
    content = {"graph": torch.as_tensor(np.asarray(graph), dtype=torch.float32)}
    a, b = np.arange(12)[:, None] + 1, np.arange(9)[None] + 1
    c, d = np.arange(3)[:, None] + 1, np.arange(12)[None] + 1
    for v in range(3):
        layers = {
            "layers.0.weight": np.sin(0.3 * a * b + v),
            "layers.0.bias": np.cos(a[:, 0] + v),
            "layers.2.weight": np.cos(0.2 * c * d + v),
            "layers.2.bias": np.sin(c[:, 0] + v),
        }
        content[f"mlp{v}"] = {name: torch.as_tensor(part) for name, part in layers.items()}
    torch.save(content, path)
    return str(path)


def test_a_file_of_the_original_gives_the_recorded_chances(tmp_path):
    recorded = json.loads(RECORDED.read_text())["chemistry_cpt_probabilities"]["cases"]
    chain = np.diag(np.ones(2, dtype=int), -1)
    path = saved(tmp_path / "chain.pt", chain)
    env = iv.make("chemistry/custom-v1", cpt_file=path, cpt="table", objects=3, colors=3, hidden=12)
    env.reset(seed=0)
    np.testing.assert_array_equal(env.values["graph/adjacency"], chain)
    checked = 0
    for case in recorded:
        if case["graph"] == "chain3" and case["node"] > 0:
            row = case["colours"][case["node"] - 1]
            ours = env.values[f"object_{case['node']}/cpt"][row]
            np.testing.assert_allclose(ours, case["probs"], atol=1e-6)
            checked += 1
    assert checked > 0


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = saved(tmp_path / "chain.pt", np.diag(np.ones(2, dtype=int), -1))
    with pytest.raises(FileFormatError, match="objects is 5"):
        iv.make("chemistry/custom-v1", cpt_file=path)
    with pytest.raises(FileFormatError, match="has layers of"):
        iv.make("chemistry/custom-v1", cpt_file=path, objects=3, colors=3, hidden=7)
    with pytest.raises(FileFormatError, match="no such file"):
        iv.make("chemistry/custom-v1", cpt_file=str(tmp_path / "missing.pt"))
    (tmp_path / "bad.pt").write_bytes(b"no tensors")
    with pytest.raises(FileFormatError, match="cannot be read"):
        iv.make("chemistry/custom-v1", cpt_file=str(tmp_path / "bad.pt"))
    with pytest.raises(InvalidValueError, match="the path of a file"):
        iv.make("chemistry/custom-v1", cpt_file=3)
    with pytest.raises(InvalidValueError, match="Pass cpt_file to chemistry/custom-v1"):
        iv.make("chemistry/chain-v1", cpt_file=path)
