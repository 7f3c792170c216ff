"""Episodes that two experiments share, and the comparison of their scores.

Apart from the tables because the tests bring scipy.stats, which is slow to load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.metrics.comparison import Comparison, compare, compare_seeds
from interverse.results.units import is_one_policy

if TYPE_CHECKING:
    from interverse.results.results import Results

_KEY = ("task", "protocol", "seed", "episode")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedScores:
    """Scores of two experiments in the same episodes of one task and protocol."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    seeds: NDArray[np.int64]
    alike: NDArray[np.intp]  # equal for pairs of which both episodes repeat those of another
    trained: bool  # the seeds are, or may be, those of trainings: each has a policy of its own

    @property
    def by_seed(self) -> bool:
        """Returns whether seeds are compared, not episodes: there are several trainings."""
        return self.trained and np.unique(self.seeds).size > 1

    @property
    def unit(self) -> str:
        """Returns what is compared, for a table: "episode", or "seed (5)"."""
        return f"seed ({np.unique(self.seeds).size})" if self.by_seed else "episode"

    def compare(self, rng: np.random.Generator) -> Comparison:
        """Returns the comparison of seeds where there are several trainings, else of episodes."""
        first, second = self.first[:, None], self.second[:, None]
        if self.by_seed:
            return compare_seeds(first, second, self.seeds)
        return compare(first, second, rng=rng, alike=self.alike)


def shared(a: Results, b: Results, metric: str) -> dict[tuple[str, str], SharedScores]:
    """Returns (task, protocol) -> the scored episodes that two experiments share.

    Args:
        a: of one experiment, at its last training step.
        b: of another one.
        metric: which score.
    """
    ours, theirs = _rows(a), _rows(b)
    one, other, first, second = a.scores(metric), b.scores(metric), a.first_alike, b.first_alike
    found: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for key in sorted(ours.keys() & theirs.keys()):
        i, j = ours[key], theirs[key]
        if not np.isnan(one[i]) and not np.isnan(other[j]):
            found.setdefault(key[:2], []).append((one[i], other[j], key[2], (first[i], second[j])))
    out = {}
    for task, protocol in sorted(
        found, key=lambda at: (a.tasks.index(at[0]), a.protocols.index(at[1]))
    ):
        left, right, seeds, both = zip(*found[task, protocol], strict=True)
        number = {pair: i for i, pair in enumerate(both)}
        out[task, protocol] = SharedScores(
            first=np.array(left),
            second=np.array(right),
            seeds=np.array(seeds),
            alike=np.array([number[pair] for pair in both]),
            trained=not all(is_one_policy(side, side.experiments[0], task) for side in (a, b)),
        )
    return out


def keys(results: Results) -> set[tuple[Any, ...]]:
    """Returns the addresses of all episodes: task, protocol, seed, episode."""
    return set(_rows(results))


def _rows(results: Results) -> dict[tuple[Any, ...], int]:
    columns = (results.column(name) for name in _KEY)
    return {key: row for row, key in enumerate(zip(*columns, strict=True))}
