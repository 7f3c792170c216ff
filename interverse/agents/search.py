"""Planning by search: CEM, MPPI and gradient ascent over any imagination.

An *imagination* says what sequences of actions end with: a learned model with its reward
predictor, or the true world itself, which is the ceiling of a search. `SearchPolicy` plays in
`interverse.agents.planner.plan`, beside the greedy `ModelPolicy`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from interverse.agents.gridworld import GridPlanning
from interverse.agents.planner import encode_scenes
from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import generator
from interverse.models.heads import RewardPredictor
from interverse.models.recurrent import Memory
from interverse.models.source import DataWorld
from interverse.models.world_model import WorldModel

Floats = NDArray[np.float64]
Plans = NDArray[np.int64]
_ROWS = 65536  # plans imagined together


class Imagination(Protocol):
    """Whoever can tell what actions will end with, for a batch of episodes."""

    @property
    def num_actions(self) -> int:
        """How many actions there are."""
        ...

    def begin(self, images: NDArray[Any], targets: NDArray[Any]) -> None:
        """Takes the first and target images (episodes, H, W, 3)."""
        ...

    def go_on(self, actions: Plans, images: NDArray[Any] | None) -> None:
        """Moves on by the actions (episodes,) that were taken; looks at images where given."""
        ...

    def rewards(self, plans: Plans) -> Floats:
        """Returns (episodes, N) expected last rewards of plans (episodes, N, steps)."""
        ...

    def slopes(self, chances: Floats) -> Floats:
        """Returns the gradient of the expected last reward by chances (episodes, steps, actions).

        Every step's next state is the mean over actions, weighed by their chances.
        """
        ...


class PlanSearch(Protocol):
    """A way to better the chances of actions."""

    @property
    def iterations(self) -> int:
        """How often."""
        ...

    def better(
        self, mind: Imagination, chances: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Plans, Floats]:
        """Returns new chances, the plans (episodes, N, steps) looked at, and their rewards."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCEM:
    """Cross-entropy method: the best plans of a generation shape the next."""

    iterations: int = 5
    population: int = 64
    elites: int = 8
    memory: float = 0.1
    """Share of the old chances that is kept."""

    def __post_init__(self) -> None:
        _check_counts(self)
        if self.elites > self.population:
            raise InvalidValueError(
                explain(f"elites is {self.elites}", allowed=f"at most {self.population}")
            )

    def better(
        self, mind: Imagination, chances: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Plans, Floats]:
        """Returns chances moved to the shares of actions in the best plans."""
        plans = draw_plans(chances, self.population, rng)
        earned = mind.rewards(plans)
        first = np.argsort(-earned, axis=1, kind="stable")[:, : self.elites]
        weights = np.zeros_like(earned)
        np.put_along_axis(weights, first, 1.0 / self.elites, axis=1)
        return _mixed(chances, plans, weights, self.memory), plans, earned


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMPPI:
    """Path-integral control: every plan counts by the exponential of its reward."""

    iterations: int = 5
    population: int = 64
    temperature: float = 0.1
    memory: float = 0.1
    """Share of the old chances that is kept."""

    def __post_init__(self) -> None:
        _check_counts(self)

    def better(
        self, mind: Imagination, chances: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Plans, Floats]:
        """Returns chances moved to the weighed shares of actions."""
        plans = draw_plans(chances, self.population, rng)
        earned = mind.rewards(plans)
        weights = np.exp((earned - earned.max(axis=1, keepdims=True)) / self.temperature)
        weights /= weights.sum(axis=1, keepdims=True)
        return _mixed(chances, plans, weights, self.memory), plans, earned


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGradient:
    """Gradient ascent on the chances of actions; the likeliest actions are the plan."""

    iterations: int = 20
    rate: float = 1.0
    """Logarithm by which the chance of the action with the steepest slope grows."""

    def __post_init__(self) -> None:
        _check_counts(self)

    def better(
        self, mind: Imagination, chances: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Plans, Floats]:
        """Returns chances multiplied by the exponential of their slopes."""
        slopes = mind.slopes(chances)
        steepest = np.abs(slopes).max(axis=(1, 2), keepdims=True)
        grown = np.exp(self.rate * slopes / np.where(steepest > 0.0, steepest, 1.0))
        chances = chances * grown
        chances /= chances.sum(axis=2, keepdims=True)
        plans = chances.argmax(axis=2)[:, None]
        return chances, plans, mind.rewards(plans)


def _check_counts(how: PlanCEM | PlanMPPI | PlanGradient) -> None:
    for field in fields(how):
        value = getattr(how, field.name)
        low, high = (0.0, 1.0) if field.name == "memory" else (1e-12, np.inf)
        if not low <= value < high or (field.type == "int" and int(value) != value):
            raise InvalidValueError(
                explain(
                    f"{field.name} is {value}",
                    allowed="0 to below 1" if field.name == "memory" else "more than 0",
                )
            )


def draw_plans(chances: Floats, count: int, rng: np.random.Generator) -> Plans:
    """Returns plans (episodes, count, steps) drawn by chances (episodes, steps, actions)."""
    uniform = rng.random((len(chances), count, chances.shape[1], 1))
    drawn = (uniform > np.cumsum(chances, axis=2)[:, None]).sum(axis=3)
    return np.minimum(drawn, chances.shape[2] - 1)


def _mixed(chances: Floats, plans: Plans, weights: Floats, memory: float) -> Floats:
    """Returns old chances and the weighed shares of actions in plans, mixed."""
    taken = np.arange(chances.shape[2]) == plans[..., None]
    shares = (taken * weights[:, :, None, None]).sum(axis=1)
    return memory * chances + (1.0 - memory) * shares


def search(
    mind: Imagination, how: PlanSearch, *, episodes: int, steps: int, rng: np.random.Generator
) -> Plans:
    """Returns the plans (episodes, steps) with the highest imagined reward ever seen."""
    chances = np.full((episodes, steps, mind.num_actions), 1.0 / mind.num_actions)
    best = np.zeros((episodes, steps), dtype=np.int64)
    highest = np.full(episodes, -np.inf)
    rows = np.arange(episodes)
    for _ in range(how.iterations):
        chances, plans, earned = how.better(mind, chances, rng)
        first = earned.argmax(axis=1)
        improved = earned[rows, first] > highest
        best[improved] = plans[rows, first][improved]
        highest[improved] = earned[rows, first][improved]
    return best


@final
class SearchPolicy:
    """Plays the best plan found, or in closed loop searches again at every step.

    Args:
        mind: imagines.
        how: searches: `PlanCEM`, `PlanMPPI` or `PlanGradient`.
        horizon: steps of an episode, at whose end the reward counts.
        closed_loop: look at the true image and search again at every step.
        seed: of the plans drawn.
    """

    def __init__(
        self,
        mind: Imagination,
        how: PlanSearch,
        *,
        horizon: int,
        closed_loop: bool = False,
        seed: int = 0,
    ) -> None:
        self.mind, self.how, self.horizon = mind, how, horizon
        self.closed_loop, self._seed = closed_loop, seed

    def check_world(self, world: DataWorld | None) -> None:
        """Raises for episodes of another world than a learned model's."""
        if isinstance(self.mind, ModelImagination):
            self.mind.check_world(world)

    def begin(self, images: NDArray[Any], targets: NDArray[Any]) -> None:
        """Takes the first and target images of a batch of episodes."""
        self.mind.begin(images, targets)
        self._rng = generator(seed=self._seed, name="planning/search")
        self._episodes, self._step = len(images), 0
        self._plans = self._search()

    def act(self, images: NDArray[Any] | None) -> Plans:
        """Returns the next action of every episode; images are given in closed loop only."""
        if self._step and self.closed_loop:
            self.mind.go_on(self._plans[:, 0], images)
            self._plans = self._search()
        at = 0 if self.closed_loop else self._step
        self._step += 1
        return self._plans[:, at]

    def _search(self) -> Plans:
        steps = max(1, self.horizon - self._step)
        return search(self.mind, self.how, episodes=self._episodes, steps=steps, rng=self._rng)


@final
class ModelImagination:
    """A learned model and its reward predictor."""

    def __init__(self, model: WorldModel, reward: RewardPredictor) -> None:
        self.model, self.reward = model.eval(), reward.eval()
        self.num_actions = model.config.actions
        self._device = next(model.parameters()).device

    def check_world(self, world: DataWorld | None) -> None:
        """Raises for episodes of another world than the model's."""
        self.model.check_world("episodes", world)

    def begin(self, images: NDArray[Any], targets: NDArray[Any]) -> None:
        """Encodes the first and target images."""
        self._state = encode_scenes(self.model, images)
        self._target = encode_scenes(self.model, targets).flatten(1)
        self._memory = self.model.start(len(images))

    @torch.no_grad()
    def go_on(self, actions: Plans, images: NDArray[Any] | None) -> None:
        """Predicts the next states, or encodes the images."""
        taken = torch.as_tensor(actions, device=self._device)
        self._state, self._memory = self.model.step(self._state, taken, self._memory)
        if images is not None:
            self._state = encode_scenes(self.model, images)

    @torch.no_grad()
    def rewards(self, plans: Plans) -> Floats:
        """Returns the rewards read off the predicted last states."""
        episodes, count, _ = plans.shape
        parts = []
        for rows in np.array_split(np.arange(episodes), max(1, episodes * count // _ROWS)):
            chosen = torch.as_tensor(rows, device=self._device).repeat_interleave(count)
            acts = torch.as_tensor(plans[rows], device=self._device).flatten(0, 1)
            state = self._state[chosen]
            memory: Memory = tuple(part[chosen] for part in self._memory)
            for step in range(acts.shape[1]):
                state, memory = self.model.step(state, acts[:, step], memory)
            parts.append(self.reward(state.flatten(1), self._target[chosen]))
        return torch.cat(parts).reshape(episodes, count).double().cpu().numpy()

    def slopes(self, chances: Floats) -> Floats:
        """Returns the gradient through the model."""
        mixed = torch.tensor(chances, dtype=torch.float32, device=self._device, requires_grad=True)
        state, memory = self._state, self._memory
        for step in range(mixed.shape[1]):
            state, memory = self._mean_step(state, memory, mixed[:, step])
        earned = self.reward(state.flatten(1), self._target).sum()
        (slopes,) = torch.autograd.grad(earned, mixed)
        return slopes.double().cpu().numpy()

    def _mean_step(self, state: Tensor, memory: Memory, chances: Tensor) -> tuple[Tensor, Memory]:
        """Returns the mean of next states and memories over actions."""
        episodes, count = chances.shape
        actions = torch.arange(count, device=self._device).repeat(episodes)
        following, kept = self.model.step(
            state.repeat_interleave(count, 0),
            actions,
            tuple(part.repeat_interleave(count, 0) for part in memory),
        )

        def mean(values: Tensor) -> Tensor:
            return torch.einsum("ea,ea...->e...", chances, values.unflatten(0, (episodes, count)))

        return mean(following), tuple(mean(part) for part in kept)


@final
class WorldImagination:
    """The true world, which knows its noise too: the ceiling of a search.

    Args:
        world: the episodes that are planned in; its twins are played from their start.
    """

    def __init__(self, world: GridPlanning) -> None:
        self.world = world

    @property
    def num_actions(self) -> int:
        """How many actions there are."""
        return self.world.num_actions

    def begin(self, images: NDArray[Any], targets: NDArray[Any]) -> None:
        """Starts anew; the world knows its own state."""
        self._taken = np.zeros((len(images), 0), dtype=np.int64)

    def go_on(self, actions: Plans, images: NDArray[Any] | None) -> None:
        """Notes what was done."""
        self._taken = np.concatenate([self._taken, actions[:, None]], axis=1)

    def rewards(self, plans: Plans) -> Floats:
        """Returns the last rewards of twins that play what was done and then each plan."""
        episodes, count, _ = plans.shape
        twins = self.world.twins(episodes, count)
        done = np.repeat(self._taken, count, axis=0)
        whole = np.concatenate([done, plans.reshape(episodes * count, -1)], axis=1)
        earned = np.zeros(episodes * count)
        for actions in whole.T:
            earned = twins.step(actions)
        return np.asarray(earned, dtype=np.float64).reshape(episodes, count)

    def slopes(self, chances: Floats) -> Floats:
        """Raises: a world has no gradient."""
        raise InvalidValueError(
            explain("the true world has no gradient", fix="Search with PlanCEM or PlanMPPI")
        )
