"""Chemistry as a world: options, observations, interventions on the graph itself, refusals."""

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import interverse as iv
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.rng import Noise
from interverse.worlds.chemistry import SKEWNESS, ChemistryOptions, graphs, variables
from interverse.worlds.chemistry.reference import causes

CHAIN = "chemistry/chain-v1"
CUSTOM = "chemistry/custom-v1"
COLORS = [f"object_{i}/color" for i in range(5)]


def colors_of(env):
    return [int(env.values[name]) for name in COLORS]


def color_graph(env):
    """The part of the declared graph among the next slice's colours, as an adjacency."""
    n = env.unwrapped.world.options.objects
    return env.unwrapped.graph.adjacency_matrix([f"object_{i}/color'" for i in range(n)])


# ---------------------------------------------------------------------------------- graph


@pytest.mark.parametrize(
    ("options", "edges"),
    [
        ({"graph": "chain"}, [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ({"graph": "jungle7", "objects": 7}, None),
        ({"graph": "0->1->2,{0-2}->4"}, [(0, 1), (1, 2), (0, 4), (1, 4), (2, 4)]),
        ({"graph": [[0, 0, 0], [0, 0, 0], [1, 1, 0]], "objects": 3}, [(0, 2), (1, 2)]),
        ({"mode": "plain"}, [(0, 1), (0, 2), (0, 3), (1, 3), (2, 4)]),
        ({"mode": "moving", "objects": 3}, [(0, 1), (0, 2)]),
    ],
)
def test_the_graph_read_back_is_the_graph_asked_for(options, edges):
    env = iv.make(CUSTOM, **options)
    n = options.get("objects", 5)
    wanted = graphs.parse(options["graph"], n) if edges is None else graphs.adjacency_of(edges, n)
    for moment in ("made", "reset", "stepped"):
        np.testing.assert_array_equal(color_graph(env), wanted, err_msg=moment)
        np.testing.assert_array_equal(env.values["graph/adjacency"], wanted)
        if moment == "made":
            env.reset(seed=0)
        elif moment == "reset":
            env.step(0)
    graph = env.unwrapped.graph
    assert nx.is_directed_acyclic_graph(graph.subgraph(f"object_{i}/color'" for i in range(n)))
    for i in range(n):
        assert graph.has_edge(f"object_{i}/color", f"object_{i}/color'")


def test_random_graphs_come_from_their_seed():
    one, same, other = (iv.make("chemistry/random-v1", graph_seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(color_graph(one), color_graph(same))
    assert not np.array_equal(color_graph(one), color_graph(other))


def test_an_edge_is_a_variable_and_acts_from_the_next_step_on():
    env = iv.make(CHAIN, bias=0.4)
    env.reset(seed=0)
    outcome = env.unwrapped.do({"edge_2_3": 0})
    assert outcome.changed == {"edge_2_3", "graph/adjacency"}
    assert env.values["graph/adjacency"][3, 2] == 0
    assert not env.unwrapped.graph.has_edge("object_2/color'", "object_3/color'")
    before = colors_of(env)
    for action in (0, 1, 2, 3, 4, 7, 12):  # paints objects 0, 1 and 2
        env.step(action)
        assert colors_of(env)[3:] == before[3:]
    env.reset(seed=1)
    assert env.values["edge_2_3"] == 1
    assert env.unwrapped.graph.has_edge("object_2/color'", "object_3/color'")


def test_a_whole_graph_can_be_set_and_edges_follow():
    env = iv.make(CHAIN)
    env.reset(seed=0)
    collider = graphs.parse("collider", 5)
    outcome = env.unwrapped.do({"graph/adjacency": collider})
    assert "edge_0_4" in outcome.changed
    assert env.values["edge_0_4"] == 1
    assert env.values["edge_0_1"] == 0
    np.testing.assert_array_equal(color_graph(env), collider)


def test_a_graph_set_at_reset_is_the_graph_of_the_first_colours():
    """Edited equals rebuilt: the intervention comes before the initial draws."""
    collider = graphs.parse("collider", 5)
    edited = iv.make(CHAIN, least_effect=0)  # the networks of either world are the first draws
    for seed in range(10):
        edited.reset(seed=seed, options={"do": {"graph/adjacency": collider}})
        rebuilt = iv.make("chemistry/collider-v1", least_effect=0)
        rebuilt.reset(seed=seed)
        assert colors_of(edited) == colors_of(rebuilt)
        for action in (3, 9, 14, 20):
            a, b = edited.step(action), rebuilt.step(action)
            assert a[0]["image"].tobytes() == b[0]["image"].tobytes()
            assert a[0]["target"].tobytes() == b[0]["target"].tobytes()
            assert a[1] == b[1]


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ({"graph/adjacency": np.eye(5, dtype=int)}, "cycle: 0 -> 0"),
        ({"graph/adjacency": np.ones((5, 5), dtype=int) - np.eye(5, dtype=int)}, "has a cycle"),
        ({"graph/adjacency": np.eye(5, k=2, dtype=int)}, "2->0, 3->1, 4->2, against the order"),
        ({"graph/adjacency": np.zeros((5, 5), dtype=int), "edge_0_2": 1}, "edge_0_2 and graph"),
        ({"edge_2_1": 1}, "unknown variable 'edge_2_1'"),
        ({"object_0/position": [4, 4]}, r"object_0 and object_3 would share cell \[4, 4\]"),
        ({"goal_0/color": 9}, "goal_0/color is 9"),
    ],
)
def test_impossible_interventions_are_refused_and_change_nothing(do, message):
    env = iv.make(CHAIN)
    env.reset(seed=0)
    before = env.unwrapped.snapshot().to_bytes()
    with pytest.raises(iv.InterventionError, match=message):
        env.unwrapped.do(do)
    assert env.unwrapped.snapshot().to_bytes() == before
    with pytest.raises(iv.InterventionError, match=message):
        env.reset(seed=0, options={"do": do})


def test_objects_can_swap_cells_at_once():
    env = iv.make(CHAIN)
    env.reset(seed=0)
    env.unwrapped.do({"object_0/position": [4, 4], "object_3/position": [0, 0]})
    assert env.values["object_0/position"].tolist() == [4, 4]


def test_in_a_batch_only_impossible_worlds_are_refused():
    venv = iv.make_vec(CHAIN, num_envs=3)
    venv.reset(seed=0)
    graphs_of = np.stack([graphs.parse("full", 5), np.eye(5, dtype=int), graphs.parse("chain", 5)])
    outcome = venv.unwrapped.do({"graph/adjacency": graphs_of})
    assert outcome.applied.tolist() == [True, False, True]
    assert "cycle" in outcome.reasons[1]
    assert venv.unwrapped.values["edge_0_4"].tolist() == [1, 0, 0]
    # The declared graph of several worlds has every edge that one of them has.
    assert venv.unwrapped.graph.has_edge("object_0/color'", "object_4/color'")


def test_a_refused_world_of_a_batch_reset_keeps_its_default_start():
    venv = iv.make_vec(CHAIN, num_envs=2)
    bad = np.stack([graphs.parse("full", 5), np.eye(5, dtype=int)])
    with pytest.raises(iv.InterventionError, match="world 1"):
        venv.reset(seed=0, options={"do": {"graph/adjacency": bad}})
    plain = iv.make(CHAIN)
    plain.reset(seed=1)
    assert [int(venv.unwrapped.values[name][1]) for name in COLORS] == colors_of(plain)


# ------------------------------------------------------------------------------- dynamics


def test_the_environment_follows_its_own_textbook_model():
    env = iv.make("chemistry/full-v1", gain=1.3)
    env.reset(seed=7)
    for step in range(1, 12):
        before, action = colors_of(env), (7 * step) % 25
        model = env.unwrapped.world.model()
        expected = model.sample(Noise.single(seed=7, step=step), causes(before, action, 5))
        env.step(action)
        assert colors_of(env) == [expected[name] for name in COLORS]


def test_the_textbook_model_of_a_world_follows_its_interventions():
    venv = iv.make_vec("chemistry/full-v1", num_envs=3, meta=True)
    venv.reset(seed=7)
    venv.unwrapped.do({"cpt/gain": 0.9, "edge_0_1": 0}, worlds=[1])
    before = np.stack([venv.unwrapped.values[name] for name in COLORS], axis=1)
    models = [venv.unwrapped.world.model(i) for i in range(3)]
    assert not models[1].graph.has_edge("object_0/color", "object_1/color")
    venv.step(np.array([2, 3, 4]))
    for i in range(3):
        noise = Noise.single(seed=7 + i, step=1)
        expected = models[i].sample(noise, causes(before[i], 2 + i, 5))
        assert [int(venv.unwrapped.values[n][i]) for n in COLORS] == [expected[n] for n in COLORS]


def test_networks_are_shared_by_episodes_worlds_and_splits():
    one, other = iv.make(CHAIN), iv.make(CHAIN)
    one.reset(seed=0)
    one.reset()
    other.reset(seed=55)
    ours, theirs = one.unwrapped.world, other.unwrapped.world
    np.testing.assert_array_equal(ours._weights.first, theirs._weights.first)
    different = iv.make(CHAIN, cpt_seed=1).unwrapped.world
    assert not np.array_equal(ours._weights.first, different._weights.first)


def test_a_meta_episode_is_the_world_of_its_seed():
    """Networks and graph are drawn each episode: episode 0 of seed s as cpt and graph seed s."""
    env = iv.make(CUSTOM, meta=True)
    seen = []
    for seed in range(4):
        env.reset(seed=seed)
        fixed = iv.make(CUSTOM, cpt_seed=seed, graph_seed=seed, least_effect=0)
        fixed.reset(seed=seed)
        for action in (0, 7, 13, 24):
            a, b = env.step(action), fixed.step(action)
            assert a[0]["image"].tobytes() == b[0]["image"].tobytes()
            assert a[0]["target"].tobytes() == b[0]["target"].tobytes()
        np.testing.assert_array_equal(color_graph(env), color_graph(fixed))
        seen.append(env.values["graph/adjacency"].tobytes())
        env.reset()
        seen.append(env.values["graph/adjacency"].tobytes())
    assert len(set(seen)) > 4


def test_meta_keeps_a_named_graph_and_draws_networks():
    env = iv.make(CHAIN, meta=True)
    weights = []
    for _ in range(2):
        env.reset(seed=0) if not weights else env.reset()
        np.testing.assert_array_equal(color_graph(env), graphs.parse("chain", 5))
        weights.append(env.unwrapped.world._state["cpt/first"].copy())
    assert not np.array_equal(*weights)


def test_moving_objects_move_and_never_meet():
    env = iv.make(CUSTOM, mode="moving")
    observation, _ = env.reset(seed=0)
    start = observation["positions"].copy()
    for t in range(60):
        observation, reward, *_ = env.step((7 * t) % 25)
        assert len({tuple(cell) for cell in observation["positions"].tolist()}) == 5
        assert reward == 0.0
    assert not np.array_equal(observation["positions"], start)


def test_dynamic_positions_are_drawn_and_distinct_and_carry_no_dynamics():
    still, roaming = iv.make(CHAIN), iv.make(CHAIN, movement="dynamic")
    places = set()
    for seed in range(20):
        still.reset(seed=seed)
        roaming.reset(seed=seed)
        cells = [tuple(roaming.values[f"object_{i}/position"].tolist()) for i in range(5)]
        assert len(set(cells)) == 5
        places.add(cells[0])
        for action in (2, 8, 19):
            still.step(action)
            roaming.step(action)
        assert colors_of(still) == colors_of(roaming)
    assert len(places) > 8


def test_the_named_levels_are_weights_gain_and_bias():
    for name, level in SKEWNESS.items():
        env = iv.make(CHAIN, skewness=name)
        assert env.values["cpt/gain"] == level.gain
        assert env.values["cpt/bias"] == level.bias
        same = iv.make(CHAIN, weights=level.weights, gain=level.gain, bias=level.bias)
        np.testing.assert_array_equal(
            env.unwrapped.world._weights.first, same.unwrapped.world._weights.first
        )
    assert iv.make(CHAIN).values["cpt/gain"] == 3.5
    assert iv.make(CUSTOM, mode="moving").values["cpt/gain"] == 2.5


# ---------------------------------------------------------------------------- what is seen


def test_observations_are_pictures_and_colours():
    env = iv.make(CHAIN)
    observation, info = env.reset(seed=0)
    assert observation["image"].shape == observation["target"].shape == (50, 50, 3)
    assert observation["image"].dtype == np.uint8
    assert observation["state"].tolist() == colors_of(env)
    assert info["target_actions"].shape == (10,)
    # Object 2 is the square in the lower left corner.
    palette = np.rint(255 * env.values["palette"]).astype(int)
    assert observation["image"][45, 5].tolist() == palette[colors_of(env)[2]].tolist()
    goal = int(env.values["goal_2/color"])
    assert observation["target"][45, 5].tolist() == palette[goal].tolist()
    assert palette.tolist() == [
        [153, 153, 153],
        [166, 86, 40],
        [255, 127, 0],
        [77, 175, 74],
        [228, 26, 28],
    ]


def test_replaying_the_targets_actions_is_the_original_baseline():
    """With deterministic networks the replayed actions reach the target exactly."""
    env = iv.make("chemistry/full-v1", gain=10.0, bias=10.0)
    reached = 0
    for seed in range(20):
        _, info = env.reset(seed=seed)
        for action in info["target_actions"]:
            _, reward, _, _, info = env.step(action)
        reached += info["success"]
        assert info["fractional_success"] == reward
    assert reached >= 16


def test_the_scripted_policy_is_done_after_one_action_per_object():
    venv = iv.make_vec("chemistry/full-v1", num_envs=64, objects=7, colors=4)
    observation, _ = venv.reset(seed=0)
    policy = venv.unwrapped.world.scripted_policy()
    for t in range(9):
        observation, reward, *_ = venv.step(policy(observation))
        assert t < 6 or np.all(reward == 1.0)
    assert iv.make(CUSTOM, mode="plain").unwrapped.world.scripted_policy() is None


def test_palette_and_shape_change_pixels_only():
    env = iv.make(CHAIN)
    before, _ = env.reset(seed=0)
    green = np.zeros((5, 3))
    green[:, 1] = 1.0
    outcome = env.unwrapped.do({"palette": green, "object_0/shape": 4})
    seen = outcome.observation
    assert outcome.changed == {"palette", "object_0/shape"}
    assert seen["state"].tolist() == before["state"].tolist()
    assert set(np.unique(seen["image"].reshape(-1, 3), axis=0)[:, 1].tolist()) == {0, 255}
    assert np.all(seen["image"][4:6, :10, 1] == 255)  # the bar of the cross


def test_hidden_objects_act_but_are_neither_seen_nor_scored():
    env = iv.make("chemistry/full-v1", observed=[1, 3])
    whole = iv.make("chemistry/full-v1")
    for seed in range(5):
        hidden, _ = env.reset(seed=seed)
        seen, _ = whole.reset(seed=seed)
        assert hidden["state"].tolist() == seen["state"][[1, 3]].tolist()
        assert not hidden["image"][:10, :10].any()
        np.testing.assert_array_equal(hidden["image"][:10, 40:], seen["image"][:10, 40:])
        assert colors_of(env) == colors_of(whole)
        _, reward, *_ = env.step(2)
        whole.step(2)
        assert colors_of(env) == colors_of(whole)
        goals = [int(env.values[f"goal_{i}/color"]) for i in (1, 3)]
        now = [colors_of(env)[i] for i in (1, 3)]
        assert reward == np.mean(np.equal(goals, now))
    assert env.action_space.n == 25
    assert env.observation_space["state"].nvec.tolist() == [5, 5]


def test_legacy_palettes_differ_as_often_as_the_originals():
    usual, first, second = 0, 0, 0
    for seed in range(600):
        options = ChemistryOptions(graph="chain", legacy=True, cpt_seed=seed)
        rows = np.rint(255 * variables.colors(options)).astype(int).tolist()
        first += rows[1] == [247, 129, 191]
        second += rows[3] == [55, 126, 184]
        usual += rows[1] == [166, 86, 40] and rows[3] == [77, 175, 74]
    for count, chance in ((usual, 0.89), (first, 0.056), (second, 0.056)):
        assert stats.binomtest(count, 600, chance).pvalue > 1e-3


# ------------------------------------------------------------------------------ every mode


# ------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objects": 0}, "objects is 0.*1 to 25"),
        ({"objects": 26}, "objects is 26.*1 to 25"),
        ({"objects": 2.5}, "objects is 2.5"),
        ({"objects": True}, "objects is True"),
        ({"colors": 1}, "colors is 1.*from 2"),
        ({"colors": 10}, "colors is 10, but cmap 'Sets' has 9"),
        ({"graph": "0->1->0"}, "cycle: 0 -> 1 -> 0"),
        ({"graph": "0->9"}, "names object 9"),
        ({"graph": 7}, r"has shape \(\)"),
        ({"mode": "plane"}, "unknown mode 'plane'.*Did you mean 'plain'"),
        ({"movement": "fast"}, "unknown movement 'fast'"),
        ({"cmap": "Bleus"}, "unknown cmap 'Bleus'.*'Blues'"),
        ({"skewness": "orthogonal-9"}, "unknown skewness"),
        ({"skewness": "uniform-2.0", "gain": 1.0}, "skewness and gain are both given"),
        ({"weights": "normal"}, "unknown weights"),
        ({"gain": -1}, "gain is -1"),
        ({"gain": float("nan")}, "gain is nan"),
        ({"bias": "big"}, "bias is 'big'"),
        ({"hidden": 0}, "hidden is 0"),
        ({"target_steps": -1}, "target_steps is -1"),
        ({"mode": "plain", "target_steps": 3}, "target_steps is 3, but mode is 'plain'"),
        ({"delay": 2}, "delay is 2, but mode is 'rl'"),
        ({"mode": "delayed", "delay": 0}, "delay is 0"),
        ({"mode": "delayed", "colors": 6}, "colors is 6, but cmap 'Primary' has 5"),
        ({"mode": "moving", "colors": 6}, "colors is 6, and mode 'moving' has 5"),
        ({"observed": [0, 5]}, "observed is 5"),
        ({"observed": []}, "at least one object"),
        ({"observed": [1, 1]}, "each once"),
        ({"graph_seed": -1}, "graph_seed"),
        ({"graph": "chain", "graph_seed": 4}, "graph_seed is 4, but the graph is not drawn"),
        ({"mode": "plain", "graph_seed": 1}, "graph_seed is 1, but the graph is not drawn"),
        (
            {"mode": "delayed", "graph": "chain", "delay": 2, "graph_seed": 1},
            "graph_seed is 1, but the graph is not drawn",
        ),
        ({"cpt_seed": 1.5}, "cpt_seed"),
        ({"meta": "yes"}, "meta is 'yes'"),
        ({"legacy": 1}, "legacy is 1"),
        ({"defaults": {"edge_9_9": 1}}, "unknown variable 'edge_9_9'"),
        ({"defaults": {"graph/adjacency": np.eye(5, dtype=int)}}, "has a cycle: 0 -> 0"),
        (
            {"defaults": {"graph/adjacency": np.zeros((5, 5), dtype=int), "edge_0_1": 1}},
            "disagree",
        ),
        ({"defaults": {"object_0/position": [4, 4]}}, "would share cell"),
        (
            {"movement": "dynamic", "defaults": {"object_0/position": [2, 3]}},
            "positions are drawn each episode",
        ),
        ({"mode": "delayed", "defaults": {"object_0/fade": 1}}, "can only be read"),
        ({"objcts": 3}, "unknown option 'objcts'.*'objects'"),
    ],
)
def test_bad_options_are_refused_by_name(options, message):
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        iv.make(CUSTOM, **options)


def test_defaults_of_state_and_goal_are_where_episodes_start():
    env = iv.make(CHAIN, defaults={"object_2/color": 4, "goal_0/color": 1, "edge_0_1": 0})
    free = iv.make(CHAIN, defaults={"edge_0_1": 0})
    for seed in range(5):
        env.reset(seed=seed)
        free.reset(seed=seed)
        assert env.values["object_2/color"] == 4
        assert env.values["goal_0/color"] == 1
        assert colors_of(env)[3:] == colors_of(free)[3:]
        assert env.variables["graph/adjacency"].default[1, 0] == 0
