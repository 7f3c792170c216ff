"""Effects: a world put in the model's place recovers its own graph; a probe reads a model's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from interverse.metrics.recovery import ancestors, edges_above
from interverse.models.effects import ModelRespondent, Trials, effects, score_effects
from interverse.models.fit import Fit
from interverse.models.heads import fit_probe
from interverse.models.source import ArraySource
from interverse.models.world_fit import fit_world_model

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
