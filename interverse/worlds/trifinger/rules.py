"""The rules of an episode: how long it lasts and what its steps earn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from interverse.errors import InvalidValueError, explain
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.rewards import sparse, total
from interverse.worlds.trifinger.scene import Scene
from interverse.worlds.trifinger.tasks.task import Instant, Task

Array = Any


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rules:
    """A task under some options."""

    task: Task
    options: TriFingerOptions
    seconds: float  # that an episode lasts: the time left at its start
    max_steps: int  # the step that ends it
    weights: tuple[float, ...]  # of the dense terms; empty where all are zero
    share: float  # weight of the fractional success

    @property
    def reward_range(self) -> tuple[float, float]:
        """The least and the greatest reward of a step."""
        return (0.0, self.options.step_time) if self.options.sparse_reward else (-np.inf, np.inf)

    def reward(self, before: Instant, now: Instant, fraction: Array) -> Array:
        """Returns what a step earned, (N,), given its two ends and the fractional success now."""
        options, task = self.options, self.task
        if options.sparse_reward:
            return sparse(task.solved(now, fraction), options.step_time)
        mended = options.mended_reward
        terms = task.terms(before, now, mended=mended) if self.weights else ()
        bonus = task.bonus(now, fraction, mended=mended)
        return total(terms, self.weights, bonus, self.share, options.step_time)

    def goal_reward(self, achieved: Array, desired: Array) -> Array:
        """Returns what goals alone earn, (n,): the sparse reward, or the fractional part of it."""
        fraction, success = self.task.fraction_of(achieved, desired)
        if self.options.sparse_reward:
            return sparse(success, self.options.step_time)
        return self.options.step_time * self.share * fraction


def rules_of(task: Task, scene: Scene, options: TriFingerOptions) -> Rules:
    """Returns the rules, or raises where the options do not fit the task."""
    weights = task.weights if options.dense_reward_weights is None else options.dense_reward_weights
    if len(weights) != len(task.weights):
        raise InvalidValueError(
            explain(
                f"dense_reward_weights has {len(weights)} entries",
                allowed=f"{len(task.weights)}, one for each dense term of {task.name}",
            )
        )
    share, seconds = options.fractional_reward_weight, task.seconds(scene)
    max_steps = int(seconds / options.step_time) + 1  # the original ends one step late
    if options.max_steps is not None and options.max_steps != max_steps:
        max_steps = options.max_steps
        seconds = max(options.max_steps - 1, 1) * options.step_time
    if options.legacy_time_left:
        seconds = float(max(max_steps - 1, 1))
    return Rules(
        task=task,
        options=options,
        seconds=seconds,
        max_steps=max_steps,
        weights=tuple(float(w) for w in weights) if any(weights) else (),
        share=task.fractional_weight if share is None else float(share),
    )
