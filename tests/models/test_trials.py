"""Trials in the real worlds: each recovers its own graph when it stands in for a model."""

from __future__ import annotations

import numpy as np
import pytest

from interverse.models.effects import effects, score_effects
from interverse.models.trials import blocks_trials, chemistry_trials
from interverse.worlds.blocks import Blocks, BlocksOptions
from interverse.worlds.chemistry.options import ChemistryOptions
from interverse.worlds.chemistry.world import Chemistry


@pytest.mark.parametrize("graph", ["chain", "collider", "full"])
def test_chemistry_recovers_its_graph(graph):
    world = Chemistry(num_worlds=6000, options=ChemistryOptions(graph=graph))
    trials, respondent = chemistry_trials(world, seed=0)
    truth = effects(respondent, trials.states)
    scores = score_effects(trials.graph, truth=truth, found=truth)
    assert (scores.shd, scores.total_effect_error) == (0, 0.0)
    assert scores.ancestors.shd == 0
    assert trials.images.scenes.shape == (6000, 50, 50, 3)


@pytest.mark.parametrize("setting", ["observed", "unobserved", "fixed_unobserved"])
def test_blocks_recover_who_pushes_whom(setting):
    world = Blocks(num_worlds=2000, options=BlocksOptions(setting=setting, objects=4))
    trials, respondent = blocks_trials(world, seed=0)
    heavier_first = setting == "observed"
    expected = np.tri(4, k=-1, dtype=int)
    assert np.array_equal(trials.graph, expected if heavier_first else expected.T)
    truth = effects(respondent, trials.states)
    scores = score_effects(trials.graph, truth=truth, found=truth, one_step=True)
    assert (scores.shd, scores.total_effect_error) == (0, 0.0)


def test_a_scene_and_its_picture_belong_together():
    world = Chemistry(num_worlds=50, options=ChemistryOptions(graph="chain"))
    trials, respondent = chemistry_trials(world, seed=3)
    same = (trials.states.scenes == trials.states.twins).all(1)
    pixels = (trials.images.scenes == trials.images.twins).reshape(50, -1).all(1)
    assert np.array_equal(same, pixels)
    assert np.array_equal(same, trials.states.acted == trials.states.altered)
    first = respondent.after(trials.states.scenes, trials.states.actions)
    assert np.array_equal(first, respondent.after(trials.states.scenes, trials.states.actions))
