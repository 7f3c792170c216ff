"""Trials in the real worlds: graphs are recovered, and the facts' noise is the ceiling."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv
from interverse.envs.build import build_world
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
    TrueWorld,
    blocks_trials,
    chemistry_trials,
    effects,
    score_effects,
)
from interverse.models.heads import Probe
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
