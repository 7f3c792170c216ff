"""Made-up results with known causes, for tests of tables, plots and the page; reading tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from interverse.results import Results
from interverse.results.text import TextTable

TASK = "trifinger/pushing-v1"
PROTOCOLS: dict[str, dict[str, str]] = {
    "P0": {},
    "P1": {"block_0/mass": "A"},
    "P2": {"block_0/mass": "B"},
    "P3": {"block_0/size": "A"},
    "P10": {"block_0/mass": "A", "block_0/size": "A"},
}
VARIABLES: dict[str, dict[str, Any]] = {
    "block_0/mass": {"unit": "kg", "space_a": [0.015, 0.045], "space_b": [0.045, 0.1]},
    "block_0/size": {
        "unit": "m",
        "space_a": [[0.055] * 3, [0.075] * 3],
        "space_b": [[0.075] * 3, [0.095] * 3],
    },
}
PROVENANCE = {
    "command": "interverse evaluate --task trifinger/pushing-v1 --episodes 20",
    "versions": {"interverse": "0.1.0", "mujoco": "4.0.0"},
    "protocols": {name: {"variables": spaces} for name, spaces in PROTOCOLS.items()},
    "variables": VARIABLES,
}


def rows(
    skill: float = 0.9,
    *,
    episodes: int = 20,
    seeds: Sequence[int] = (0,),
    refuse: Sequence[int] = (3,),
    **same: Any,
) -> list[dict[str, Any]]:
    """Returns rows whose score falls by 3 per kilogram; P2 refuses the episodes named."""
    made = []
    for seed in seeds:
        for number, (protocol, spaces) in enumerate(PROTOCOLS.items()):
            for episode in range(episodes):
                rng = np.random.default_rng([seed, number, episode])
                row = {"task": TASK, "protocol": protocol, "seed": seed, "episode": episode}
                for name, space in spaces.items():
                    low, high = VARIABLES[name][f"space_{space.lower()}"]
                    row[f"value:{name}"] = np.asarray(rng.uniform(low, high)).tolist()
                if protocol == "P2" and episode in refuse:
                    reason = "block_0 would touch finger_1"
                    made.append(row | {"refused": True, "reason": reason} | same)
                    continue
                loss = 3 * float(row.get("value:block_0/mass", 0.02))
                score = float(np.clip(skill - loss + rng.normal(0, 0.1), 0, 1))
                scores = {"last_fractional_success": score, "return": 250 * score}
                made.append(row | {"length": 251, "refused": False} | scores | same)
    return made


def results(skill: float = 0.9, **options: Any) -> Results:
    """Returns results with full provenance."""
    return Results.from_rows(rows(skill, **options), PROVENANCE)


def row(**given: Any) -> dict[str, Any]:
    """Returns the row of one episode."""
    return {"task": "t/x-v1", "protocol": "P0", "seed": 0, "episode": 0, **given}


def read_csv(table: TextTable) -> list[dict[str, str]]:
    """Returns the rows of a table as its CSV file has them."""
    return list(csv.DictReader(io.StringIO(table.render("csv"))))


def ends(row: dict[str, str], name: str) -> tuple[float, float]:
    """Returns the ends of an interval in such a row."""
    return float(row[f"{name}_low"]), float(row[f"{name}_high"])


def width(row: dict[str, str], name: str) -> float:
    """Returns how wide it is."""
    low, high = ends(row, name)
    return high - low
