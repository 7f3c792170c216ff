"""Greedy planning with a learned world model, for many episodes and all actions at once.

At every step each action's next state is predicted, its reward is read off, and the best action
(the first on ties) is taken. The published score is open loop: planning goes on from the
*predicted* state and never looks at the world again. Closed loop encodes the true frame each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from interverse.core.errors import InvalidValueError, explain
from interverse.models.heads import RewardPredictor, encode_images
from interverse.models.recurrent import Memory
from interverse.models.source import DataWorld
from interverse.models.steps import matmul_precision
from interverse.models.world_model import WorldModel

_PAIRS = 65536  # (episode, action) pairs predicted together


class PlanningWorld(Protocol):
    """A batch of goal-reaching episodes. It may tell its `world`, a `DataWorld`."""

    num_actions: int
    best_reward: float
    """The reward of success, exactly: 0 in blocks, 1 in chemistry."""

    def reset(self, episodes: int, *, target_steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns first and target images, each (episodes, H, W, 3) uint8."""
        ...

    def step(self, actions: np.ndarray) -> np.ndarray:
        """Returns the rewards (episodes,) after one action each."""
        ...

    def images(self) -> np.ndarray:
        """Returns the present images."""
        ...


@runtime_checkable
class ImagePolicy(Protocol):
    """A policy that sees images alone. It may have a `check_world` that refuses foreign worlds."""

    closed_loop: bool
    """Whether it looks at the true image at every step."""

    def begin(self, images: np.ndarray, targets: np.ndarray) -> None:
        """Takes the first and target images of a batch of episodes."""
        ...

    def act(self, images: np.ndarray | None) -> np.ndarray:
        """Returns an action for every episode; images are given in closed loop only."""
        ...


Chooser = Callable[[PlanningWorld], np.ndarray]
"""A policy that may look into the world: the present world to actions (episodes,)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningScore:
    """How planned episodes ended.

    Attributes:
        reward: mean reward after the last step (not a return).
        success: share of episodes whose last reward is exactly the best one.
        reward_error: standard error of the mean reward; None of one episode.
        horizon: steps, which is also the number of actions that made the target.
        episodes: how many.
    """

    reward: float
    success: float
    reward_error: float | None
    horizon: int
    episodes: int


@final
class ModelPolicy:
    """Chooses actions from images alone, by a world model and its reward predictor.

    Args:
        model: predicts states.
        reward: predicts rewards from flat states.
        closed_loop: encode the true image at every step.
    """

    def __init__(
        self, model: WorldModel, reward: RewardPredictor, *, closed_loop: bool = False
    ) -> None:
        self.model, self.reward = model.eval(), reward.eval()
        self.closed_loop = closed_loop
        self._device = next(model.parameters()).device

    def check_world(self, world: DataWorld | None) -> None:
        """Raises for episodes of another world than the model's."""
        self.model.check_world("episodes", world)

    def begin(self, images: np.ndarray, targets: np.ndarray) -> None:
        """Takes the first and target images of a batch of episodes."""
        self._target = encode_scenes(self.model, targets)
        self._state = encode_scenes(self.model, images)
        self._memory = self.model.start(len(images))

    @torch.no_grad()
    def act(self, images: np.ndarray | None) -> np.ndarray:
        """Returns the best action of every episode; images are read in closed loop only."""
        if self.closed_loop and images is not None:
            self._state = encode_scenes(self.model, images)
        actions = torch.arange(self.model.config.actions, device=self._device)
        chosen, states, memories = [], [], []
        size = max(1, _PAIRS // len(actions))
        for start in range(0, len(self._state), size):
            rows = slice(start, start + size)
            memory = tuple(part[rows] for part in self._memory)
            best, state, memory = self._best(rows, actions, memory)
            chosen.append(best)
            states.append(state)
            memories.append(memory)
        self._state = torch.cat(states)
        self._memory = tuple(torch.cat(parts) for parts in zip(*memories, strict=True))
        return torch.cat(chosen).cpu().numpy()

    def _best(self, rows: slice, actions: Tensor, memory: Memory) -> tuple[Tensor, Tensor, Memory]:
        """Returns the best actions of some episodes, and the states and memories they lead to."""
        state, target = self._state[rows], self._target[rows]
        episodes, choices = len(state), len(actions)
        following, memory = self.model.step(
            state.repeat_interleave(choices, 0),
            actions.repeat(episodes),
            tuple(part.repeat_interleave(choices, 0) for part in memory),
        )
        goals = target.flatten(1).repeat_interleave(choices, 0)
        values = self.reward(following.flatten(1), goals).reshape(episodes, choices)
        # argmax may return any of several maxima; the first one is the rule.
        best = (values == values.amax(1, keepdim=True)).to(torch.uint8).argmax(1)
        picked = torch.arange(episodes, device=best.device) * choices + best
        return best, following[picked], tuple(part[picked] for part in memory)


def encode_scenes(model: WorldModel, images: np.ndarray) -> Tensor:
    """Returns the states (N, slots, width) of uint8 images, on the model's device."""
    config, device = model.config, next(model.parameters()).device
    flat = encode_images(model, torch.as_tensor(images).to(device))
    return flat.unflatten(1, (config.slots, config.slot_width))


def plan(
    policy: ImagePolicy | Chooser, world: PlanningWorld, *, horizon: int, episodes: int = 1000
) -> PlanningScore:
    """Returns how well a policy reaches targets that are `horizon` random actions away.

    Args:
        policy: a model's policy, or a function that chooses by looking at the world.
        world: resets, steps, rewards.
        horizon: steps per episode, all of them taken.
        episodes: run as one batch.
    """
    if horizon < 1 or episodes < 1:
        raise InvalidValueError(
            explain(f"horizon and episodes must be at least 1, got {horizon} and {episodes}")
        )
    check_world = getattr(policy, "check_world", None)
    if check_world is not None:
        check_world(getattr(world, "world", None))
    images, targets = world.reset(episodes, target_steps=horizon)
    if isinstance(policy, ImagePolicy):
        policy.begin(images, targets)
    rewards = np.zeros(episodes)
    for step in range(horizon):
        actions = _chosen(policy, world, first=step == 0)
        rewards = np.asarray(world.step(actions), dtype=np.float64)
    return PlanningScore(
        reward=float(rewards.mean()),
        success=float((rewards == world.best_reward).mean()),
        reward_error=float(rewards.std(ddof=1) / np.sqrt(episodes)) if episodes > 1 else None,
        horizon=horizon,
        episodes=episodes,
    )


def _chosen(policy: ImagePolicy | Chooser, world: PlanningWorld, *, first: bool) -> np.ndarray:
    if not isinstance(policy, ImagePolicy):
        return policy(world)
    look = policy.closed_loop and not first
    with matmul_precision("float32", tune=False):
        return policy.act(world.images() if look else None)
