"""Chemistry against numbers recorded from the original.

Deviations we chose: the palette is the original's most frequent one (the original's jitters it at
construction), every draw comes from addressed noise, and networks are drawn by NumPy, not Torch.
"""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import interverse as iv
from interverse.core.rng import Noise
from interverse.worlds.chemistry import SKEWNESS, Chemistry, ChemistryOptions, cpt, dynamics, graphs

RECORDED = json.loads((Path(__file__).parent / "data" / "gridworlds.json").read_text())
GRAPHS = RECORDED["chemistry_graphs"]["graphs"]
RESAMPLED = RECORDED["chemistry_resampled"]["sets"]
BASELINES = RECORDED["chemistry_baselines"]["values"]
BY_FAMILY = RECORDED["chemistry_baselines_by_cpt_family"]["values"]
SIZES = cpt.CptSizes(objects=5, features=5, hidden=20, colors=5)
LEVELS = {
    "orthogonal gain 3.5, bias U(-2.1,2.1) (final)": "orthogonal-3.5",
    "orthogonal gain 2.5, bias U(-1.1,1.1)": "orthogonal-2.5",
    "orthogonal gain 1.5, bias U(-1.1,1.1)": "orthogonal-1.5",
    "uniform w 1.2, bias 1.8": "uniform-1.2",
    "uniform w 2.0, bias 3.5": "uniform-2.0",
    "uniform w 2.5, bias 3.5": "uniform-2.5",
}
SHORT_LEVELS = {
    "orth3.5/2.1": "orthogonal-3.5",
    "orth2.5/1.1": "orthogonal-2.5",
    "unif1.2/1.8": "uniform-1.2",
    "unif2.0/3.5": "uniform-2.0",
    "unif2.5/3.5": "uniform-2.5",
}


# --------------------------------------------------------------------------- structure


@pytest.mark.parametrize("name", GRAPHS)
def test_named_graphs_are_the_recorded_ones(name):
    recorded = GRAPHS[name]
    adjacency = graphs.parse(name, recorded["nodes"])
    assert adjacency.sum() == recorded["n_edges"]
    if recorded["edges_parent_child"] is not None:
        assert sorted(graphs.edges_of(adjacency)) == sorted(
            map(tuple, recorded["edges_parent_child"])
        )


@pytest.mark.parametrize("name", RESAMPLED)
def test_paint_resamples_the_recorded_objects(name):
    adjacency = graphs.parse(name, 5)
    weights = cpt.draw_weights([np.random.default_rng(0)], SIZES, "orthogonal")
    even = cpt.alike(weights, adjacency, gain=0.0, bias=0.0, count=1)
    for node, resampled in RESAMPLED[name].items():
        # Even chances and noise near 1: whoever is resampled turns from colour 0 to colour 4.
        before, painted = np.zeros((1, 5), dtype=np.int64), np.zeros(1, dtype=np.int64)
        noise = np.full((1, 5), 0.99)
        after = dynamics.propagate(before, np.array([int(node)]), painted, even, noise)
        assert np.flatnonzero(after[0] == 4).tolist() == resampled


# ------------------------------------------------------------------------------ chances


def recorded_network():
    """The network of the recorded probabilities, given by sines and cosines."""
    v, a, b = np.arange(3)[:, None, None], np.arange(12)[:, None], np.arange(9)
    first = np.sin(0.3 * (a + 1) * (b + 1) + v)  # (child, hidden, input)
    second = np.cos(0.2 * (np.arange(3)[:, None] + 1) * (np.arange(12) + 1) + v)
    return cpt.CptWeights(
        first=first.reshape(3, 12, 3, 3).transpose(0, 2, 3, 1)[None],
        first_bias=np.cos(np.arange(12) + 1 + np.arange(3)[:, None])[None],
        second=second.transpose(0, 2, 1)[None],
        second_bias=np.sin(np.arange(3) + 1 + np.arange(3)[:, None])[None],
    )


@pytest.mark.parametrize("case", RECORDED["chemistry_cpt_probabilities"]["cases"], ids=str)
def test_chances_of_given_networks_are_the_recorded_ones(case):
    mechanisms = cpt.alike(recorded_network(), graphs.parse(case["graph"], 3), 1.0, 1.0, 1)
    chances = cpt.probabilities(mechanisms, case["node"], np.array([case["colours"]]))
    np.testing.assert_allclose(chances[0], case["probs"], atol=2e-6)


@pytest.fixture(scope="module")
def drawn_networks():
    generators = [np.random.default_rng(i) for i in range(200)]
    return {
        family: cpt.draw_weights(generators, SIZES, family) for family in ("orthogonal", "uniform")
    }


@pytest.mark.parametrize("graph", ["chain5", "full5", "collider5"])
@pytest.mark.parametrize("level", LEVELS)
def test_entropy_of_drawn_networks_is_the_recorded_one(graph, level, drawn_networks):
    recorded = RECORDED["chemistry_cpt_entropy"]["families"][graph][level]
    family, gain, bias = SKEWNESS[LEVELS[level]]
    draws, colourings = 200, 40
    networks = drawn_networks[family]
    mechanisms = cpt.alike(networks, graphs.parse(graph, 5), gain, bias, draws)
    colors = np.random.default_rng(0).integers(0, 5, (draws, colourings, 5))
    entropy, most = [], []
    for v in range(1, 5):
        each = [cpt.probabilities(mechanisms, v, colors[:, c]) for c in range(colourings)]
        chances = np.stack(each, axis=1)
        nats = -np.sum(chances * np.log(np.maximum(chances, 1e-300)), axis=2)
        entropy.append(nats.mean(axis=1))
        most.append(chances.max(axis=2).mean(axis=1))
    entropy, most = np.ravel(entropy), np.ravel(most)
    # Both means come from 200 x 4 networks: four standard errors of their difference.
    error = 4 * np.sqrt(2 / len(entropy))
    assert abs(entropy.mean() - recorded["mean_entropy_nats"]) < error * entropy.std()
    assert abs(most.mean() - recorded["mean_max_prob"]) < error * most.std()
    assert entropy.std() == pytest.approx(recorded["sd_entropy_over_nodes"], rel=0.2)


# ---------------------------------------------------------------------------- baselines


def played(world, actions, count):
    """Returns reward and success after a row of actions from a fresh reset."""
    everyone, zero = np.arange(count), np.zeros(count, dtype=np.int64)
    world.reset(everyone, Noise(everyone, zero, zero), {})
    chosen = actions(world.score().info["target_actions"])
    for t in range(chosen.shape[1]):
        world.step(chosen[:, t], everyone, Noise(everyone, zero, zero + t + 1))
    score = world.score()
    return np.stack([score.reward, score.info["success"].astype(float)])


def baselines(graph, steps, level, count):
    """Returns (6, count): random, replay, do nothing; reward and success, a network a world."""
    options = ChemistryOptions(graph=graph, skewness=level, meta=True, target_steps=steps)
    world, rng = Chemistry(num_worlds=count, options=options), np.random.default_rng(0)
    return np.concatenate(
        [
            played(world, lambda target: rng.integers(0, 25, target.shape), count),
            played(world, lambda target: target, count),
            played(world, lambda target: target[:, :0], count),
        ]
    )


@pytest.mark.parametrize("key", BASELINES)
def test_baselines_are_the_recorded_ones(key):
    graph, steps = key.split("|")
    recorded, count = BASELINES[key], 600
    ours = baselines(graph, int(steps), "orthogonal-3.5", count)
    theirs, spread = np.array(recorded["mean"]), np.array(recorded["std_over_cpt"])
    error = np.sqrt(spread**2 / recorded["draws"] + ours.var(axis=1) / count)
    off = (ours.mean(axis=1) - theirs) / np.maximum(error, 1e-3)
    assert np.all(np.abs(off) < 4), off.round(1)


@pytest.mark.slow
@pytest.mark.parametrize("key", BY_FAMILY)
def test_baselines_of_every_level_are_the_recorded_ones(key):
    level, graph, steps = key.split("|")
    recorded, count = BY_FAMILY[key], 1000
    ours = baselines(graph, int(steps), SHORT_LEVELS[level], count)
    theirs, spread = np.array(recorded["mean"]), np.array(recorded["sd"])
    error = np.sqrt(spread**2 / 100 + ours.var(axis=1) / count)
    off = (ours.mean(axis=1) - theirs) / np.maximum(error, 1e-3)
    assert np.all(np.abs(off) < 4.5), off.round(1)


# -------------------------------------------------------------------------------- pixels


@pytest.mark.parametrize("graph", ["chain5", "full5", "collider5"])
def test_picture_statistics_are_the_recorded_ones(graph):
    recorded = RECORDED["image_statistics"]["stats"][f"ColorChangingRL-5-5-Static-10-v0|{graph}"]
    venv = iv.make_vec("chemistry/custom-v1", num_envs=300, graph=graph, meta=True)
    image = venv.reset(seed=0)[0]["image"] / 255.0
    painted = image.max(axis=3) > 0
    assert np.all(painted.mean(axis=(1, 2)) == recorded["nonblack_fraction"])
    assert image.max() == recorded["max"]
    inside = np.clip(image, 1e-12, 1 - 1e-12)
    floor = -(inside * np.log(inside) + (1 - inside) * np.log(1 - inside))
    ours = np.concatenate(
        [image.mean(axis=(1, 2)), floor.mean(axis=(1, 2, 3))[:, None]], axis=1
    )  # red, green, blue, floor
    theirs = [*recorded["mean_rgb"], recorded["bce_floor_per_value"]]
    # The recorded pictures share few networks: their mean may be off as one network's is.
    assert np.all(np.abs(ours.mean(axis=0) - theirs) < 3 * ours.std(axis=0)), ours.mean(axis=0)


def test_descendants_are_those_of_networkx_for_every_recorded_graph():
    """An independent library's reachability is what the environment's declared graph says."""
    for name in ("jungle7", "bidiag6", "tree9", "collider8"):
        count = GRAPHS[name]["nodes"]
        env = iv.make("chemistry/custom-v1", graph=name, objects=count)
        plain = nx.DiGraph(graphs.edges_of(graphs.parse(name, count)))
        for node in plain:
            declared = env.unwrapped.graph.descendants(f"object_{node}/color'")
            assert declared == {f"object_{d}/color'" for d in nx.descendants(plain, node)}
