"""The printed numbers of Tables 1 to 3, from `dmcr.csv` beside this file."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import final

from interverse.core.errors import check_name

_FILE = Path(__file__).with_name("dmcr.csv")
TITLES = {
    1: "Table 1: what is lost in looks never seen",
    2: "Table 2: what is lost when one factor of the look varies",
    3: "Table 3: how long each task is trained",
}
TASKS: Mapping[str, str] = MappingProxyType(
    {
        "Ball in Cup Catch": "control/ball_in_cup_catch-v1",
        "Cartpole Balance": "control/cartpole_balance-v1",
        "Cheetah Run": "control/cheetah_run-v1",
        "Finger Spin": "control/finger_spin-v1",
        "Hopper Stand": "control/hopper_stand-v1",
        "Walker Walk": "control/walker_walk-v1",
    }
)
"""The paper's name of a task -> its id."""
METHODS: Mapping[str, str] = MappingProxyType(
    {
        "CURL": "curl",
        "SAC+AE": "sac_ae",
        "SAC+AUG": "sac_aug",
        "SAC+CJ+AUG": "sac_cj_aug",
        "SAC+NR+AUG": "sac_nr_aug",
    }
)
"""The paper's name of a method -> the agent's."""
AGENTS: Mapping[str, str] = MappingProxyType(
    {
        **METHODS,
        "DrQ": "drq",
        "DrQ-v2": "drq_v2",
        "RAD": "rad",
        "SAC": "sac_pixels",
        "SGQN": "sgqn",
        "SODA": "soda",
        "SVEA": "svea",
        "TD-MPC2": "tdmpc2",
    }
)
"""The same with agents that no table of the paper has; Figure 2 shows DrQ."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DmcrNumber:
    """One number; `condition` is train or test (Table 1), or the factor that varies (Table 2)."""

    task: str
    method: str
    condition: str
    metric: str
    value: float


@functools.cache
def printed(table: int) -> tuple[DmcrNumber, ...]:
    """Returns the printed numbers of a table but those that our text of the paper has damaged.

    >>> [row.value for row in printed(1) if (row.task, row.method) == ("Walker Walk", "SAC+AUG")]
    [919.3, 28.0, 97.0]
    """
    check_name("table", table, TITLES)
    with open(_FILE, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return tuple(
            DmcrNumber(
                task=row["task"],
                method=row["method"],
                condition=row["condition"],
                metric=row["metric"],
                value=float(row["value"]),
            )
            for row in rows
            if int(row["table"]) == table
        )


def rows(table: int) -> tuple[tuple[str, str], ...]:
    """Returns the (task, method) rows of Table 1 or 2, each once."""
    return tuple(dict.fromkeys((row.task, row.method) for row in printed(table)))


def all_rows(table: int) -> tuple[tuple[str, str], ...]:
    """Returns the rows of Table 1 or 2, and after them those of agents that the paper has not."""
    own = ((task, method) for task in TASKS for method in AGENTS if method not in METHODS)
    return (*rows(table), *own)
