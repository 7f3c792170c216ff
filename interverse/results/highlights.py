"""Episodes to look at: the best, the median and the worst of each experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from interverse.results.results import Results


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Highlight:
    """One episode worth a picture; its address is enough to run it again."""

    label: str  # "best", "median" or "worst"
    experiment: str
    task: str
    protocol: str
    seed: int
    episode: int
    score: float

    @property
    def caption(self) -> str:
        """Returns the line that stands under its picture."""
        where = f"{self.protocol}, seed {self.seed}, episode {self.episode}"
        return f"{self.experiment}, {self.label}: {self.score:.2f} ({where})"


def highlights(results: Results, metric: str = "last_fractional_success") -> list[Highlight]:
    """Returns the best, median and worst scored episode of each experiment and task.

    Among equals the first in the table is taken, so the choice is the same every time.
    """
    last = results.final()
    scores = last.scores(metric)
    columns = {n: last.column(n) for n in ("experiment", "task", "protocol", "seed", "episode")}
    found = []
    for experiment in last.experiments:
        for task in last.tasks:
            here = (columns["experiment"] == experiment) & (columns["task"] == task)
            rows = np.flatnonzero(here & ~np.isnan(scores))
            order = rows[np.argsort(-scores[rows], kind="stable")]
            places = {"best": 0, "median": len(order) // 2, "worst": len(order) - 1}
            for label, place in places.items() if len(order) else ():
                row = order[place]
                found.append(
                    Highlight(
                        label=label,
                        experiment=experiment,
                        task=task,
                        protocol=str(columns["protocol"][row]),
                        seed=int(columns["seed"][row]),
                        episode=int(columns["episode"][row]),
                        score=float(scores[row]),
                    )
                )
    return found
