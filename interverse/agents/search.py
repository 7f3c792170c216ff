"""Planning by search: CEM, MPPI and gradient ascent over any imagination.

An *imagination* says what sequences of actions end with: a learned model with its reward
predictor, or the true world itself, which is the ceiling of a search. `SearchPolicy` plays in
`interverse.agents.planner.plan`, beside the greedy `ModelPolicy`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray

from interverse.agents.cem import cem_weights, mppi_weights
from interverse.agents.gridworld import GridPlanning
from interverse.agents.planner import Imagined
from interverse.core.errors import InvalidValueError, check_whole
from interverse.core.rng import generator
from interverse.core.type_checks import Positive, number, validated, whole
from interverse.models.recurrent import Memory
from interverse.models.source import DataWorld

Floats = NDArray[np.float64]
Plans = NDArray[np.int64]
_ROWS = 65536  # plans imagined together


class Imagination(Protocol):
    """Whoever can tell what actions will end with, for a batch of episodes."""

    num_actions: int

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


_Count = Annotated[int, whole(10**9)]


class PlanSearch(ABC):
    """A way to better the chances of actions, so many `iterations`."""

    iterations: int

    @abstractmethod
    def better(
        self, mind: Imagination, chances: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Plans, Floats]:
        """Returns new chances, the plans (episodes, N, steps) looked at, and their rewards."""


@dataclass(frozen=True, kw_only=True)
@validated
class _Weighed(PlanSearch):
    """Chances move towards the shares of actions in plans that they draw, weighed by rewards."""

    iterations: _Count = 5
    population: _Count = 64
    memory: Annotated[float, number(most=1.0, below=True)] = 0.1
    """Share of the old chances that is kept."""

    @abstractmethod
    def _weights(self, earned: Floats) -> Floats:
        """Returns the weights (episodes, N) of plans, which add up to one."""

    def better(
        self, mind: Imagination, chances: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Plans, Floats]:
        """Returns new chances, the plans drawn, and their rewards."""
        plans = draw_plans(chances, self.population, rng)
        earned = mind.rewards(plans)
        taken = np.arange(chances.shape[2]) == plans[..., None]
        shares = (taken * self._weights(earned)[:, :, None, None]).sum(axis=1)
        return self.memory * chances + (1.0 - self.memory) * shares, plans, earned


@final
@dataclass(frozen=True, kw_only=True)
@validated
class PlanCEM(_Weighed):
    """Cross-entropy method: the best plans of a generation shape the next."""

    elites: _Count = 8

    def __post_init__(self) -> None:
        check_whole(self.elites, "elites", self.population)

    def _weights(self, earned: Floats) -> Floats:
        return cem_weights(earned, self.elites)


@final
@dataclass(frozen=True, kw_only=True)
@validated
class PlanMPPI(_Weighed):
    """Path-integral control: every plan counts by the exponential of its reward."""

    temperature: Positive = 0.1

    def _weights(self, earned: Floats) -> Floats:
        return mppi_weights(earned, self.temperature)


@final
@dataclass(frozen=True, kw_only=True)
@validated
class PlanGradient(PlanSearch):
    """Gradient ascent on the chances of actions; the likeliest actions are the plan."""

    iterations: _Count = 20
    rate: Positive = 1.0
    """Logarithm by which the chance of the action with the steepest slope grows."""

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


def draw_plans(chances: Floats, count: int, rng: np.random.Generator) -> Plans:
    """Returns plans (episodes, count, steps) drawn by chances (episodes, steps, actions)."""
    uniform = rng.random((len(chances), count, chances.shape[1], 1))
    drawn = (uniform > np.cumsum(chances, axis=2)[:, None]).sum(axis=3)
    return np.minimum(drawn, chances.shape[2] - 1)


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
        if isinstance(self.mind, Imagined):
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
class ModelImagination(Imagined):
    """A learned model and its reward predictor."""

    @torch.no_grad()
    def go_on(self, actions: Plans, images: NDArray[Any] | None) -> None:
        """Predicts the next states, or encodes the images."""
        taken = torch.as_tensor(actions, device=self._device)
        self._state, self._memory = self.model.step(self._state, taken, self._memory)
        if images is not None:
            self._state = self._encoded(images)

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
        episodes, _, count = mixed.shape
        actions = torch.arange(count, device=self._device).repeat(episodes)
        for step in range(mixed.shape[1]):  # to the mean of next states and memories over actions
            following, kept = self.model.step(
                state.repeat_interleave(count, 0),
                actions,
                tuple(part.repeat_interleave(count, 0) for part in memory),
            )
            state, *rest = (
                torch.einsum("ea,ea...->e...", mixed[:, step], part.unflatten(0, (episodes, count)))
                for part in (following, *kept)
            )
            memory = tuple(rest)
        earned = self.reward(state.flatten(1), self._target).sum()
        (slopes,) = torch.autograd.grad(earned, mixed)
        return slopes.double().cpu().numpy()


@final
class WorldImagination:
    """The true world, which knows its noise too: the ceiling of a search.

    Args:
        world: the episodes that are planned in; its twins are played from their start.
    """

    def __init__(self, world: GridPlanning) -> None:
        self.world = world

    def begin(self, images: NDArray[Any], targets: NDArray[Any]) -> None:
        """Starts anew; the world knows its own state."""
        self.num_actions = self.world.num_actions
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
            "the true world has no gradient", fix="Search with PlanCEM or PlanMPPI"
        )
