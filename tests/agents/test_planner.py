"""Planning: greedy, searched, with the true model, and the policies it is compared with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import interverse as iv
from interverse.agents import planner
from interverse.agents.cem import CEM, Planner, run_planner
from interverse.agents.gridworld import BASELINES, GridPlanning, random_policy
from interverse.agents.planner import ModelPolicy, plan
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
from interverse.models.heads import RewardPredictor
from interverse.models.world_model import WorldModel, WorldModelConfig
from tests.envs.toy import ID, ensure_registered

CELLS = 5


class Line:
    """One block on a line of five cells; actions stay, left, right; images show its cell."""

    num_actions = 3
    best_reward = 0.0

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def reset(self, episodes: int, *, target_steps: int):
        self.place = self.rng.integers(0, CELLS, episodes)
        self.target = self.place.copy()
        for _ in range(target_steps):
            self.target = self._moved(self.target, self.rng.integers(0, 3, episodes))
        return self.draw(self.place), self.draw(self.target)

    def _moved(self, place, actions):
        return np.clip(place + np.array([0, -1, 1])[actions], 0, CELLS - 1)

    def step(self, actions):
        self.place = self._moved(self.place, actions)
        return -np.abs(self.place - self.target).astype(float)

    def images(self):
        return self.draw(self.place)

    def draw(self, place):
        images = np.zeros((len(place), 50, 50, 3), np.uint8)
        images[np.arange(len(place)), 0, 0, 0] = 51 * place
        return images


class Read(torch.nn.Module):
    """Encodes the cell as the state's only number."""

    def forward(self, images):
        return images[:, :1, 0, 0, None] * 5.0


class Know(torch.nn.Module):
    """The line's own dynamics, or with `wrong` the opposite ones."""

    def __init__(self, wrong: bool = False) -> None:
        super().__init__()
        self.steps = torch.tensor([0.0, 1.0, -1.0] if wrong else [0.0, -1.0, 1.0])

    def forward(self, state, action):
        return (state + self.steps[action][:, None, None]).clamp(0, CELLS - 1)


class Distance(torch.nn.Module):
    def forward(self, state, target):
        return -(state - target).abs()[:, 0].round()


def knowing(wrong: bool = False, **kind) -> ModelPolicy:
    config = WorldModelConfig(model="ae", objects=1, actions_per_object=3, embedding=1)
    model = WorldModel(config)
    model.encoder, model.transition = Read(), Know(wrong)
    model.register_parameter("anchor", torch.nn.Parameter(torch.zeros(())))
    return ModelPolicy(model, Distance(), **kind)


@pytest.mark.parametrize("closed_loop", [False, True])
@pytest.mark.parametrize("horizon", [1, 4])
def test_a_perfect_model_always_arrives(horizon, closed_loop):
    score = plan(knowing(closed_loop=closed_loop), Line(), horizon=horizon, episodes=50)
    assert (score.reward, score.success, score.episodes) == (0.0, 1.0, 50)


def test_closed_loop_sees_a_failure_that_open_loop_does_not():
    """Under reversed controls the open loop believes it has arrived and then stays."""
    horizon = 3
    opened = plan(knowing(wrong=True), Line(1), horizon=horizon, episodes=400)
    closed = plan(knowing(wrong=True, closed_loop=True), Line(1), horizon=horizon, episodes=400)
    assert closed.reward < opened.reward < 0.0


def test_ties_take_the_first_action():
    policy = knowing()
    world = Line()
    images, _ = world.reset(20, target_steps=1)
    policy.begin(images, images)  # at the target: staying is best, also at the walls
    assert policy.act(None).tolist() == [0] * 20


def test_parts_do_not_change_a_plan(monkeypatch):
    whole = plan(knowing(), Line(3), horizon=3, episodes=40)
    monkeypatch.setattr(planner, "_PAIRS", 7)
    assert plan(knowing(), Line(3), horizon=3, episodes=40) == whole


def test_functions_of_the_world_are_policies_too():
    score = plan(lambda world: np.zeros(60, np.int64), Line(), horizon=2, episodes=60)
    assert 0.0 < score.success < 1.0


class Fixed:
    """Ends with the rewards 0, 1, 0, 1, ..."""

    best_reward = 1.0

    def reset(self, episodes, *, target_steps):
        self.rewards = np.arange(episodes) % 2.0
        return None, None

    def step(self, actions):
        return self.rewards


@pytest.mark.parametrize(("episodes", "error"), [(1, None), (2, 0.5), (4, 1 / 12**0.5)])
def test_the_error_of_the_mean_reward_is_the_usual_one(episodes, error):
    score = plan(lambda world: world.rewards, Fixed(), horizon=1, episodes=episodes)
    assert score.reward_error == (None if error is None else pytest.approx(error))


@pytest.mark.parametrize("closed_loop", [False, True])
@pytest.mark.parametrize("name", ["modular", "gnn", "lstm"])
def test_real_models_plan_in_the_real_world(name, closed_loop):
    loss = "nll" if name == "lstm" else "contrastive"
    config = WorldModelConfig(
        model=name, objects=3, encoder="small", embedding=2, hidden=48, loss=loss
    )
    model, reward = WorldModel.seeded(config, 0), RewardPredictor(6)
    world = GridPlanning("blocks/fixed_unobserved-3-v1", seed=1)
    policy = ModelPolicy(model, reward, closed_loop=closed_loop)
    assert -8.0 <= plan(policy, world, horizon=3, episodes=16).reward <= 0.0


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
def test_a_perfect_model_arrives_by_any_search(how, closed_loop):
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


def test_plans_follow_their_chances():
    chances = np.array([[[0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]])
    drawn = draw_plans(chances, 4000, np.random.default_rng(0))[0]
    assert (drawn[:, 0] == 1).all()
    assert (drawn[:, 1] == 2).mean() == pytest.approx(0.5, abs=0.03)


ensure_registered()


@pytest.mark.slow
def test_a_plan_beats_chance_and_keeps_its_word():
    env = iv.make("trifinger/picking-v1", skip_frame=35)
    env.reset(seed=0, options={"do": {"block_0/mass": 0.03}})
    config = CEM(horizon=4, iterations=6, population=60, elites=8)
    planner = Planner(env, config)
    moment = env.snapshot()
    plan = planner.plan(moment, rng=np.random.default_rng(0))
    random = np.random.default_rng(1).uniform(-1, 1, (60, 4, 9))
    chance = planner.score(moment, random)
    # sixty random plans are one generation's worth: six generations must beat the best of them
    assert plan.score > chance.max()
    assert plan.score == plan.scores.max()
    played = sum(env.step(action)[1] for action in plan.actions)
    assert played == pytest.approx(plan.score, abs=1e-12)
    planner.close()
    env.close()


def test_one_plan_after_another_to_the_end_of_the_episode():
    env = iv.make(ID)
    env.reset(seed=0)
    planner = Planner(env, CEM(horizon=2, iterations=2, population=8, elites=2, hold=2))
    assert planner.plan(env.snapshot(), rng=np.random.default_rng(0)).actions.shape == (4, 2)
    run_planner(env, planner, plans=2, rng=np.random.default_rng(0))
    assert env.unwrapped.driver.steps[0] == 8
    run_planner(env, planner, plans=100, rng=np.random.default_rng(0))
    assert env.unwrapped.driver.steps[0] == 20  # the episode's length
    planner.close()
    env.close()


BLOCKS = "blocks/observed-3-v1"


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: PlanCEM(elites=65), "elites"),
        (lambda: PlanMPPI(temperature=0.0), "temperature"),
        (lambda: PlanCEM(memory=1.0), "memory"),
        (lambda: CEM(horizon=0), "horizon"),
        (lambda: CEM(population=1.5), "population"),
        (lambda: CEM(elites=501), "elites"),
        (lambda: CEM(memory=1.0), "memory"),
        (lambda: CEM(hold=0), "hold"),
        (lambda: Planner(iv.make("chemistry/chain-v1")), "continuous"),
        (lambda: WorldImagination(GridPlanning(BLOCKS)).slopes(np.ones((1, 1, 1))), "no gradient"),
        (lambda: plan(knowing(), Line(), horizon=0), "horizon and episodes must be at least 1"),
        (
            lambda: plan(BASELINES["replay"](0), GridPlanning(BLOCKS), horizon=1, episodes=2),
            "does not tell how its targets were made",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused(call, problem):
    with pytest.raises(InvalidValueError, match=problem):
        call()
