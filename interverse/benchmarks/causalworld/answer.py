"""The paper's question, answered from scores: which curriculum generalises to which protocol."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np
from scipy import stats


@final
class Mean(NamedTuple):
    """A mean of scores, its standard error, the episodes, and the error's degrees of freedom."""

    value: float
    error: float
    episodes: int
    freedom: float


Scores = Mapping[int, Mapping[str, Mean]]  # by curriculum and protocol
Unlike = Mapping[tuple[int, int], str]  # by two curricula, the lower one first


def half_width(mean: Mean) -> float:
    """Returns half the width of the 95% interval of a mean, by Student's t."""
    return _half(mean.error, mean.freedom)


def _half(error: float, freedom: float) -> float:
    return float(stats.t.ppf(0.975, max(freedom, 1.0)) * error) if error else 0.0


def joined(means: Sequence[Mean]) -> Mean:
    """Returns the mean of all episodes of several runs.

    Its error is that of the episodes, or that of the runs' own means where its interval is wider.
    """
    values, errors, counts, _ = (np.array(part, dtype=float) for part in zip(*means, strict=True))
    total = counts.sum()
    value, error = float((counts * values).sum() / total), ((counts * errors) ** 2).sum() ** 0.5
    found = [Mean(value, float(error / total), int(total), float(total - len(values)))]
    if len(values) > 1:
        error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
        found.append(Mean(value, error, int(total), len(values) - 1.0))
    return max(found, key=half_width)


def gain(before: Mean, after: Mean) -> tuple[float, float]:
    """Returns a difference of means and half the width of its 95% interval, by Welch."""
    squares = [(mean.error**2, max(mean.freedom, 1.0)) for mean in (before, after)]
    total = sum(square for square, _ in squares)
    freedom = total**2 / sum(square**2 / own for square, own in squares) if total else 1.0
    return after.value - before.value, _half(total**0.5, freedom)


def verdicts(scores: Scores, unlike: Unlike) -> list[str]:
    """Returns what each wider curriculum gains and loses by protocol; a star excludes 0.

    Args:
        scores: of one task.
        unlike: in what runs of two curricula differ beside the curriculum, if in anything.
    """
    lines = []
    for one, other in itertools.pairwise(sorted(scores)):
        before, after = scores[one], scores[other]
        told = [f"{p} {_interval(before[p], after[p])}" for p in after if p in before]
        differ = f" (unlike runs: {unlike[one, other]})" if unlike.get((one, other)) else ""
        lines += [f"Curriculum {other} minus {one}{differ}: {', '.join(told)}.", ""]
    return lines


def _interval(before: Mean, after: Mean) -> str:
    gap, half = gain(before, after)
    return f"{gap:+.2f} [{gap - half:+.2f}, {gap + half:+.2f}]" + (r"\*" if abs(gap) > half else "")


def answer(tasks: Mapping[str, Scores], unlike: Mapping[str, Unlike]) -> list[str]:
    """Returns the lines of a table: for every task and protocol, the curricula that do best.

    Several are named where the 95% interval of their difference to the best has 0 in it.

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
        "The curricula that do best, with the best one's score; several where the 95% interval of "
        "their difference has 0 in it. In tasks with a dagger some runs also differ in length or "
        "settings, as their tables of runs say: there more than the curriculum is compared.",
        "",
        "| task | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for task, scores in several.items():
        dagger = " †" if any(unlike.get(task, {}).values()) else ""
        lines.append(
            f"| {task}{dagger} | " + " | ".join(_best(scores, name) for name in names) + " |"
        )
    return [*lines, ""]


def _best(scores: Scores, protocol: str) -> str:
    """Returns the curricula that do best in a protocol, and the best score."""
    found = {number: table[protocol] for number, table in scores.items() if protocol in table}
    if not found:
        return ""
    top = max(found.values(), key=lambda mean: mean.value)
    near = [str(n) for n, mean in sorted(found.items()) if np.less_equal(*gain(mean, top))]
    return f"{', '.join(near)} ({top.value:.2f})"
