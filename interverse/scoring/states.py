"""Scores in worlds with continuous actions: the slider, control, TriFinger, states or pictures.

What a model sees is the world's observation. Prediction is ranked among other episodes and among
what other actions lead to in the same scene; a plan is the best of many imagined ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import gymnasium
import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError
from interverse.core.rng import region_seed
from interverse.envs import WorldVectorEnv
from interverse.models.ranking import HORIZONS
from interverse.models.states import play, random_actions, state_worlds
from interverse.scoring.outside import OutsideModel
from interverse.scoring.planning import COLUMNS, latent_distance
from interverse.scoring.shares import (
    Score,
    absent,
    balanced,
    chance_in_scene,
    in_scene_hits,
    mean_of,
    same_pictures,
    score_ranking,
    share,
)

_PARTS = ("references", "scenes", "planning")
_LEAD = 3  # random steps before a scene, so that it is no mere start
_NEAR = 0.5  # of the start's distance to the target: a plan that ends nearer succeeds
_NO_GRAPH = "effects and edges of real variables have no common unit; interverse fit scores them"
_NO_TWINS = "counterfactuals of real variables are scored by interverse fit, on states"
_NO_REWARD = "the goal here is a target observation; no reward is learned"
_NO_STEPS = "plans here are whole sequences, chosen once"


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
                f"{id} has observations {type(observed).__name__} and actions"
                f" {type(acted).__name__}",
                allowed="blocks and chemistry, and worlds of arrays and real actions",
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
            actions = random_actions(env, max(HORIZONS), seed)
            played = play(env, actions, np.array, first)
        finally:
            env.close()
        rows = played.whole
        if not rows.any():
            return absent(f"no episode of random actions lasts {max(HORIZONS)} steps")
        units = _units(played.states.reshape(-1, *played.states.shape[2:]))
        return score_ranking(
            model, untrained, played.states[rows], actions.swapaxes(0, 1)[rows], units
        )

    def _in_scene(self, model: OutsideModel, untrained: OutsideModel | None) -> Score:
        """Returns H@1 of the true outcome among those of other actions in the same scene."""
        env, choices = self._worlds(self.sizes.scenes), range(self.sizes.actions)
        try:
            seed = self._seed("scenes")
            first, _ = env.reset(seed=seed)
            start = play(env, random_actions(env, _LEAD, seed), np.array, first).states[:, -1]
            moment = env.snapshot()
            drawn = [random_actions(env, 1, seed + 1 + a) for a in choices]
            ends = []
            for actions in drawn:
                env.restore(moment)
                ends.append(play(env, actions, np.array, start))
        finally:
            env.close()
        whole = np.all([one.whole for one in ends], axis=0)
        if not whole.any():
            return absent("every scene ends with the next step")
        start, tried = start[whole], np.stack([one[0] for one in drawn], axis=1)[whole]
        seen = np.stack([one.states[:, -1] for one in ends], axis=1)[whole]
        same = same_pictures(seen, start)
        moved = ~same[:, :, -1]
        hits = in_scene_hits(model, start, seen, tried, same)
        out = {
            **balanced([hits["model"][moved]]),
            "nothing_predicted": mean_of(hits["nothing"][moved]),
            "do_nothing": 0.0,
            "chance": mean_of(chance_in_scene(same)[moved]),
            "true_world": mean_of(hits["true"][moved]),
        }
        if untrained is not None:
            fresh = in_scene_hits(untrained, start, seen, tried, same)
            out["untrained"] = mean_of(fresh["model"][moved])
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
                    one = play(env, chosen[:, :horizon].swapaxes(0, 1), np.array, start)
                    return one.states[:, -1], one.whole

                target, whole = ends(plans[:, 0])
                if not whole.any():
                    return absent(f"no episode of random actions lasts {horizon} steps")
                units = _units(np.concatenate([start, target]))
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
            name: absent(_NO_REWARD if name.startswith("reward") else _NO_STEPS)
            for name in COLUMNS
            if name != "latent_open"
        }
        return {"value": headline["value"], "interval": headline["interval"], **found, **gone}


def _best(
    model: OutsideModel, start: NDArray[Any], target: NDArray[Any], plans: NDArray[Any]
) -> NDArray[np.int64]:
    """Returns the plan (N,) of each world whose imagined end is nearest to its target."""
    count, choices = plans.shape[:2]
    latents = model.encode(start).repeat_interleave(choices, 0)
    ends = model.last(latents, plans.reshape(count * choices, *plans.shape[2:]))
    goals = model.flat(target).repeat_interleave(choices, 0)
    return latent_distance(ends, goals).reshape(count, choices).argmax(1).numpy()


def _units(seen: NDArray[Any]) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    """Returns how observations are told in deviations of each number over some of them."""

    def flat(observations: NDArray[Any]) -> NDArray[np.float64]:
        return observations.reshape(len(observations), -1).astype(np.float64)

    spread = flat(seen).std(axis=0)
    spread = np.where(spread > 0, spread, np.inf)
    return lambda observations: flat(observations) / spread
