"""Scores in worlds with continuous actions: the slider, control, TriFinger, states or pictures.

What a model sees is the world's observation. Prediction is ranked among other episodes and among
what other actions lead to in the same scene; a plan is the best of many imagined ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import region_seed
from interverse.envs import WorldVectorEnv
from interverse.models.ranking import numbered, ranks
from interverse.models.state_network import random_actions
from interverse.models.state_worlds import state_worlds
from interverse.scoring.outside import OutsideModel, nearest
from interverse.scoring.planning import HORIZONS, latent_distance
from interverse.scoring.shares import PERCENT, Score, absent, balanced, mean_of, rounded, share

_PARTS = ("references", "scenes", "planning")
_LEAD = 3  # random steps before a scene, so that it is no mere start
_NEAR = 0.5  # of the start's distance to the target: a plan that ends nearer succeeds
_NO_GRAPH = "effects and edges of real variables have no common unit; interverse fit scores them"
_NO_TWINS = "counterfactuals of real variables are scored by interverse fit, on states"
_COLUMNS_ABSENT = {
    "reward_open": "the goal here is a target observation; no reward is learned",
    "latent_closed": "plans here are whole sequences, chosen once",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StateSizes:
    """How much is played."""

    references: int
    scenes: int
    actions: int
    """Tried in each scene."""
    planned: int
    plans: int
    """Imagined for each planned episode."""


SIZES: Mapping[str, StateSizes] = {
    "small": StateSizes(references=500, scenes=64, actions=16, planned=128, plans=128),
    "full": StateSizes(references=5000, scenes=500, actions=32, planned=1000, plans=256),
}
PICTURES: Mapping[str, StateSizes] = {
    "small": StateSizes(references=64, scenes=16, actions=8, planned=16, plans=32),
    "full": StateSizes(references=1000, scenes=128, actions=16, planned=128, plans=128),
}


class _Played(NamedTuple):
    """Observations along random actions, and which worlds lasted."""

    seen: list[NDArray[Any]]  # T + 1 of (N, ...)
    actions: NDArray[Any]  # (N, T, A)
    whole: NDArray[np.bool_]  # (N,)


@final
class StateBench:
    """Episodes, scenes and targets of one world, and the scores on them.

    Args:
        id: a world with continuous actions.
        budget: small or full.
        seed: of all that is played.
        options: of the world.
    """

    def __init__(self, id: str, *, budget: str, seed: int, options: Mapping[str, Any]) -> None:
        self.id, self.seed, self.options = id, seed, options
        env = state_worlds(id, 1, steps=1, options=options)
        observed, acted = env.single_observation_space, env.single_action_space
        env.close()
        if not (
            isinstance(observed, gymnasium.spaces.Box) and isinstance(acted, gymnasium.spaces.Box)
        ):
            raise InvalidValueError(
                explain(
                    f"{id} has observations {type(observed).__name__} and actions"
                    f" {type(acted).__name__}",
                    allowed="blocks and chemistry, and worlds of arrays and real actions",
                )
            )
        self.sizes = (SIZES if len(observed.shape) == 1 else PICTURES)[budget]

    def scores(self, model: OutsideModel) -> dict[str, Score]:
        """Returns every kind of score of a model."""
        untrained = model.untrained()
        return {
            "ranking": self._ranking(model, untrained),
            "in_scene": self._in_scene(model, untrained),
            "effects": absent(_NO_GRAPH),
            "graph": absent(_NO_GRAPH),
            "counterfactual": absent(_NO_TWINS),
            "planning": self._planning(model, untrained),
        }

    def _worlds(self, count: int) -> WorldVectorEnv:
        return state_worlds(self.id, count, steps=_LEAD + max(HORIZONS), options=self.options)

    def _seed(self, part: str) -> int:
        return region_seed("scoring", self.seed * len(_PARTS) + _PARTS.index(part))

    def _ranking(self, model: OutsideModel, untrained: OutsideModel | None) -> Score:
        env = self._worlds(self.sizes.references)
        try:
            seed = self._seed("references")
            first, _ = env.reset(seed=seed)
            played = _play(env, np.asarray(first), random_actions(env, max(HORIZONS), seed))
        finally:
            env.close()
        rows, found = played.whole, dict[str, Score]()
        if not rows.any():
            return absent(f"no episode of random actions lasts {max(HORIZONS)} steps")
        own = _predicted(model, played)
        fresh = None if untrained is None else _predicted(untrained, played)
        units = _Units(played.seen)
        for horizon in HORIZONS:
            shown = numbered(played.seen[horizon][rows])
            states = {"model": own[0][:, horizon - 1], "nothing": own[1], "true": own[2][horizon]}
            hits = {n: _ranks(own[2][horizon], part, shown) for n, part in states.items()}
            flat = [torch.as_tensor(units(played.seen[k][rows])) for k in (horizon, 0)]
            value = share(hits["model"] == 1)
            found[str(horizon)] = {
                **value,
                "hits": value["value"],
                "mrr": mean_of(1.0 / hits["model"]),
                "nothing_predicted": mean_of(hits["nothing"] == 1),
                "do_nothing": mean_of(_ranks(flat[0], flat[1], shown) == 1),
                "chance": rounded(PERCENT / len(np.unique(shown))),
                "true_world": mean_of(hits["true"] == 1),
            }
            if fresh is not None:
                one = _ranks(fresh[2][horizon], fresh[0][:, horizon - 1], shown)
                found[str(horizon)]["untrained"] = mean_of(one == 1)
        return {**found[str(HORIZONS[0])], **found}

    def _in_scene(self, model: OutsideModel, untrained: OutsideModel | None) -> Score:
        """Returns H@1 of the true outcome among those of other actions in the same scene."""
        env = self._worlds(self.sizes.scenes)
        try:
            seed = self._seed("scenes")
            first, _ = env.reset(seed=seed)
            start = _play(env, np.asarray(first), random_actions(env, _LEAD, seed)).seen[-1]
            moment = env.snapshot()
            tried = np.stack(
                [random_actions(env, 1, seed + 1 + a)[0] for a in range(self.sizes.actions)], axis=1
            )  # (S, A, width)
            outcomes, whole = [], np.ones(len(start), dtype=bool)
            for a in range(self.sizes.actions):
                env.restore(moment)
                one = _play(env, start, tried[:, a][None])
                outcomes.append(one.seen[-1])
                whole &= one.whole
        finally:
            env.close()
        if not whole.any():
            return absent("every scene ends with the next step")
        seen, begun, tried = np.stack(outcomes, axis=1)[whole], start[whole], tried[whole]
        every = np.concatenate([seen, begun[:, None]], axis=1)
        count, actions = seen.shape[:2]
        numbers = numbered(every.reshape(-1, *every.shape[2:])).reshape(count, -1)
        same = numbers[:, :actions, None] == numbers[:, None, :]
        moved = ~same[:, :, -1]

        def hits(one: OutsideModel) -> dict[str, NDArray[np.bool_]]:
            candidates = one.flat(every.reshape(-1, *every.shape[2:])).reshape(
                count, actions + 1, -1
            )
            latents = one.encode(begun).repeat_interleave(actions, 0)
            told = one.last(latents, tried.reshape(count * actions, 1, -1))
            kept = candidates[:, -1:].expand(-1, actions, -1)
            found = {"model": told.reshape(count, actions, -1), "nothing": kept}
            found["true"] = candidates[:, :actions]
            return {name: nearest(part, candidates, same)[moved] for name, part in found.items()}

        own = hits(model)
        chance = (1.0 / (1 + (~same).sum(2) / same.sum(2)))[moved]
        out = {
            **balanced([own["model"]]),
            "nothing_predicted": mean_of(own["nothing"]),
            "do_nothing": 0.0,
            "chance": mean_of(chance),
            "true_world": mean_of(own["true"]),
        }
        if untrained is not None:
            out["untrained"] = mean_of(hits(untrained)["model"])
        return out

    def _planning(self, model: OutsideModel, untrained: OutsideModel | None) -> Score:
        """Returns how often the best imagined plan ends near a target that random actions reach."""
        env = self._worlds(self.sizes.planned)
        found: dict[str, dict[str, Score]] = {}
        try:
            seed = self._seed("planning")
            first, _ = env.reset(seed=seed)
            start, moment = np.asarray(first), env.snapshot()
            drawn = [
                random_actions(env, max(HORIZONS), seed + k) for k in range(self.sizes.plans + 1)
            ]
            plans = np.stack(drawn).transpose(2, 0, 1, 3)  # (worlds, plans, steps, width)
            for horizon in HORIZONS:

                def ends(
                    chosen: NDArray[Any], horizon: int = horizon
                ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
                    env.restore(moment)
                    one = _play(env, start, chosen[:, :horizon].swapaxes(0, 1))
                    return one.seen[-1], one.whole

                target, whole = ends(plans[:, 0])
                if not whole.any():
                    return absent(f"no episode of random actions lasts {horizon} steps")
                units = _Units([start, target])
                goal, begun = units(target), units(start)
                own = np.linalg.norm(begun - goal, axis=1)
                chosen = {"chance": np.zeros(len(start), dtype=int), "latent_open": None}
                for name, one in (("latent_open", model), ("untrained", untrained)):
                    if one is not None:
                        chosen[name] = _best(one, start, target, plans[:, 1:, :horizon])
                everyone, took_part = np.arange(len(start)), whole & (own > 0)
                entries: dict[str, NDArray[np.bool_]] = {}
                for name, best in chosen.items():
                    assert best is not None
                    end, lasted = ends(plans[everyone, 1 + best])
                    apart = np.linalg.norm(units(end) - goal, axis=1)
                    entries[name] = ((apart < _NEAR * own) & lasted)[took_part]
                entries["do_nothing"] = np.zeros(took_part.sum(), dtype=bool)
                entries["nothing_predicted"] = entries["chance"]  # all plans look alike to it
                entries["true_world"] = np.ones(took_part.sum(), dtype=bool)
                for name, won in entries.items():
                    entry = share(won, scale=1.0)
                    by = found.setdefault(name, {})
                    by[str(horizon)] = {"success": entry["value"], **entry}
        finally:
            env.close()
        beside = {name: found[name] for name in found if name != "latent_open"}
        for steps, entry in found["latent_open"].items():
            entry |= {other: by[steps]["success"] for other, by in beside.items()}
        headline = found["latent_open"][str(HORIZONS[0])]
        gone = {
            f"{goal}_{future}": absent(
                _COLUMNS_ABSENT["reward_open" if goal == "reward" else "latent_closed"]
            )
            for goal in ("reward", "latent")
            for future in ("open", "closed", "true")
            if (goal, future) != ("latent", "open")
        }
        return {"value": headline["value"], "interval": headline["interval"], **found, **gone}


def _play(env: WorldVectorEnv, first: NDArray[Any], actions: NDArray[Any]) -> _Played:
    """Returns what is seen while actions (T, N, A) are played."""
    seen, going = [np.array(first)], ~env.driver.ended
    for action in actions:
        observation = env.step(action)[0]
        seen.append(np.array(observation))
        going &= ~env.driver.ended
    return _Played(seen, actions.swapaxes(0, 1), going)


def _predicted(model: OutsideModel, played: _Played) -> tuple[Tensor, Tensor, dict[int, Tensor]]:
    """Returns predictions (N, T, width), first latents, and true latents by horizon."""
    rows = played.whole
    first = model.encode(played.seen[0][rows])
    predicted = model.rollout(first, played.actions[rows]).flatten(2).double()
    true = {horizon: model.flat(played.seen[horizon][rows]) for horizon in HORIZONS}
    return predicted, first.flatten(1).double(), true


def _best(
    model: OutsideModel, start: NDArray[Any], target: NDArray[Any], plans: NDArray[Any]
) -> NDArray[np.int64]:
    """Returns the plan (N,) of each world whose imagined end is nearest to its target."""
    count, choices = plans.shape[:2]
    latents = model.encode(start).repeat_interleave(choices, 0)
    ends = model.last(latents, plans.reshape(count * choices, *plans.shape[2:]))
    goals = model.flat(target).repeat_interleave(choices, 0)
    return latent_distance(ends, goals).reshape(count, choices).argmax(1).numpy()


def _ranks(true: Tensor, predicted: Tensor, shown: NDArray[np.int64]) -> NDArray[np.int64]:
    return ranks(true, predicted, torch.as_tensor(shown)).own.numpy()


class _Units:
    """Observations in deviations of each number over some of them."""

    def __init__(self, seen: list[NDArray[Any]]) -> None:
        spread = np.concatenate([_flat(part) for part in seen]).std(axis=0)
        self._spread = np.where(spread > 0, spread, np.inf)

    def __call__(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """Returns (N, width)."""
        return np.asarray(_flat(observations) / self._spread)


def _flat(observations: NDArray[Any]) -> NDArray[np.float64]:
    return observations.reshape(len(observations), -1).astype(np.float64)
