"""The paper's question, answered from scores: which curriculum generalises to which protocol."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from interverse.metrics.comparison import holm

ONE_START = "P0"  # nothing is drawn: all of a run's episodes are one, but for rounding
_LEVEL = 0.05
_SAME = 0.005  # runs nearer to each other than this print alike, and say nothing of their spread
_FEWEST = 3  # episodes that an interval is made of
_MOST = 1.0  # scores are shares, so no mean and no difference is further off than this


@final
class Mean(NamedTuple):
    """A mean of scores, its standard error (NaN: none can be told), episodes and runs.

    `freedom` are the degrees of freedom of the error; `least` is what half of the interval is never
    below.
    """

    value: float
    error: float
    episodes: int
    freedom: float
    runs: int = 1
    least: float = 0.0


@final
class Difference(NamedTuple):
    """What a curriculum has more than another: a mean, half of its 95% interval (NaN: none).

    `told`: whether it is told from 0 by Holm's rule over all differences of the task.
    """

    gap: float
    half: float
    told: bool


Scores = Mapping[int, Mapping[str, Mean]]  # by curriculum and protocol
Differences = Mapping[tuple[int, int, str], Difference]  # curricula, the lower first; protocol
Unlike = Mapping[tuple[int, int], str]  # by two curricula, the lower one first

HOW_TO_READ = (
    "Intervals are of 95%, each for itself (Student's t), over episodes, or over runs where these "
    "are wider. Of n episodes none is narrower than ± (1 - .025^(1/n)), 0.01 for 256: so common "
    "could a kind of episode be that was never met. Fewer than 3 have none, and none leaves the "
    "range of scores. Runs are tested on the same episodes, so scores are averaged over a "
    "curriculum's runs first, episode by episode; where a file keeps no scores of episodes, those "
    "of different runs count as independent. P0 is one start, so a run has one value there,"
    " and an interval stands only over runs that differ. Two curricula are told apart at 5% after "
    "Holm's rule over all protocols and pairs of curricula of the task. A star says so of "
    "curricula with two runs or more each; one run cannot tell a curriculum from a run, and its "
    "intervals are those of its episodes: another run may differ by more."
)


def half_width(mean: Mean) -> float:
    """Returns half the width of the 95% interval of a mean, by Student's t; NaN where none is."""
    return float(np.clip(_half(mean.error, mean.freedom), mean.least, _MOST))


def _half(error: float, freedom: float) -> float:
    return float(stats.t.ppf(1 - _LEVEL / 2, max(freedom, 1.0)) * error)


def sampled(value: float, error: float, episodes: int) -> Mean:
    """Returns the mean of one run over drawn episodes.

    Where all of n are alike, so are not all there could be: a kind of episode of the share
    1 - .025^(1/n) is missed by n of them once in forty. No interval is narrower than that, nor is
    that of a difference from another mean.
    """
    if episodes < _FEWEST:
        return Mean(value, np.nan, episodes, 0.0)
    unseen = 1.0 - (_LEVEL / 2) ** (1 / episodes)
    least = unseen / _half(1.0, episodes - 1)
    return Mean(value, max(error, least), episodes, episodes - 1.0, least=unseen)


def one_start(value: float) -> Mean:
    """Returns the mean of one run over paths from a single start, which are one episode."""
    return Mean(value, np.nan, 1, 0.0)


def joined(means: Sequence[Mean], scores: NDArray[np.float64] | None = None) -> Mean:
    """Returns the mean of all episodes of several runs.

    Its error is that of the episodes, or that of the runs' own means where its interval is wider.

    Args:
        means: of the runs.
        scores: of episodes that all runs were tested on, (runs, episodes): their error is that of
            the episodes' means over runs. Without them runs count as tested on episodes of their
            own.
    """
    values, errors, counts = (np.array(p, dtype=float) for p in list(zip(*means, strict=True))[:3])
    total, runs, least = counts.sum(), len(values), max(mean.least for mean in means)
    value, error = float((counts * values).sum() / total), ((counts * errors) ** 2).sum() ** 0.5
    whole = Mean(value, float(error / total), int(total), float(total - runs), runs, least)
    if scores is not None:
        episode, count = scores.mean(axis=0), scores.shape[1]
        drawn = sampled(value, float(episode.std(ddof=1) / count**0.5), count)
        whole = drawn._replace(episodes=int(total), runs=runs)
    found = [whole]
    if np.ptp(values) >= _SAME:
        error = float(np.std(values, ddof=1) / np.sqrt(runs))
        found.append(Mean(value, error, int(total), runs - 1.0, runs, least))
    return max(found, key=lambda mean: np.nan_to_num(half_width(mean)))


def gain(before: Mean, after: Mean) -> tuple[float, float, float]:
    """Returns a difference of means, half of its 95% interval and its p-value, by Welch.

    The interval is no narrower than the least ones of both means together, and the p-value goes
    with it.
    """
    gap = after.value - before.value
    squares = [(mean.error**2, max(mean.freedom, 1.0)) for mean in (before, after)]
    total = sum(square for square, _ in squares)
    if not total > 0:  # NaN: no interval
        return gap, np.nan, np.nan
    freedom = total**2 / sum(square**2 / own for square, own in squares)
    least = float(np.hypot(before.least, after.least)) / _half(1.0, freedom)
    error = max(total**0.5, least)
    return gap, _half(error, freedom), float(2 * stats.t.sf(abs(gap) / error, freedom))


def differences(scores: Scores) -> dict[tuple[int, int, str], Difference]:
    """Returns what every curriculum has more than every lower one, by protocol."""
    keys = [
        (one, other, protocol)
        for one, other in itertools.combinations(sorted(scores), 2)
        for protocol in scores[other]
        if protocol in scores[one]
    ]
    found = [gain(scores[one][p], scores[other][p]) for one, other, p in keys]
    told = holm([p_value for *_, p_value in found]) < _LEVEL  # NaN is not below
    return {
        key: Difference(gap, half, bool(apart))
        for key, (gap, half, _), apart in zip(keys, found, told, strict=True)
    }


def verdicts(scores: Scores, unlike: Unlike) -> list[str]:
    """Returns what each wider curriculum gains and loses by protocol.

    Args:
        scores: of one task.
        unlike: in what runs of two curricula differ beside the curriculum, if in anything.
    """
    lines, found = [], differences(scores)
    for pair in itertools.pairwise(sorted(scores)):
        single = [str(number) for number in pair if _runs(scores[number]) < 2]
        notes = [f"one run under {' and '.join(single)}, so no stars"] if single else []
        notes += [f"unlike runs: {unlike[pair]}"] if unlike.get(pair) else []
        told = [
            f"{key[2]} {_interval(difference, starred=not single)}"
            for key, difference in found.items()
            if key[:2] == pair
        ]
        note = f" ({'; '.join(notes)})" if notes else ""
        lines += [f"Curriculum {pair[1]} minus {pair[0]}{note}: {', '.join(told)}.", ""]
    return lines


def _runs(table: Mapping[str, Mean]) -> int:
    return max((mean.runs for mean in table.values()), default=0)


def _interval(difference: Difference, *, starred: bool) -> str:
    gap, half, told = difference
    low, high = np.clip((gap - half, gap + half), -_MOST, _MOST)
    shown = "" if np.isnan(half) else f" [{low:+.2f}, {high:+.2f}]"
    return f"{gap:+.2f}{shown}" + (r"\*" if told and starred else "")


def answer(tasks: Mapping[str, Scores], unlike: Mapping[str, Unlike]) -> list[str]:
    """Returns the lines of a table: for every task and protocol, the curricula that do best.

    Args:
        tasks: their scores.
        unlike: in what runs of a task's curricula differ beside the curriculum.
    """
    several = {task: scores for task, scores in tasks.items() if len(scores) > 1}
    if not several:
        return []
    found = {name for scores in several.values() for table in scores.values() for name in table}
    names = sorted(found, key=lambda name: (len(name), name))
    lines = [
        "## Which curriculum generalises to which protocol",
        "",
        "The curricula that do best, with the best one's score; several where they are not told "
        "apart from it. ‡: a curriculum has one run, so what is told apart are runs. †: "
        "some runs also differ in length, planned length, settings or learner, as their tables of "
        "runs say, so more than the curriculum is compared.",
        "",
        "| task | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for task, scores in several.items():
        marks = " ‡" if min(map(_runs, scores.values())) < 2 else ""
        marks += " †" if any(unlike.get(task, {}).values()) else ""
        apart = differences(scores)
        cells = " | ".join(_best(scores, apart, name) for name in names)
        lines.append(f"| {task}{marks} | {cells} |")
    return [*lines, ""]


def _best(scores: Scores, apart: Differences, protocol: str) -> str:
    """Returns the curricula that no other one is told to be above, and the best score."""
    found = {number: table[protocol] for number, table in scores.items() if protocol in table}
    if not found:
        return ""
    top = max(found, key=lambda number: found[number].value)
    near = [
        str(number)
        for number in sorted(found)
        if number == top or not apart[min(number, top), max(number, top), protocol].told
    ]
    return f"{', '.join(near)} ({found[top].value:.2f})"
