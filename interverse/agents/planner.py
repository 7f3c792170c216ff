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


class Imagined:
    """Episodes in the states of a learned model, and its reward predictor, from images alone."""

    def __init__(self, model: WorldModel, reward: RewardPredictor) -> None:
        self.model, self.reward = model.eval(), reward.eval()
        self.num_actions = model.config.actions
        self._device = next(model.parameters()).device

    def check_world(self, world: DataWorld | None) -> None:
        """Raises for episodes of another world than the model's."""
        self.model.check_world("episodes", world)

    def begin(self, images: np.ndarray, targets: np.ndarray) -> None:
        """Takes the first and target images of a batch of episodes."""
        self._state = self._encoded(images)
        self._target = self._encoded(targets).flatten(1)
        self._memory = self.model.start(len(images))

    def _encoded(self, images: np.ndarray) -> Tensor:
        """Returns the states (N, slots, width) of uint8 images."""
        config = self.model.config
        flat = encode_images(self.model, torch.as_tensor(images).to(self._device))
        return flat.unflatten(1, (config.slots, config.slot_width))


@final
class ModelPolicy(Imagined):
    """Takes the action after which a world model and its reward predictor promise most.

    Args:
        model: predicts states.
        reward: predicts rewards from flat states.
        closed_loop: encode the true image at every step.
    """

    def __init__(
        self, model: WorldModel, reward: RewardPredictor, *, closed_loop: bool = False
    ) -> None:
        super().__init__(model, reward)
        self.closed_loop = closed_loop

    @torch.no_grad()
    def act(self, images: np.ndarray | None) -> np.ndarray:
        """Returns the best action of every episode; images are read in closed loop only."""
        if self.closed_loop and images is not None:
            self._state = self._encoded(images)
        size = max(1, _PAIRS // self.num_actions)
        starts = range(0, len(self._state), size)
        parts = [self._best(slice(start, start + size)) for start in starts]
        chosen, states, memories = zip(*parts, strict=True)
        self._state = torch.cat(states)
        self._memory = tuple(torch.cat(part) for part in zip(*memories, strict=True))
        return torch.cat(chosen).cpu().numpy()

    def _best(self, rows: slice) -> tuple[Tensor, Tensor, Memory]:
        """Returns the best actions of some episodes, and the states and memories they lead to."""
        state, target, choices = self._state[rows], self._target[rows], self.num_actions
        following, memory = self.model.step(
            state.repeat_interleave(choices, 0),
            torch.arange(choices, device=self._device).repeat(len(state)),
            tuple(part[rows].repeat_interleave(choices, 0) for part in self._memory),
        )
        goals = target.repeat_interleave(choices, 0)
        values = self.reward(following.flatten(1), goals).reshape(-1, choices)
        # argmax may return any of several maxima; the first one is the rule.
        best = (values == values.amax(1, keepdim=True)).to(torch.uint8).argmax(1)
        picked = torch.arange(len(state), device=best.device) * choices + best
        return best, following[picked], tuple(part[picked] for part in memory)


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
        if isinstance(policy, ImagePolicy):
            seen = world.images() if policy.closed_loop and step else None
            with matmul_precision("float32", tune=False):
                actions = policy.act(seen)
        else:
            actions = policy(world)
        rewards = np.asarray(world.step(actions), dtype=np.float64)
    return PlanningScore(
        reward=float(rewards.mean()),
        success=float((rewards == world.best_reward).mean()),
        reward_error=float(rewards.std(ddof=1) / np.sqrt(episodes)) if episodes > 1 else None,
        horizon=horizon,
        episodes=episodes,
    )
