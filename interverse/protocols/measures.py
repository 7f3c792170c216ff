"""Metrics of one's own: a function of an episode's steps becomes a column of the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_name
from interverse.metrics import METRICS, Better
from interverse.results.schema import SCORES

FRACTION = "fractional_success"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """One episode as a metric sees it, T actions long.

    Attributes:
        task, protocol, seed, episode: its address.
        rewards: (T,). actions: (T, ...).
        info: what the world told after each action, by name, (T, ...).
        observations: (T+1, ...) where they are flat or were asked for, else None.
        values: the variables that were asked for, (T+1, *shape); values[name][t] met action t.
    """

    task: str
    protocol: str
    seed: int
    episode: int
    rewards: NDArray[np.float64]
    actions: NDArray[Any]
    info: Mapping[str, NDArray[Any]]
    observations: Any = None
    values: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many actions were taken."""
        return len(self.rewards)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A function of an episode's steps, and what it must be shown.

    A plain function is taken as `Metric(name=function.__name__, function=function)`.
    """

    name: str
    function: Callable[[Steps], float]
    values: tuple[str, ...] = ()
    """Variables to record after every step, for `Steps.values`."""
    observations: bool = False
    """Whether to keep pictures and dicts, too; flat observations are always kept."""
    range: tuple[float, float] | None = None
    """The least and the greatest score there can be; intervals stay within."""
    better: Better = "more"
    """Whether more of it is better, or less: the sign of what a test loses."""

    def __post_init__(self) -> None:
        check_name("better", self.better, ("more", "less"))
        if self.range is not None and not self.range[0] < self.range[1]:
            raise InvalidValueError(
                f"metric {self.name}: range is {self.range}", allowed="low < high"
            )

    def __call__(self, steps: Steps) -> float:
        """Returns the score; NaN stands for none."""
        given = self.function(steps)
        try:
            found = None if isinstance(given, str) else np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            found = None
        if found is None or found.ndim:
            shown = repr(given)[:60] if found is None else f"an array of shape {found.shape}"
            raise InvalidValueError(
                f"metric {self.name} returned {shown}", allowed="one number per episode"
            )
        low, high = self.range or (-np.inf, np.inf)
        if found < low or found > high:  # NaN is none
            raise InvalidValueError(
                f"metric {self.name} returned {found:g}", allowed=f"{low:g} to {high:g}"
            )
        return float(found)


MetricLike = str | Metric | Callable[[Steps], float]


def select_metrics(given: Sequence[MetricLike]) -> tuple[Metric, ...]:
    """Returns the metrics meant by names, functions and `Metric`s, or raises.

    >>> [metric.name for metric in select_metrics(["time_to_success"])]
    ['time_to_success']
    """
    if isinstance(given, str) or callable(given):
        raise InvalidValueError(f"metrics is {given!r}", allowed="a list of metrics")
    chosen = []
    for item in given:
        if isinstance(item, str):
            METRICS[item]  # an unknown name gets a proper error
            if item not in SCORES:  # which are there already
                chosen.append(Metric(name=item, function=partial(_by_name, item)))
        elif isinstance(item, Metric):
            chosen.append(item)
        elif callable(item):
            name = getattr(item, "__name__", type(item).__name__)
            chosen.append(Metric(name=name, function=item))
        else:
            raise InvalidValueError(
                f"a metric cannot be a {type(item).__name__}",
                allowed="a name, a function of an episode's steps, a Metric",
            )
    names = [metric.name for metric in chosen]
    taken = [n for i, n in enumerate(names) if n in names[:i] or n in (*SCORES, "success")]
    if taken:
        raise InvalidValueError(
            f"a metric named {taken[0]!r} exists already", fix="Choose another name"
        )
    return tuple(chosen)


def is_registered(metric: Metric) -> bool:
    """Returns whether a metric is a row of `METRICS`: the package's code says what it does."""
    return isinstance(metric.function, partial) and metric.function.func is _by_name


def check_told(name: str, task: str, info: Mapping[str, Any]) -> None:
    """Raises if a row of `METRICS` is one of success, which the world's `info` does not hold."""
    by_success = not {"episode", "rewards"} & set(METRICS[name].tags)
    if by_success and not {FRACTION, "success"} & info.keys():
        raise InvalidValueError(
            f"{task} tells neither {FRACTION} nor success, so it has no {name}",
            fix="Leave this metric out, or use one of rewards, such as return",
        )


def _by_name(name: str, steps: Steps) -> float:
    """Returns the score of an episode by a row of `METRICS`."""
    check_told(name, steps.task, steps.info)
    function = METRICS.load(name)
    if "episode" in METRICS[name].tags:
        return float(function(steps))
    key = FRACTION if FRACTION in steps.info else "success"
    series = steps.rewards if "rewards" in METRICS[name].tags else steps.info[key]
    return float(function(np.asarray(series, dtype=np.float64)[None])[0])
