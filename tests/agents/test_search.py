"""Search over imagined plans: exact in a world that is known, and a ceiling in the true one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interverse.agents.gridworld import GridPlanning, random_policy
from interverse.agents.planner import plan
from interverse.agents.search import (
    ModelImagination,
    PlanCEM,
    PlanGradient,
    PlanMPPI,
    SearchPolicy,
    WorldImagination,
    draw_plans,
    search,
)
from interverse.core.errors import InvalidValueError
from tests.agents.test_planner import Line, knowing

SEARCHES = [PlanCEM(), PlanMPPI(), PlanGradient(iterations=30)]


class Sum:
    """An imagination whose reward is a sum over steps of known worths of actions."""

    def __init__(self, worth: np.ndarray) -> None:
        self.worth, self.num_actions = worth, worth.shape[1]

    def begin(self, images, targets): ...

    def go_on(self, actions, images): ...

    def rewards(self, plans):
        return self.worth[np.arange(plans.shape[2]), plans].sum(axis=2)

    def slopes(self, chances):
        return np.broadcast_to(self.worth, chances.shape).copy()


@pytest.mark.parametrize("how", SEARCHES, ids=lambda how: type(how).__name__)
def test_the_best_plan_of_known_worths_is_found(how):
    worth = np.random.default_rng(3).permutation(12).reshape(3, 4) / 12.0
    found = search(Sum(worth), how, episodes=5, steps=3, rng=np.random.default_rng(0))
    assert (found == worth.argmax(1)).all()


def mind(wrong: bool = False) -> ModelImagination:
    policy = knowing(wrong)
    return ModelImagination(policy.model, policy.reward)


@pytest.mark.parametrize("closed_loop", [False, True])
@pytest.mark.parametrize("how", SEARCHES[:2], ids=lambda how: type(how).__name__)
def test_a_perfect_model_always_arrives(how, closed_loop):
    policy = SearchPolicy(mind(), how, horizon=3, closed_loop=closed_loop)
    score = plan(policy, Line(), horizon=3, episodes=30)
    assert (score.reward, score.success) == (0.0, 1.0)


def test_imagined_rewards_are_those_of_the_line():
    world, imagined = Line(), mind()
    images, targets = world.reset(6, target_steps=2)
    imagined.begin(images, targets)
    plans = np.random.default_rng(0).integers(3, size=(6, 4, 3))
    expected = np.empty((6, 4))
    for n in range(4):
        place = world.place
        for t in range(3):
            place = world._moved(place, plans[:, n, t])
        expected[:, n] = -np.abs(place - world.target)
    np.testing.assert_array_equal(imagined.rewards(plans), expected)


def test_slopes_are_those_of_finite_differences():
    class Square(torch.nn.Module):
        def forward(self, state, target):
            return -(state - target).square()[:, 0]

    policy = knowing()
    imagined = ModelImagination(policy.model, Square())
    draw = Line().draw
    imagined.begin(draw(np.full(4, 2)), draw(np.array([0, 1, 3, 4])))  # two steps from each wall
    chances = np.full((4, 2, 3), 1 / 3)
    slopes, step = imagined.slopes(chances), 1e-2

    def reward(chances):
        place = imagined._state[:, 0, 0].numpy().astype(float)
        for t in range(2):
            place = ((place[:, None] + [0, -1, 1]) * chances[:, t]).sum(1)
        return -((place - imagined._target[:, 0].numpy()) ** 2)

    for t, a in ((0, 1), (1, 2), (1, 0)):
        up, down = chances.copy(), chances.copy()
        up[:, t, a] += step
        down[:, t, a] -= step
        np.testing.assert_allclose(
            slopes[:, t, a], (reward(up) - reward(down)) / (2 * step), atol=2e-3
        )


@pytest.mark.parametrize("name", ["blocks/observed-3-v1", "chemistry/chain-v1"])
def test_the_true_world_plans_above_chance_and_knows_what_it_gets(name):
    world = GridPlanning(name, seed=3)
    policy = SearchPolicy(WorldImagination(world), PlanCEM(), horizon=2)
    score = plan(policy, world, horizon=2, episodes=8)
    told = policy.mind.rewards(policy._plans[:, None])
    assert score.reward == pytest.approx(told.mean())
    assert score.reward > plan(random_policy(0), world, horizon=2, episodes=8).reward
    if name.startswith("blocks/"):  # nothing there is left to chance
        assert score.success > 0.5


def test_the_true_world_has_no_gradient():
    with pytest.raises(InvalidValueError, match="no gradient"):
        WorldImagination(GridPlanning("blocks/observed-3-v1")).slopes(np.ones((1, 1, 1)))


def test_plans_follow_their_chances():
    chances = np.array([[[0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]])
    drawn = draw_plans(chances, 4000, np.random.default_rng(0))[0]
    assert (drawn[:, 0] == 1).all()
    assert (drawn[:, 1] == 2).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("kind", "setting"),
    [(PlanCEM, {"elites": 65}), (PlanMPPI, {"temperature": 0.0}), (PlanCEM, {"memory": 1.0})],
)
def test_settings_out_of_range_are_refused(kind, setting):
    with pytest.raises(InvalidValueError, match=next(iter(setting))):
        kind(**setting)
