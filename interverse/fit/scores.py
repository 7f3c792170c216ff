"""One trained model's scores, each as a JSON value: prediction, planning, graph recovery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from interverse.agents.gridworld import BASELINES, GridPlanning
from interverse.agents.planner import ModelPolicy, PlanningScore, plan
from interverse.agents.search import (
    ModelImagination,
    PlanCEM,
    PlanGradient,
    PlanMPPI,
    SearchPolicy,
    WorldImagination,
)
from interverse.fit.materials import GraphTrials, Materials
from interverse.metrics.recovery import RecoveryScores
from interverse.models.counterfactual import score_counterfactuals
from interverse.models.datasets import dataset_labels
from interverse.models.effects import (
    Effects,
    ModelRespondent,
    ReadTruth,
    effects,
    score_effects,
)
from interverse.models.fit import Fit
from interverse.models.heads import RewardPredictor, fit_probe, fit_reward
from interverse.models.ranking import HORIZONS, evaluate_ranking
from interverse.models.world_model import WorldModel

Score = dict[str, Any]

_FLOOR = 0.05  # chances move a little in every prediction; below this an effect counts as none
SEARCHED = 5  # steps of searched plans
_EPISODES_APART = 10_000  # between the worlds of two seeds
BASELINE_NAMES: Mapping[str, Mapping[str, str]] = {
    "blocks": {"Random": "random", "Nothing": "nothing", "Greedy": "scripted"},
    "chemistry": {"Random": "random", "Nothing": "nothing", "Optimal": "replay"},
}
"""By family: the name in the tables and ours. The paper has no row for doing nothing."""


def ranking(model: WorldModel, materials: Materials, seed: int, *, split: str = "test") -> Score:
    """Returns H@1, MRR and reconstruction by horizon, on new episodes of the training world.

    Of the split "zero-shot" the colours were never seen.
    """
    found = evaluate_ranking(model, materials.source(split))
    return {str(k): asdict(score) for k, score in found.items()}


def planning(model: WorldModel, materials: Materials, seed: int) -> Score:
    """Returns reward and success by horizon, open loop as published and closed loop beside it."""
    predictor = _reward(model, materials, seed)
    return _by_horizon(
        {
            name: partial(ModelPolicy, model, predictor, closed_loop=closed)
            for name, closed in (("open", False), ("closed", True))
        },
        materials,
        seed,
    )


def search(model: WorldModel, materials: Materials, seed: int) -> Score:
    """Returns reward and success of searched plans, and of a search in the true world itself."""
    world = _episodes(materials, seed)
    mind = ModelImagination(model, _reward(model, materials, seed))
    policies = {
        name: SearchPolicy(mind, one, horizon=SEARCHED)
        for name, one in (("CEM", PlanCEM()), ("MPPI", PlanMPPI()), ("gradient", PlanGradient()))
    }
    policies["CEM in the true world"] = SearchPolicy(
        WorldImagination(world), PlanCEM(), horizon=SEARCHED
    )
    episodes = max(1, materials.budget.episodes // 4)  # a search looks at hundreds of plans each
    return {
        name: _planned(plan(policy, world, horizon=SEARCHED, episodes=episodes))
        for name, policy in policies.items()
    }


def recovery(model: WorldModel, materials: Materials, seed: int) -> Score:
    """Returns how well the model knows the graph, and what would have happened.

    A probe reads the model's predictions, and its mistakes count as the model's: `read` has what
    true outcomes score when the same probe reads them.
    """
    train, valid = (
        (materials.source(name), dataset_labels(materials.data(name))[0])
        for name in ("train", "valid")
    )
    probe = fit_probe(
        model,
        _how(materials, materials.budget.probe_epochs),
        train,
        valid,
        values=materials.graph.trials.worlds.values,
        seed=seed,
    )
    graph, trials = materials.graph, materials.counterfactuals
    asked = ModelRespondent(model, probe, graph.trials.worlds.images)
    would_be = ModelRespondent(model, probe, trials.worlds.images)
    read = effects(ReadTruth(asked, graph.trials), graph.trials, floor=_FLOOR)
    true = score_counterfactuals(ReadTruth(would_be, trials), trials)
    return {
        **recovered(asked, graph, floor=_FLOOR),
        "counterfactual": score_counterfactuals(would_be, trials).record(),
        "read": {**asdict(_against_truth(graph, read)), "counterfactual": true.record()},
        "counterfactual_ceilings": materials.counterfactual_ceilings,
    }


def recovered(respondent: Any, graph: GraphTrials, *, floor: float = 0.0) -> Score:
    """Returns graph-recovery scores of a model or a world.

    Total effects up to `floor` count as none when paths are told apart.
    """
    found = effects(respondent, graph.trials, floor=floor)
    direct, true = (e.total if graph.one_step else e.direct for e in (found, graph.truth))
    return {
        **asdict(_against_truth(graph, found)),
        "ceiling": ceiling(graph),
        "total_effects": _matrix(found.total),
        "direct_effects": _matrix(direct),
        "true_direct_effects": _matrix(true),
        "true_total_effects": _matrix(graph.truth.total),
        "graph": graph.trials.graph.tolist(),
    }


def ceiling(graph: GraphTrials) -> Score:
    """Returns the scores of the true world in the model's place, on the same trials."""
    return asdict(_against_truth(graph, graph.truth))


def _against_truth(graph: GraphTrials, found: Effects) -> RecoveryScores:
    return score_effects(
        graph.trials.graph, truth=graph.truth, found=found, one_step=graph.one_step
    )


KINDS: Mapping[str, Callable[[WorldModel, Materials, int], Score]] = {
    "planning": planning,
    "ranking": ranking,
    "recovery": recovery,
    "search": search,
    "zero_shot": partial(ranking, split="zero-shot"),
}
"""Every kind of score, by name."""


def baselines(materials: Materials, seed: int) -> dict[str, Score]:
    """Returns planning scores of the policies that learn nothing."""
    names = BASELINE_NAMES[materials.world.partition("/")[0]]
    policies = {printed: partial(BASELINES[name], seed) for printed, name in names.items()}
    found = _by_horizon(policies, materials, seed)
    return {name: {steps: by[name] for steps, by in found.items()} for name in names}


def _by_horizon(
    policies: Mapping[str, Callable[[], Any]], materials: Materials, seed: int
) -> Score:
    """Returns each policy's planning score at each horizon."""
    world, episodes = _episodes(materials, seed), materials.budget.episodes
    out: Score = {str(horizon): {} for horizon in HORIZONS}
    for name, make in policies.items():
        for horizon in HORIZONS:
            found = plan(make(), world, horizon=horizon, episodes=episodes)
            out[str(horizon)][name] = _planned(found)
    return out


def _reward(model: WorldModel, materials: Materials, seed: int) -> RewardPredictor:
    how = _how(materials, materials.budget.reward_epochs)
    return fit_reward(model, how, *materials.rewards, seed=seed)


def _planned(score: PlanningScore) -> Score:
    return {"reward": score.reward, "success": score.success, "reward_error": score.reward_error}


def _episodes(materials: Materials, seed: int) -> GridPlanning:
    return GridPlanning(materials.world, seed=_EPISODES_APART * seed, **materials.options)


def _how(materials: Materials, epochs: int) -> Fit:
    return Fit(epochs=epochs, batch_size=materials.budget.batch_size, device=materials.device)


def _matrix(values: np.ndarray) -> list[list[float]]:
    return np.round(values, 4).tolist()
