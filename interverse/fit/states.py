"""From a world's id to a model of its states, its scores and one page: `interverse fit ID`.

For worlds with continuous actions. A network is trained on random episodes in which the world's
constants (masses, frictions, colours) were drawn anew, and scored beside a linear model, the true
world and a copied fact: prediction, planning, effects of every constant, counterfactuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from interverse.core.files.tensor_files import read_safetensors, write_safetensors
from interverse.core.rng import region_seed
from interverse.core.type_checks import validated
from interverse.fit.settings import FitRequest, score_budget
from interverse.fit.work import Clock, Record, fit_seeds, other_code, run_stamp
from interverse.models.ranking import ranks_among
from interverse.models.states import (
    Answers,
    LinearStates,
    StateEpisodes,
    StateNetwork,
    StateTrials,
    collect_states,
    column_units,
    fit_state_network,
    play,
    random_actions,
    score_states,
    state_trials,
    state_worlds,
    variables_of,
)
from interverse.reports.sections import Section, write_summary
from interverse.scoring.shares import absent
from interverse.scoring.world_model import KINDS, score_world_model

Floats = NDArray[np.float64]
SIZES: Mapping[str, Mapping[str, int]] = {
    "smoke": {"episodes": 256, "steps": 20, "epochs": 30, "trials": 64},
    "reduced": {"episodes": 1000, "steps": 50, "epochs": 60, "trials": 200},
    "full": {"episodes": 5000, "steps": 100, "epochs": 100, "trials": 500},
}
_HORIZONS = (1, 5, 10)
_PLANNED, _PLANS = 5, 256  # steps of a plan, and how many are imagined
_MOVES = 0.05  # mean effect in deviations above which a constant counts as a cause


@final
@dataclass(frozen=True, kw_only=True)
@validated
class FitStates(FitRequest):
    """Fits a network to the states of a world with continuous actions, and scores it."""

    @property
    def folder(self) -> Path:
        """Where everything is kept."""
        return self.folder_named("network")

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes in force."""
        more = {} if self.epochs is None else {"epochs": self.epochs}
        return {**SIZES[self.budget], **more}


def fit_states(settings: FitStates) -> dict[str, Any]:
    """Returns all scores, after writing them and one page to `settings.folder`."""
    clock = Clock(settings.time_limit)
    work = _StateFitWork(settings, clock)
    return fit_seeds(
        settings,
        {"model": "network", "sizes": work.sizes},
        clock,
        work=work.run_all,
        page=lambda records: _write_page(settings.folder, records),
        first=lambda scores: scores.get("observed", {}),
    )


@final
class _StateFitWork:
    """One fit: data, training, scores; what is done is not done again."""

    def __init__(self, settings: FitStates, clock: Clock) -> None:
        self.settings, self.clock, self.sizes = settings, clock, settings.sizes

    def run_all(self, records: Mapping[int, Record]) -> None:
        """Does all that is not done yet."""
        kinds: Mapping[str, Callable[[StateEpisodes, StateNetwork, int], dict[str, Any]]] = {
            "prediction": self._prediction,
            "planning": self._planning,
            "causes": self._causes,
            "observed": self._observed,
        }
        for seed, record in records.items():
            if all(record.has("model", kind) for kind in kinds):
                continue
            record.made_by_run(run_stamp(self.settings.command(), "cpu"))
            path = self.settings.folder / "training" / f"seed-{seed}.safetensors"
            with self.clock.timed(f"seed {seed}: data and training"):
                data = self._collected(seed)
                if path.exists():
                    network = StateNetwork(data.states.shape[2], data.actions[0, 0].size)
                    network.load_state_dict(read_safetensors(path))
                    network.eval()
                else:
                    network, losses = fit_state_network(
                        data, epochs=self.sizes["epochs"], seed=seed
                    )
                    write_safetensors(path, network.state_dict())
                    record.note("losses", losses)
            for kind, score in kinds.items():
                self.clock.check()
                if not record.has("model", kind):
                    with self.clock.timed(f"seed {seed}: {kind}"):
                        record.put("model", kind, score(data, network, seed))

    def _collected(self, seed: int) -> StateEpisodes:
        return collect_states(
            self.settings.id,
            episodes=self.sizes["episodes"],
            steps=self.sizes["steps"],
            seed=seed,
            options=self.settings.options,
        )

    def _prediction(self, data: StateEpisodes, network: StateNetwork, seed: int) -> dict[str, Any]:
        """Returns error and H@1 by horizon, of the network and of standing still."""
        test = self._collected(seed + 10_000)
        shown, out = _shown(data), dict[str, Any]()
        for horizon in (h for h in _HORIZONS if h < test.states.shape[1]):
            rows = test.taken[:, horizon - 1]  # whose episode lasts so long
            if not rows.any():
                continue
            first, true = test.states[rows, 0], shown(test.states[rows, horizon])
            found = shown(network.rollout(first, test.actions[rows, :horizon]))
            start = shown(first)
            out[str(horizon)] = {
                "network": {"error": _apart(found, true), "hits": _hits(found, true)},
                "standing still": {"error": _apart(start, true), "hits": _hits(start, true)},
            }
        return out

    def _planning(self, data: StateEpisodes, network: StateNetwork, seed: int) -> dict[str, Any]:
        """Returns how far from a target, five random actions away, the best imagined plan ends."""
        options, shown = self.settings.options, _shown(data)
        env = state_worlds(self.settings.id, self.sizes["trials"], steps=_PLANNED, options=options)
        try:
            env.reset(seed=seed + 20_000)
            moment, see = env.snapshot(), variables_of(env, data.names)
            start = see(None)
            drawn = np.stack([random_actions(env, _PLANNED, seed + k) for k in range(_PLANS + 1)])
            plans = drawn.swapaxes(0, 2).swapaxes(1, 2)  # (worlds, plans, steps, A)

            def ends(chosen: NDArray[Any]) -> Floats:
                env.restore(moment)
                return shown(play(env, chosen.swapaxes(0, 1), see).last)

            target, own = ends(plans[:, 0]), plans[:, 1:]
            flat = own.reshape(-1, *own.shape[2:]).astype(np.float64)
            imagined = shown(network.rollout(np.repeat(start, _PLANS, axis=0), flat))
            near = np.linalg.norm(
                imagined.reshape(len(start), _PLANS, -1) - target[:, None], axis=2
            )
            best = own[np.arange(len(start)), near.argmin(1)]
            return {
                "network": _apart(ends(best), target),
                "random plan": _apart(ends(own[:, 0]), target),
                "standing still": _apart(shown(start), target),
                "the target's own actions": _apart(ends(plans[:, 0]), target),
            }
        finally:
            env.close()

    def _causes(self, data: StateEpisodes, network: StateNetwork, seed: int) -> dict[str, Any]:
        """Returns for every constant what it moves, by the world and the model, and CF scores."""
        out: dict[str, Any] = {}
        for name in data.constant:
            asked, facts = (
                state_trials(
                    self.settings.id,
                    name,
                    data.names,
                    worlds=self.sizes["trials"],
                    seed=seed + apart,
                    **self.settings.options,
                )
                for apart in (30_000, 40_000)
            )
            asked = replace(asked, tracked=data.moving)  # of a constant only its value is told
            every: dict[str, Answers] = {
                "true world": (asked.after, asked.truth),
                "network": network.answers(asked),
                "linear model": LinearStates(facts).answers(asked),
                "copy of the fact": (asked.after, asked.after),
            }
            out[name] = {
                who: {
                    **asdict(score_states(answers, asked)),
                    "moved": _moved(answers, asked, data.moving),
                }
                for who, answers in every.items()
            }
        return out

    def _observed(self, data: StateEpisodes, network: StateNetwork, seed: int) -> dict[str, Any]:
        """Returns the scores of `score_world_model`, of a network that sees observations alone."""
        sizes, options = self.sizes, self.settings.options
        env = state_worlds(
            self.settings.id, sizes["episodes"], steps=sizes["steps"], options=options
        )
        try:
            first, _ = env.reset(seed=region_seed("training", seed))
            if np.asarray(first).ndim != 2:
                return {kind: absent("the world shows pictures") for kind in KINDS}
            actions = random_actions(env, sizes["steps"], seed)
            played = play(env, actions, lambda o: np.array(o, dtype=np.float64), first)
        finally:
            env.close()
        episodes = StateEpisodes(
            moving=("observation",),
            constant=(),
            columns={"observation": slice(0, played.states.shape[2])},
            states=played.states,
            actions=actions.swapaxes(0, 1).astype(np.float64),
            lengths=played.lengths,
        )
        own, _ = fit_state_network(episodes, epochs=sizes["epochs"], seed=seed)
        return score_world_model(
            _Observed(own),
            self.settings.id,
            budget=score_budget(self.settings.budget),
            **options,
        ).to_dict()


@final
class _Observed(torch.nn.Module):
    """A network on observations as the two methods; latents are observations in deviations."""

    def __init__(self, network: StateNetwork) -> None:
        super().__init__()
        self.network = network

    def encode(self, observations: torch.Tensor) -> torch.Tensor:
        return (observations.double() - self.network.centre) / self.network.scale

    def rollout(self, latents: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        now, seen = latents * self.network.scale + self.network.centre, []
        for action in actions.flatten(2).unbind(1):
            now = self.network(now, action)
            seen.append((now - self.network.centre) / self.network.scale)
        return torch.stack(seen, dim=1)


def _shown(data: StateEpisodes) -> Callable[[Floats], Floats]:
    """Returns how states are compared: the moving columns, in deviations over the data."""
    units = column_units(data.lived)[: data.width]
    return lambda states: states[:, : data.width] / units


def _apart(found: Floats, true: Floats) -> float:
    return float(np.linalg.norm(found - true, axis=1).mean())


def _hits(found: Floats, true: Floats) -> float:
    own = torch.arange(len(true))
    ranks = ranks_among(torch.as_tensor(found), torch.as_tensor(true), own)
    return 100.0 * float((ranks == 1).double().mean())


def _moved(answers: Answers, trials: StateTrials, names: tuple[str, ...]) -> dict[str, bool]:
    """Returns which variables move on average by more than a little, by an answer."""
    effect = np.abs(answers[1] - answers[0]) / trials.units
    return {name: bool(effect[:, trials.columns[name]].mean() > _MOVES) for name in names}


def _write_page(folder: Path, records: list[dict[str, Any]]) -> None:
    first, run = records[0], records[0]["runs"][-1]
    made = (
        f"Seeds: {len(records)}; {first['sizes']['episodes']} episodes of"
        f" {first['sizes']['steps']} random actions. Made by: {run['command']}; commit"
        f" {run['commit'][:12]}."
    )
    kept = other_code({f"seed-{record['seed']}.json": record for record in records})
    scores = [record["scores"]["model"] for record in records]

    predicted = [["steps", "model", "error", "H@1"]]
    for horizon, by_model in scores[0]["prediction"].items():
        for name in by_model:
            by_seed = [one["prediction"] for one in scores]
            own = [one[horizon][name] for one in by_seed if horizon in one]
            predicted.append([horizon, name, *(_mean_of(own, key) for key in ("error", "hits"))])

    plans = [one["planning"] for one in scores]
    planned = [["plan", "distance"], *([name, _mean_of(plans, name)] for name in plans[0])]

    who = list(next(iter(scores[0]["causes"].values()), {}))
    causes = [["constant", "moves", *(f"F1, {name}" for name in who)]]
    for name, by_model in scores[0]["causes"].items():
        moved = [key for key, moves in by_model["true world"]["moved"].items() if moves]
        cells = []
        for one in scores:
            found = {w: one["causes"][name][w]["moved"] for w in who}
            cells.append({w: _f1(found["true world"], found[w]) for w in who})
        causes.append([name, ", ".join(moved) or "nothing", *(_mean_of(cells, w) for w in who)])

    counterfactual = [["model", "CF-H@1", "effect error"]]
    for name in who:
        own = [constant[name] for one in scores for constant in one["causes"].values()]
        ranked = [one for one in own if one["ranked"]]
        errors = [{"error": float(np.mean(list(one["effect_errors"].values())))} for one in own]
        counterfactual.append([name, _mean_of(ranked, "hits"), _mean_of(errors, "error")])

    prediction_told = (
        "Error: distance of predicted and true states after so many random actions, in deviations"
        " of each column. H@1: the share of episodes whose own prediction is the nearest to their"
        " true state. Standing still predicts the start."
    )
    planning_told = (
        f"Distance to a target that {_PLANNED} random actions lead to, after the best of {_PLANS}"
        " imagined plans; the target's own actions are the ceiling."
    )
    causes_told = (
        "F1 of the variables that a change of the constant moves within five steps, on average by"
        f" more than {_MOVES} deviations. The true world is the ceiling."
    )
    counterfactual_told = (
        "The same noise and actions, one constant altered: CF-H@1 ranks the true outcome among all"
        " outcomes; the effect error is averaged over the variables that actions move, in"
        " deviations. Means over constants."
    )
    sections: list[Section] = [
        ("Prediction", [made, *kept, prediction_told], predicted),
        ("Planning", [planning_told], planned),
        ("What each constant moves", [causes_told], causes),
        ("What would have happened", [counterfactual_told], counterfactual),
    ]
    write_summary(folder, f"Model of the states of {first['world']}", sections)


def _f1(true: Mapping[str, bool], found: Mapping[str, bool]) -> float:
    both = sum(true[name] and found[name] for name in true)
    every = sum(true.values()) + sum(found.values())
    return 2.0 * both / every if every else 1.0


def _mean_of(rows: list[dict[str, Any]], key: str) -> str:
    return f"{np.mean([row[key] for row in rows]):.3g}" if rows else ""
