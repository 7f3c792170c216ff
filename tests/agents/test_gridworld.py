"""Planning baselines against numbers recorded from the original; a model plans end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from interverse.agents.gridworld import BASELINES, GridPlanning
from interverse.agents.planner import ModelPolicy, plan
from interverse.core.errors import InvalidValueError
from interverse.models.heads import RewardPredictor
from interverse.models.world_model import WorldModel, WorldModelConfig

RECORDED = json.loads(
    (Path(__file__).parents[1] / "parity" / "data" / "gridworlds.json").read_text()
)


@pytest.mark.parametrize("horizon", [1, 5, 10])
@pytest.mark.parametrize("objects", [3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("policy", "recorded"), [("random", "random"), ("nothing", "donothing"), ("scripted", "greedy")]
)
def test_blocks_baselines_match_the_original(policy, recorded, objects, horizon):
    key = f"WShapesRL-Observed-Train-{objects}-Blues-v0|{horizon}"
    reward, _, success, error = RECORDED["physics_baselines"]["values"][key][recorded]
    world = GridPlanning(f"blocks/observed-{objects}-v1", seed=100)
    found = plan(BASELINES[policy](0), world, horizon=horizon, episodes=2000)
    # Four standard errors of the difference of two means.
    assert abs(found.reward - reward) <= 4 * np.hypot(found.reward_error, error) + 1e-3
    spread = np.sqrt(max(success * (1 - success), 1e-3) * (1 / 4000 + 1 / 2000))
    assert abs(found.success - success) <= 4 * spread


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [1, 5, 10])
@pytest.mark.parametrize("graph", ["chain", "collider", "full"])
def test_chemistry_baselines_match_the_original(graph, horizon):
    recorded = RECORDED["chemistry_baselines"]["values"][f"{graph}5|{horizon}"]
    found = []
    for cpt_seed in range(20):  # one draw of mechanisms is one sample of difficulty
        options = {"cpt_seed": cpt_seed, "least_effect": 0}  # the original screens no draw
        world = GridPlanning(f"chemistry/{graph}-v1", seed=0, **options)
        scores = [
            plan(BASELINES[name](cpt_seed), world, horizon=horizon, episodes=100)
            for name in ("random", "replay", "nothing")
        ]
        found.append([value for score in scores for value in (score.reward, score.success)])
    means, spreads = np.mean(found, axis=0), np.std(found, axis=0)
    allowed = 4 * np.hypot(spreads, recorded["std_over_cpt"]) / np.sqrt(20) + 2e-3
    assert np.all(np.abs(means - recorded["mean"]) <= allowed)


def test_the_same_seed_gives_the_same_episodes_at_every_horizon():
    world = GridPlanning("blocks/observed-3-v1", seed=5)
    first, _ = world.reset(4, target_steps=1)
    again, _ = world.reset(4, target_steps=10)
    assert np.array_equal(first, again)


def test_a_model_plans_in_the_real_world_open_and_closed():
    config = WorldModelConfig(model="modular", objects=3, encoder="small", embedding=2, hidden=48)
    for closed_loop in (False, True):
        policy = ModelPolicy(
            WorldModel.seeded(config, 0), RewardPredictor(6), closed_loop=closed_loop
        )
        world = GridPlanning("blocks/fixed_unobserved-3-v1", seed=1)
        score = plan(policy, world, horizon=3, episodes=16)
        assert -8.0 <= score.reward <= 0.0


def test_replay_needs_a_world_that_tells():
    world = GridPlanning("blocks/observed-3-v1", seed=0)
    with pytest.raises(InvalidValueError, match="does not tell how its targets were made"):
        plan(BASELINES["replay"](0), world, horizon=1, episodes=2)
