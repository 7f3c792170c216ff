"""The printed numbers of Tables 3 to 18, read from `causalmbrl.csv` beside this file."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, final

from interverse.core.errors import check_name

Kind = Literal["ranking", "planning", "zero_shot"]
_FILE = Path(__file__).with_name("causalmbrl.csv")
_CHEMISTRY = ("chemistry/chain-v1", "chemistry/full-v1", "chemistry/collider-v1")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a table is about: the kind of score, in which worlds."""

    number: int
    kind: Kind
    worlds: tuple[str, ...]

    @property
    def title(self) -> str:
        """One line for headings."""
        told = {
            "ranking": "prediction",
            "planning": "planning",
            "zero_shot": "prediction, colours never seen",
        }
        return f"Table {self.number}: {told[self.kind]} in {', '.join(self.worlds)}"


def _table(number: int, kind: Kind, *worlds: str) -> tuple[int, Table]:
    return number, Table(number=number, kind=kind, worlds=worlds)


TABLES: Mapping[int, Table] = MappingProxyType(
    dict(
        [
            _table(3, "ranking", "blocks/observed-3-v1"),
            _table(4, "ranking", "blocks/observed-5-v1"),
            _table(5, "ranking", "blocks/unobserved-3-v1"),
            _table(6, "ranking", "blocks/unobserved-5-v1"),
            _table(7, "ranking", "blocks/fixed_unobserved-3-v1"),
            _table(8, "ranking", "blocks/fixed_unobserved-5-v1"),
            _table(9, "planning", "blocks/observed-3-v1"),
            _table(10, "planning", "blocks/observed-5-v1"),
            _table(11, "planning", "blocks/unobserved-3-v1"),
            _table(12, "planning", "blocks/unobserved-5-v1"),
            _table(13, "planning", "blocks/fixed_unobserved-3-v1"),
            _table(14, "planning", "blocks/fixed_unobserved-5-v1"),
            _table(15, "zero_shot", "blocks/observed-3-v1"),
            _table(16, "zero_shot", "blocks/observed-5-v1"),
            _table(17, "ranking", *_CHEMISTRY),
            _table(18, "planning", *_CHEMISTRY),
        ]
    )
)

FIGURES: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {21: ("blocks/observed-3-v1",), 22: ("blocks/observed-5-v1",), 27: _CHEMISTRY}
)
"""The scatter figures, and the worlds they show."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """One printed number.

    Attributes:
        table: its number.
        world: our id of its world.
        loss: NLL, NLL Finetuned, Contrastive or Baseline.
        model: as printed: AE, VAE, GNN, Modular, Random, Greedy, Optimal.
        steps: 1, 5 or 10.
        metric: H@1, MRR, Rec, Reward or Success.
        mean: the number.
        plus_minus: what stands behind it; None for baselines.
    """

    table: int
    world: str
    loss: str
    model: str
    steps: int
    metric: str
    mean: float
    plus_minus: float | None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over seeds that the printed +- stands for.

        In Tables 17 and 18 the +- must be variances, see `plus_minus_is`; this is their root.
        """
        if self.plus_minus is None or self.plus_minus_is == "deviation":
            return self.plus_minus
        return math.sqrt(self.plus_minus)

    @property
    def plus_minus_is(self) -> Literal["deviation", "variance"]:
        """What the printed +- is taken for.

        One +- of Table 17 exceeds the largest deviation its mean allows. In Table 18 a success of
        0.123 is printed +- 0.000, but 1000 episodes alone scatter it by 0.010. So both tables are
        taken to print variances; the paper does not say so.
        """
        return "variance" if self.table in (17, 18) else "deviation"


def table(number: int) -> Table:
    """Returns what a table is about."""
    check_name("table", number, TABLES)
    return TABLES[number]


@functools.cache
def printed(number: int) -> tuple[Printed, ...]:
    """Returns the numbers of a table.

    >>> [entry.mean for entry in printed(3) if entry.metric == "H@1"][:3]
    [97.23, 72.78, 40.46]
    """
    about = table(number)
    with _FILE.open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if int(row["table"]) == number]
    return tuple(
        Printed(
            table=number,
            world=f"chemistry/{row['graph']}-v1" if row["graph"] else about.worlds[0],
            loss=row["loss"],
            model=row["model"],
            steps=int(row["steps"]),
            metric=row["metric"],
            mean=float(row["mean"]),
            plus_minus=float(row["std"]) if row["std"] else None,
        )
        for row in rows
    )
