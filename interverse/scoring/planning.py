"""Planning by a model in six ways: two goals, and three ways to see what an action leads to.

A goal is near by the *reward* that a head learned on the model's latents, or by the *latent*
distance to the target's encoding. The future is seen *open* loop (the model rolls on from what it
predicted), *closed* loop (it looks at the true frame before every step), or as the *true* next
frames of every action. With true frames a column says what its goal can give at best; the closed
column under it says what the transition gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from interverse.core.rng import Noise, generator
from interverse.envs.build import build_world
from interverse.scoring.outside import OutsideModel
from interverse.scoring.shares import Score, share

COLUMNS = (
    "reward_open",
    "reward_closed",
    "reward_true",
    "latent_open",
    "latent_closed",
    "latent_true",
)
Floats = NDArray[np.float64]
Goal = Callable[[Tensor, Tensor], Tensor]
"""How near flat latents (N, width) are to those of their targets: (N,), more is nearer."""
Values = Callable[["Episodes", int], Floats]
"""What each action seems worth (E, actions) in the present step of E episodes."""


def latent_distance(states: Tensor, targets: Tensor) -> Tensor:
    """Returns minus the squared distance of flat latents (N, width)."""
    return -(states - targets).square().sum(1)


@final
class Episodes:
    """Episodes of a grid world whose target is so many random actions away.

    Args:
        id: a blocks or chemistry id.
        options: of the world.
        horizon: steps of an episode, and actions that made its target.
        count: how many episodes, all at once.
        seed: episode i has the address (seed, i), whatever the horizon.
    """

    def __init__(
        self, id: str, options: Mapping[str, Any], *, horizon: int, count: int, seed: int
    ) -> None:
        made = {**options, "target_steps": horizon, "max_steps": horizon + 1}
        self.world = build_world(id, count, made)
        self.horizon, self.count, self.seed = horizon, count, seed
        self.actions = int(self.world.action_space.n)  # type: ignore[attr-defined]
        self._best = 0.0 if id.startswith("blocks/") else 1.0
        self._everyone = np.arange(count)
        zero = np.zeros(count, dtype=np.int64)
        self._noise = Noise(zero + seed, self._everyone, zero)
        self.world.reset(self._everyone, self._noise, {})
        seen = self.world.observe()
        self.first, self.targets = np.array(seen["image"]), np.array(seen["target"])
        self._start = self.world.save(self._everyone)

    def play(self, values: Values | None) -> NDArray[np.bool_]:
        """Returns which episodes end exactly at their target.

        The best action is taken, any of them where several are equal; None leaves the world alone.
        """
        self.world.load(self._start, self._everyone)
        rng = generator(seed=self.seed, name="scoring/planning/ties")
        for step in range(self.horizon):
            ties = rng.random((self.count, self.actions))
            if values is not None:
                worth = values(self, step)
                best = worth == worth.max(axis=1, keepdims=True)
                self._step(np.where(best, ties, -1.0).argmax(axis=1), step)
        return np.asarray(self.world.score().reward) == self._best

    def images(self) -> NDArray[np.uint8]:
        """Returns the present frames."""
        return np.array(self.world.observe()["image"])

    def each_action(self, look: Callable[[], NDArray[Any]], step: int) -> NDArray[Any]:
        """Returns what is seen after each action, (E, actions, ...); the world stays as it was."""
        now, seen = self.world.save(self._everyone), []
        for action in range(self.actions):
            self._step(np.full(self.count, action), step)
            seen.append(look())
            self.world.load(now, self._everyone)
        return np.stack(seen, axis=1)

    def rewards(self) -> Floats:
        """Returns the present rewards (E,)."""
        return np.array(self.world.score().reward, dtype=np.float64)

    def _step(self, actions: NDArray[np.int64], step: int) -> None:
        self.last_actions = actions
        self.world.step(actions, self._everyone, self._noise.at(step + 1))


@final
class _Planner:
    """A model that values the actions of one batch of episodes."""

    def __init__(self, model: OutsideModel, episodes: Episodes) -> None:
        self.model, self.episodes = model, episodes
        self.start = model.encode(episodes.first)
        self.targets = model.flat(episodes.targets)

    def open(self, goal: Goal) -> Values:
        """Returns values of actions from what was predicted; a model's memory goes with it."""
        taken: list[NDArray[np.int64]] = []

        def values(episodes: Episodes, step: int) -> Floats:
            if step == 0:
                taken.clear()
            else:
                taken.append(episodes.last_actions)
            return self._valued(goal, self.start, taken)

        return values

    def closed(self, goal: Goal) -> Values:
        """Returns values of actions from the true frame."""
        return lambda episodes, step: self._valued(
            goal, self.model.encode(episodes.images()) if step else self.start, []
        )

    def true(self, goal: Goal) -> Values:
        """Returns values of the true next frames."""

        def values(episodes: Episodes, step: int) -> Floats:
            frames = episodes.each_action(episodes.images, step)
            return self._near(goal, self.model.flat(frames.reshape(-1, *frames.shape[2:])))

        return values

    def _valued(self, goal: Goal, latents: Tensor, taken: list[NDArray[np.int64]]) -> Floats:
        count, actions = self.episodes.count, self.episodes.actions
        path = [np.repeat(one, actions) for one in taken] + [np.tile(np.arange(actions), count)]
        chosen = np.stack(path, axis=1)
        return self._near(goal, self.model.last(latents.repeat_interleave(actions, 0), chosen))

    @torch.no_grad()
    def _near(self, goal: Goal, states: Tensor) -> Floats:
        targets = self.targets.repeat_interleave(self.episodes.actions, 0)
        return goal(states, targets).double().numpy().reshape(self.episodes.count, -1)


def score_planning(
    model: OutsideModel,
    reward: Goal,
    untrained: OutsideModel | None,
    every: Mapping[int, Episodes],
) -> Score:
    """Returns success of six ways to plan and of the yardsticks, each by horizon.

    `every` has the episodes of each horizon.
    """
    found: dict[str, dict[str, Score]] = {}
    for horizon, episodes in every.items():
        planner = _Planner(model, episodes)
        goals = {"reward": reward, "latent": latent_distance}
        plans: dict[str, Values | None] = {
            f"{name}_{future}": getattr(planner, future)(goal)
            for name, goal in goals.items()
            for future in ("open", "closed", "true")
        }
        if untrained is not None:
            plans["untrained"] = _Planner(untrained, episodes).closed(latent_distance)
        equal = np.zeros((episodes.count, episodes.actions))
        plans["nothing_predicted"] = lambda episodes, step, equal=equal: equal  # type: ignore[misc]
        plans["chance"] = plans["nothing_predicted"]
        plans["do_nothing"] = None
        plans["true_world"] = lambda e, step: e.each_action(e.rewards, step)
        for name, values in plans.items():
            entry = share(episodes.play(values), scale=1.0)
            found.setdefault(name, {})[str(horizon)] = {"success": entry["value"], **entry}
    beside = {name: found[name] for name in found if name not in COLUMNS}
    for name in COLUMNS:
        for horizon_name, entry in found[name].items():
            entry |= {other: by[horizon_name]["success"] for other, by in beside.items()}
    headline = found["latent_closed"][str(min(every))]
    return {"value": headline["value"], "interval": headline["interval"], **found}
