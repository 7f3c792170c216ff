"""Trials: a world in the model's place recovers its own graph; the facts' noise is the ceiling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import interverse as iv
from interverse.envs.build import build_world
from interverse.metrics.recovery import ancestors, edges_above
from interverse.models.counterfactual import (
    CopyTheFact,
    KeepTheScene,
    MoveTheActed,
    counterfactual_trials,
    score_counterfactuals,
)
from interverse.models.effects import (
    ModelRespondent,
    Scenes,
    Trials,
    TrueWorld,
    blocks_trials,
    chemistry_trials,
    effects,
    score_effects,
)
from interverse.models.fit import Fit
from interverse.models.heads import Probe, fit_probe
from interverse.models.source import ArraySource
from interverse.models.world_fit import fit_world_model
from interverse.models.world_model import WorldModel, WorldModelConfig
from interverse.worlds.blocks import Blocks, BlocksOptions
from interverse.worlds.chemistry.options import ChemistryOptions
from interverse.worlds.chemistry.world import Chemistry

WORLDS = ["blocks/observed-3-v1", "blocks/unobserved-5-v1"]
WORLDS += [f"chemistry/{graph}-v1" for graph in ("chain", "collider", "full")]


@pytest.fixture(scope="module", params=WORLDS)
def trials(request):
    return counterfactual_trials(build_world(request.param, 500, {}), seed=11)


def test_the_true_world_with_the_facts_noise_is_perfect(trials):
    score = score_counterfactuals(TrueWorld(trials), trials)
    assert (score.hits, score.mrr, score.effect_error) == (100.0, 100.0, 0.0)
    assert score.ranked > 200


def test_copying_the_fact_never_hits_and_misses_every_effect(trials):
    score = score_counterfactuals(CopyTheFact(trials), trials)
    assert score.hits == 0.0
    assert {value for value in score.missed if value is not None} == {1.0}
    assert {value for value in score.spurious if value is not None} == {0.0}


def test_the_altered_scene_hits_exactly_where_nothing_happens_in_it(trials):
    score = score_counterfactuals(KeepTheScene(trials), trials)
    ranked = (trials.truth != trials.outcomes).any(1)
    idle = (trials.truth == trials.twins).all(1)[ranked].mean()
    assert score.hits == pytest.approx(100.0 * idle)
    assert 0.0 < score.hits < 60.0


def test_the_acted_object_alone_hits_exactly_where_no_other_follows(trials):
    score = score_counterfactuals(MoveTheActed(trials), trials)
    ranked = (trials.truth != trials.outcomes).any(1)
    others = trials.acted[:, None] != np.arange(trials.truth.shape[1])
    alone = ((trials.truth == trials.twins) | ~others).all(1)[ranked].mean()
    assert score.hits == pytest.approx(100.0 * alone)
    assert score.hits < 100.0


def test_perfect_mechanisms_without_the_noise_lie_between():
    """In chemistry the noise matters: that is what a counterfactual has over a prediction."""
    trials = counterfactual_trials(build_world("chemistry/full-v1", 800, {}), seed=11)
    score = score_counterfactuals(TrueWorld(trials, noise=2), trials)
    assert 10.0 < score.hits < 90.0
    assert 0.0 < score.effect_error < 0.5


def test_the_truth_is_what_the_library_calls_a_counterfactual():
    """Against `iv.counterfactual` of an episode: same noise, same action, another colour."""
    fact = iv.rollout("chemistry/full-v1", lambda obs: np.array([7]), seed=3, max_steps=1)
    twin = iv.counterfactual(fact, do={"object_0/color": 4})
    world = build_world("chemistry/full-v1", 1, {})
    scenes = Scenes(world, seed=3)
    before = np.stack([fact.values[f"object_{i}/color"][0] for i in range(5)])[None]
    altered = before.copy()
    altered[0, 0] = 4
    action = np.array([7])
    for states, episode in ((before, fact), (altered, twin)):
        after = np.stack([episode.values[f"object_{i}/color"][1] for i in range(5)])[None]
        assert np.array_equal(scenes.after(states, action), after)


def test_a_world_model_is_scored_through_its_probe(trials):
    objects = trials.truth.shape[1]
    config = WorldModelConfig(
        model="action_gnn",
        objects=objects,
        **{"encoder": "small", "embedding": 4, "hidden": 16, "encoder_channels": 8},
    )
    model = WorldModel.seeded(config, 0)
    probe = Probe(objects * 4, objects, trials.worlds.values)
    respondent = ModelRespondent(model, probe, trials.worlds.images)
    score = score_counterfactuals(respondent, trials)
    assert 0.0 <= score.hits <= score.mrr <= 100.0
    assert len(score.effect_errors) == objects


@pytest.mark.parametrize("graph", ["chain", "collider", "full"])
def test_chemistry_recovers_its_graph(graph):
    world = Chemistry(num_worlds=6000, options=ChemistryOptions(graph=graph))
    trials = chemistry_trials(world, seed=0)
    truth = effects(TrueWorld(trials), trials)
    scores = score_effects(trials.graph, truth=truth, found=truth)
    assert (scores.shd, scores.total_effect_error) == (0, 0.0)
    assert scores.ancestors.shd == 0
    assert trials.worlds.images(trials.scenes).shape == (6000, 50, 50, 3)


@pytest.mark.parametrize("setting", ["observed", "unobserved", "fixed_unobserved"])
def test_blocks_recover_who_pushes_whom(setting):
    world = Blocks(num_worlds=2000, options=BlocksOptions(setting=setting, objects=4))
    trials = blocks_trials(world, seed=0)
    heavier_first = setting == "observed"
    expected = np.tri(4, k=-1, dtype=int)
    assert np.array_equal(trials.graph, expected if heavier_first else expected.T)
    truth = effects(TrueWorld(trials), trials)
    scores = score_effects(trials.graph, truth=truth, found=truth, one_step=True)
    assert (scores.shd, scores.total_effect_error) == (0, 0.0)


def test_a_scene_and_its_picture_belong_together():
    world = Chemistry(num_worlds=50, options=ChemistryOptions(graph="chain"))
    trials = chemistry_trials(world, seed=3)
    same = (trials.scenes == trials.twins).all(1)
    images = trials.worlds.images(np.concatenate([trials.scenes, trials.twins]))
    pixels = (images[:50] == images[50:]).reshape(50, -1).all(1)
    assert np.array_equal(same, pixels)
    assert np.array_equal(same, trials.acted == trials.altered)
    asked = trials.scenes, trials.actions
    assert np.array_equal(trials.worlds.after(*asked), trials.worlds.after(*asked))


COLORS = 3
CHAIN = np.eye(4, k=-1, dtype=int)
FULL = np.tril(np.ones((4, 4), dtype=int), -1)
COLLIDER = np.zeros((4, 4), dtype=int)
COLLIDER[3, :3] = 1
FORK = np.zeros((4, 4), dtype=int)
FORK[1:, 0] = 1


class Colours:
    """Objects that take a new colour by their parents' when one of these is reached."""

    def __init__(self, graph: np.ndarray, seed: int, rows: int) -> None:
        rng = np.random.default_rng(seed)
        n = len(graph)
        self.graph = graph
        self.tables = rng.dirichlet(np.full(COLORS, 0.3), size=(n, *(COLORS,) * n))
        self.noise = rng.random((rows, n))  # the same for a scene and its twin

    def now(self, scenes):
        return np.eye(COLORS)[scenes]

    def after(self, scenes, actions):
        state, n = scenes.copy(), scenes.shape[1]
        every = np.arange(len(state))
        reached = np.zeros(state.shape, dtype=bool)
        acted, color = actions // COLORS, actions % COLORS
        state[every, acted], reached[every, acted] = color, True
        for v in range(n):
            hit = (reached & (self.graph[v] == 1)).any(1) & (acted != v)
            seen = np.where(self.graph[v] == 1, state, 0)
            chances = self.tables[v][tuple(seen.T)]
            drawn = (self.noise[:, v, None] >= chances.cumsum(1)[:, :-1]).sum(1)
            state[:, v] = np.where(hit, drawn, state[:, v])
            reached[:, v] |= hit
        return np.eye(COLORS)[state]


class Still:
    """Predicts that nothing ever changes."""

    def now(self, scenes):
        return np.eye(COLORS)[scenes]

    def after(self, scenes, actions):
        return self.now(scenes)


def colour_trials(n: int, rows: int, seed: int) -> Trials:
    rng = np.random.default_rng(seed)
    scenes = rng.integers(0, COLORS, (rows, n))
    acted, altered = rng.integers(0, n, (2, rows))
    actions = acted * COLORS + rng.integers(0, COLORS, rows)
    step = rng.integers(1, COLORS, rows)
    twins, twin_actions = scenes.copy(), actions.copy()
    every = np.arange(rows)
    twins[every, altered] = (twins[every, altered] + step) % COLORS
    own = acted == altered  # there the action sets the two values, the scene stays
    twins[own] = scenes[own]
    other = acted * COLORS + (actions % COLORS + step) % COLORS
    twin_actions[own] = other[own]
    return Trials(
        scenes=scenes,
        actions=actions,
        acted=acted,
        twins=twins,
        twin_actions=twin_actions,
        altered=altered,
    )


@pytest.mark.parametrize("graph", [CHAIN, FULL, COLLIDER, FORK], ids=["chain", "full", "v", "fork"])
def test_the_world_as_a_model_recovers_its_graph(graph):
    trials = colour_trials(4, 4000, seed=1)
    world = Colours(graph, seed=2, rows=4000)
    truth = effects(world, trials)
    scores = score_effects(graph, truth=truth, found=truth)
    assert scores.shd == 0
    assert scores.total_effect_error == 0.0
    assert (scores.ancestors.shd, scores.ancestors.f1) == (0, 1.0)


@settings(max_examples=15, derandomize=True)
@given(st.integers(0, 2**31))
def test_the_world_as_a_model_recovers_any_graph_whose_edges_act(seed):
    rng = np.random.default_rng(seed)
    graph = np.tril(rng.random((4, 4)) < 0.5, -1).astype(int)
    world = Colours(graph, seed=seed, rows=3000)
    truth = effects(world, colour_trials(4, 3000, seed=seed))
    assume(np.all(truth.direct[graph == 1] > 0.15))  # drawn chances may leave an edge idle
    scores = score_effects(graph, truth=truth, found=truth)
    assert (scores.shd, scores.total_effect_error) == (0, 0.0)


def test_a_model_that_predicts_no_change_gets_the_empty_graph():
    trials = colour_trials(4, 1000, seed=1)
    truth = effects(Colours(CHAIN, seed=2, rows=1000), trials)
    found = effects(Still(), trials)
    assert not found.direct.any()
    scores = score_effects(CHAIN, truth=truth, found=found)
    assert (scores.shd, scores.edges.recall) == (3, 0.0)
    assert scores.total_effect_error > 0.0


def test_graphs_with_the_same_ancestors_are_told_apart():
    trials = colour_trials(4, 4000, seed=1)
    chain = effects(Colours(CHAIN, seed=2, rows=4000), trials)
    full = effects(Colours(FULL, seed=2, rows=4000), trials)
    assert np.array_equal(ancestors(CHAIN), ancestors(FULL))
    assert np.array_equal(edges_above(chain.direct, 0.02), CHAIN)
    assert np.array_equal(edges_above(full.direct, 0.02), FULL)
    scores = score_effects(CHAIN, truth=chain, found=full, threshold=0.02)
    assert scores.fixed.shd == 3


@pytest.mark.slow
def test_a_trained_model_is_read_through_its_probe(squares, tiny):
    """Squares that ignore each other: what is acted on moves, nothing else does."""
    images, actions, cells = squares(60, 10, seed=0, objects=2)
    more, more_actions, more_cells = squares(10, 10, seed=1, objects=2)
    train, valid = ArraySource(images, actions), ArraySource(more, more_actions)
    how = Fit(epochs=12, batch_size=32, learning_rate=3e-3)
    config = tiny("modular", objects=2, embedding=8, hidden=64)
    (fitted,) = fit_world_model(config, how, train, valid)
    model = fitted.model()
    probe = fit_probe(model, how, (train, cells), (valid, more_cells), values=25)
    respondent = ModelRespondent(model, probe)
    scenes = more[:, :-1].reshape(-1, 50, 50, 3)
    chosen = more_actions.ravel()
    read = respondent.now(scenes).argmax(-1)
    assert (read == more_cells[:, :-1].reshape(-1, 2)).mean() > 0.7
    trials = Trials(
        scenes=scenes,
        actions=chosen,
        acted=chosen // 5,
        twins=scenes,
        twin_actions=chosen,
        altered=chosen // 5,
    )
    found = effects(respondent, trials)
    own, other = np.diagonal(found.total).min(), found.total[~np.eye(2, dtype=bool)].max()
    assert own > other
    assert not found.direct.any()  # the twins are the scenes themselves
