"""Planning: a model that knows the world plans like one who sees it, in one batch or in parts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interverse.agents import planner
from interverse.agents.planner import ModelPolicy, plan
from interverse.core.errors import InvalidValueError
from interverse.models.heads import RewardPredictor
from interverse.models.world_model import WorldModel, WorldModelConfig

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


@pytest.mark.parametrize("name", ["modular", "gnn", "lstm"])
def test_real_models_plan(name):
    loss = "nll" if name == "lstm" else "contrastive"
    config = WorldModelConfig(
        model=name, objects=3, encoder="small", embedding=2, hidden=16, loss=loss
    )
    world = Line()
    world.step = lambda actions: (actions < 15) * 0.0  # every action is legal
    score = plan(
        ModelPolicy(WorldModel.seeded(config, 0), RewardPredictor(6)), world, horizon=2, episodes=5
    )
    assert score.success == 1.0


def test_nothing_to_plan_is_refused():
    with pytest.raises(InvalidValueError, match="horizon and episodes must be at least 1"):
        plan(knowing(), Line(), horizon=0)
