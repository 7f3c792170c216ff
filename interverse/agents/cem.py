"""Planning with the true model: the cross-entropy method, all candidates in one batch.

The present moment of one world is put into N worlds, each plays one candidate sequence of actions,
and the sequences that earned most shape the next generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, final

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError
from interverse.core.type_checks import number, validated, whole
from interverse.envs import Snapshot, WorldEnv, make_vec
from interverse.envs.build import options_of

Floats = NDArray[np.float64]


_Count = Annotated[int, whole(10**9)]


def cem_weights(scores: Floats, elites: int) -> Floats:
    """Returns the weights (..., N) of candidates in the next generation: the best count alike.

    `interverse.agents.search` weighs by it too.
    """
    best = np.argsort(-scores, axis=-1, kind="stable")[..., :elites]
    weights = np.zeros_like(scores)
    np.put_along_axis(weights, best, 1.0 / elites, axis=-1)
    return weights


def mppi_weights(scores: Floats, temperature: float) -> Floats:
    """Returns the weights (..., N) of path-integral control: exponentials of the scores."""
    weights = np.exp((scores - scores.max(axis=-1, keepdims=True)) / temperature)
    return weights / weights.sum(axis=-1, keepdims=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class CEM:
    """Settings of the cross-entropy method."""

    horizon: _Count = 6
    """Actions in a plan."""
    iterations: _Count = 20
    """Generations; plans that still improve with the last want more."""
    population: _Count = 500
    """Candidates in a generation, and worlds in the batch."""
    elites: _Count = 50
    """How many of them shape the next one."""
    memory: Annotated[float, number(most=1.0, below=True)] = 0.25
    """Share of the old mean and variance that is kept."""
    hold: _Count = 1
    """Steps for which each action of a plan is held."""

    def __post_init__(self) -> None:
        if self.elites > self.population:
            raise InvalidValueError(
                f"elites is {self.elites}", allowed=f"at most population, {self.population}"
            )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The best sequence of actions ever seen.

    Attributes:
        actions: one per step, (horizon x hold, ...).
        score: the sum of rewards it earned.
        scores: the best of each generation, (iterations,).
    """

    actions: NDArray[Any]
    score: float
    scores: Floats


@final
class Planner:
    """Plans for worlds like one environment; close it when done.

    >>> import interverse as iv
    >>> env = iv.make("tutorial/slider-v1")
    >>> _ = env.reset(seed=0)
    >>> planner = Planner(env, CEM(horizon=3, iterations=2, population=8, elites=2))
    >>> plan = planner.plan(env.snapshot(), rng=np.random.default_rng(0))
    >>> plan.actions.shape
    (3, 2)
    >>> planner.close()
    """

    def __init__(self, env: gym.Env[Any, Any], config: CEM | None = None) -> None:
        inner = env.unwrapped
        space = env.action_space
        if not isinstance(inner, WorldEnv) or not isinstance(space, gym.spaces.Box):
            raise InvalidValueError(
                f"cannot plan in {env}",
                allowed="an environment of interverse with continuous actions",
            )
        self.config = CEM() if config is None else config
        self._space = space
        self._batch = make_vec(
            inner.driver.id,
            self.config.population,
            autoreset_mode=AutoresetMode.DISABLED,
            **options_of(inner.driver.id, inner.world),
        )

    def close(self) -> None:
        """Releases the batch of worlds."""
        self._batch.close()

    def plan(self, moment: Snapshot, *, rng: np.random.Generator) -> Plan:
        """Returns the best plan found from a moment of one world.

        Args:
            moment: what `env.snapshot()` returned.
            rng: draws the candidates.
        """
        config, space = self.config, self._space
        shape = (config.horizon, *space.shape)
        mean = np.broadcast_to((space.low + space.high) / 2.0, shape).astype(np.float64)
        variance = np.broadcast_to(((space.high - space.low) / 4.0) ** 2, shape).astype(np.float64)
        best, best_score, scores = mean, -np.inf, []
        for _ in range(config.iterations):
            drawn = mean + np.sqrt(variance) * rng.standard_normal((config.population, *shape))
            drawn = np.clip(drawn, space.low, space.high)
            earned = self.score(moment, drawn)
            first, kept = int(earned.argmax()), config.memory
            scores.append(earned[first])
            if earned[first] > best_score:
                best, best_score = drawn[first], earned[first]
            weights = cem_weights(earned, config.elites)
            centre = np.tensordot(weights, drawn, 1)
            spread = np.tensordot(weights, (drawn - centre) ** 2, 1)
            mean = kept * mean + (1.0 - kept) * centre
            variance = kept * variance + (1.0 - kept) * spread
        actions = np.repeat(best, config.hold, axis=0).astype(space.dtype)
        return Plan(actions, float(best_score), np.array(scores))

    def score(self, moment: Snapshot, candidates: Floats) -> Floats:
        """Returns the sum of rewards of every candidate, (population,), played from a moment.

        A world that ends earns nothing more.
        """
        batch = self._batch
        batch.restore(moment)
        total, running = np.zeros(len(candidates)), np.ones(len(candidates), dtype=bool)
        for t in range(self.config.horizon):
            action = candidates[:, t].astype(self._space.dtype)
            for _ in range(self.config.hold):
                _, reward, terminated, truncated, _ = batch.step(action)
                total += np.where(running, reward, 0.0)
                running &= ~(terminated | truncated)
        return total


def run_planner(
    env: gym.Env[Any, Any],
    planner: Planner,
    *,
    plans: int,
    rng: np.random.Generator,
) -> float:
    """Returns what an environment earned under one plan after another, each played to its end.

    Args:
        env: after a reset; it is left where the last plan ended, or where the episode did.
        planner: of an environment with the same id and options.
        plans: how many.
        rng: draws the candidates.
    """
    earned = 0.0
    for _ in range(plans):
        plan = planner.plan(env.unwrapped.snapshot(), rng=rng)  # type: ignore[attr-defined]
        for action in plan.actions:
            _, reward, terminated, truncated, _ = env.step(action)
            earned += float(reward)
            if terminated or truncated:
                return earned
    return earned
