"""Units of intervals: the episodes of one policy, or the seeds of several trainings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from interverse.core.errors import InvalidValueError, explain

if TYPE_CHECKING:
    from interverse.results.results import Results

Unit = Literal["episode", "seed"]
UNITS: tuple[Unit, ...] = ("episode", "seed")


def units(results: Results, asked: Unit | None = None) -> dict[tuple[str, str], Unit]:
    """Returns (experiment, task) -> what its intervals are over.

    Episodes of one training share its luck, so of several trainings the seeds are what was drawn.

    Args:
        results: of any number of experiments.
        asked: the unit of all; None finds out which have several trainings.
    """
    if asked is not None and asked not in UNITS:
        raise InvalidValueError(explain(f"unknown unit {asked!r}", allowed=", ".join(UNITS)))
    seeds: dict[tuple[str, str], set[int]] = {}
    columns = (results.column(name) for name in ("experiment", "task", "seed"))
    for experiment, task, seed in zip(*columns, strict=True):
        seeds.setdefault((experiment, task), set()).add(seed)
    return {
        key: asked or ("seed" if len(held) > 1 and not is_one_policy(results, *key) else "episode")
        for key, held in seeds.items()
    }


def is_one_policy(results: Results, experiment: str, task: str) -> bool:
    """Returns whether all seeds are known to be of one policy, as `evaluate` with `seeds` has them.

    Several policies, or those that nobody can tell apart, may be one training each.
    """
    runs = results.provenance.get("runs") or []
    mine = [r for r in runs if (r.get("experiment"), r.get("task")) == (experiment, task)]
    known = {run.get("policy") for run in mine}
    return len(known) == 1 and None not in known


def unit_words(found: Mapping[tuple[str, str], Unit], words: Mapping[Unit, str]) -> str:
    """Returns the words of the units that were found; where both were, with whose they are.

    >>> unit_words({("ppo", "t"): "seed"}, {"seed": "over seeds", "episode": "over episodes"})
    'over seeds'
    """
    names = {unit: dict.fromkeys(e for (e, _), u in found.items() if u == unit) for unit in UNITS}
    held = {unit: who for unit, who in names.items() if who} or {"episode": {}}
    if len(held) == 1:
        return words[next(iter(held))]
    return "; ".join(f"{', '.join(who)}: {words[unit]}" for unit, who in held.items())


def seeds_of(results: Results) -> list[Results]:
    """Returns the rows of each seed apart."""
    return [results.select(seed=int(seed)) for seed in np.unique(results.column("seed"))]
