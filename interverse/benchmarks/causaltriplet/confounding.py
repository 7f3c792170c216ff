"""Confounding curves: models trained at one strength of the confounder, tested without it.

Sets of pairs that differ in nothing but the variable `confounding` are collected first. A model
trains on one of them, in some of the houses; in the other houses it is tested at its own strength
(ID) and at strength 0 (OOD), where object, lamp and distance no longer tell the action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from interverse.benchmarks.comparison import differences, judge, summary
from interverse.benchmarks.driver import row_file
from interverse.core.errors import InvalidValueError
from interverse.core.files.json_text import read_json_object
from interverse.core.rng import generator
from interverse.data.pairs import Split
from interverse.fit.work import Record, run_stamp
from interverse.models.pairs.config import PairFit, recipe
from interverse.models.pairs.fit import SETS, fingerprint
from interverse.models.pairs.stacked import HeadJob, fit_heads
from interverse.models.pairs.tensors import PairTensors
from interverse.models.pairs.yardsticks import constant_answer, object_only
from interverse.results.provenance import command

BASELINES = {"constant answer": constant_answer, "object only": object_only}
"""Answers without looking at the pictures."""
_VALID = 0.1  # of the pairs of training houses


def confounding_curve(
    sets: Mapping[float, PairTensors],
    out: Path,
    *,
    models: Sequence[str] = ("lite0", "lite0-icm", "lite0-sms"),
    seeds: int = 10,
    fit: PairFit | None = None,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Returns accuracy by model and strength, over seeds; rows on disk are not made again.

    Args:
        sets: pairs by the strength they were collected at, 0 among them, of the same houses.
        out: the folder; each model, strength and seed has a file under `rows`.
        models: recipes.
        seeds: 1 to N; they draw houses, weights and order.
        fit: how to train, if not as the recipe says.
        say: is told each row.
    """
    if 0 not in sets:
        raise InvalidValueError(
            f"sets have strengths {sorted(sets)}", allowed="0 among them, to test without"
        )
    how = fit or recipe(next(iter(models), "lite0")).fit
    for strength, pairs in sorted(sets.items()):
        both, jobs = joined(pairs, sets[0]), list[tuple[Record, HeadJob]]()
        for seed in range(1, seeds + 1):
            split = confounded_split(pairs, sets[0], seed)
            for model, answer in BASELINES.items():
                record = _record(out, model, strength, seed)
                sizes = {name: len(getattr(split, name)) for name in SETS}
                record.content |= {"sizes": sizes, "accuracy": answer(both, split)}
                record.write()
            for model in models:
                record = _record(out, model, strength, seed, how.device)
                if "accuracy" not in record.content:
                    job = HeadJob(config=recipe(model).model, split=split, seed=seed)
                    jobs.append((record, job))
        # All that is not on disk at once; accuracy is that of the epoch best on validation.
        runs = fit_heads([job for _, job in jobs], both, fit=how) if jobs else []
        for (record, _), run in zip(jobs, runs, strict=True):
            content = run.record()
            record.content |= {name: content[name] for name in ("sizes", "weights", "fit")}
            record.content |= {
                "data": fingerprint(both, run.sets),
                "accuracy": dict(run.selection["best_valid"]),
            }
            record.write()
        say(f"strength {strength:g}: {len(models)} models, {seeds} seeds")
    return curve(out)


def _record(out: Path, model: str, strength: float, seed: int, device: str = "cpu") -> Record:
    name = f"{model.replace(' ', '-')}.strength-{strength:g}"
    asked = {"model": model, "strength": float(strength), "seed": seed}
    record = Record(row_file(out, name, seed), asked)
    if "accuracy" not in record.content:
        record.made_by_run(run_stamp(command(), device))
    return record


def joined(pairs: PairTensors, plain: PairTensors) -> PairTensors:
    """Returns the pairs of two sets in one, for training; of factors and extras none are left."""
    if (pairs.verbs, pairs.nouns, pairs.size) != (plain.verbs, plain.nouns, plain.size):
        raise InvalidValueError(
            "the sets differ in actions, objects or size", fix="Collect them alike"
        )
    masks = None
    if pairs.masks is not None and plain.masks is not None:
        masks = torch.cat([pairs.masks, plain.masks])
    return replace(
        pairs,
        images=torch.cat([pairs.images, plain.images]),
        verb=torch.cat([pairs.verb, plain.verb]),
        noun=torch.cat([pairs.noun, plain.noun]),
        masks=masks,
        factors={},
        extra={},
    )


def confounded_split(
    pairs: PairTensors, plain: PairTensors, seed: int, test_houses: float = 0.25
) -> Split:
    """Returns the sets of a seed: no house of a test is trained in, at either strength.

    They are rows of the pairs at one strength, followed by those at strength 0.
    """
    own, other = pairs.extra["scenes"], plain.extra["scenes"]
    houses = np.unique(np.concatenate([own, other]))
    rng = generator(seed=seed, name="pairs/confounding")
    tested = rng.permutation(houses)[: max(1, round(test_houses * len(houses)))]
    seen = rng.permutation(np.flatnonzero(~np.isin(own, tested)))
    cut = max(1, round(_VALID * len(seen)))
    return Split(
        train=seen[cut:],
        valid=seen[:cut],
        test_id=np.flatnonzero(np.isin(own, tested)),
        test_ood=len(own) + np.flatnonzero(np.isin(other, tested)),
        valid_ood=np.empty(0, np.int64),
        held=(),
    )


def curve(out: Path) -> list[dict[str, Any]]:
    """Returns the curve of the rows in a folder: model, strength, and both accuracies by seed."""
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for path in sorted((out / "rows").glob("*.json")):
        row = read_json_object(path)
        groups.setdefault((row["model"], row["strength"]), []).append(row)
    return [
        {"model": model, "strength": strength, "sizes": rows[0]["sizes"]}
        | {
            name: summary({str(row["seed"]): row["accuracy"][name] for row in rows})
            for name in ("test_id", "test_ood")
        }
        for (model, strength), rows in sorted(groups.items())
    ]


def curve_claims(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Returns verdicts on a curve, one family: models fall with strength, regularisers do not."""
    held = {(r["model"], r["strength"]): r["test_ood"]["seeds"] for r in rows}
    models = [m for m in dict.fromkeys(r["model"] for r in rows) if m not in BASELINES]
    strengths = sorted({strength for _, strength in held})
    low, high = strengths[0], strengths[-1]
    asked = {
        f"{m}: OOD at strength {low:g} above that at {high:g}": ((m, low), (m, high))
        for m in models
    } | {
        f"{m} above {models[0]} out of distribution at strength {s:g}": ((m, s), (models[0], s))
        for m in models[1:]
        for s in strengths
    }
    family = [differences(held[one], held[two]) for one, two in asked.values()]
    return list(zip(asked, judge(family), strict=True))


def curve_figure(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Returns accuracy against strength with 95% t intervals, a line for each model and test."""
    from interverse.reports.plots import style

    @style.styled
    def drawn() -> Any:
        figure = style.new_figure(3.8)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, name, word in zip(panels, ("test_id", "test_ood"), ("ID", "OOD"), strict=True):
            for number, model in enumerate(dict.fromkeys(row["model"] for row in rows)):
                mine = sorted((r for r in rows if r["model"] == model), key=lambda r: r["strength"])
                look, place = style.look(number), [row["strength"] for row in mine]
                found = [row[name] for row in mine]
                means = [f["mean"] for f in found]
                axes.plot(place, means, color=look.color, marker=look.marker, label=model)
                if all(f["low"] is not None for f in found):
                    ends = [f["low"] for f in found], [f["high"] for f in found]
                    style.band(axes, place, *ends, look.color)
            axes.set_xlabel(f"strength of the confounder in training: {word}")
            axes.set_ylim(0, 1)
        panels[0].set_ylabel("accuracy")
        style.legend_above(figure, panels[0], 5)
        return figure

    return drawn()
