"""Costs of single variables to shipped policies: kept explanations as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interverse.reports.attribution import INTERVAL_METHOD, Attribution
from interverse.results.text import Cell, TextTable

_CAPTION = (
    "as it is: last fractional success from the task's own start (P0); then the percentage of it "
    "that is lost when one factor alone is drawn from the space that training never draws from, B "
    f"[{INTERVAL_METHOD}]"
)


def cost_table(explained: Sequence[Mapping[str, Any]]) -> TextTable:
    """Returns what each factor costs each policy, in percent of its score.

    Args:
        explained: what `Attribution.to_json` gives, with the `policy`.
    """
    found = [(held["policy"], Attribution.from_json(held)) for held in explained]
    factors = list(dict.fromkeys(name for _, one in found for name in one.factors))
    rows: list[tuple[Cell, ...]] = []
    for policy, one in found:
        base = one.scores[()]
        task = one.task.removeprefix("trifinger/").removesuffix("-v1")
        costs = [one.percent(name).shown(0) if name in one.factors else "" for name in factors]
        rows.append((task, policy, str(len(base)), f"{base.mean():.2f}", *costs))
    return TextTable(
        header=("task", "policy", "episodes", "as it is", *factors),
        rows=tuple(rows),
        caption=_CAPTION,
    )
