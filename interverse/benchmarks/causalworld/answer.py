"""The paper's question, answered from scores: which curriculum generalises to which protocol."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

Mean = tuple[float, float, int]  # of scores, its standard error, episodes
Scores = Mapping[int, Mapping[str, Mean]]  # by curriculum and protocol


def half_width(mean: Mean) -> float:
    """Returns half the width of the 95% interval of a mean."""
    return 1.96 * mean[1]


def joined(means: Sequence[Mean]) -> Mean:
    """Returns the mean of all episodes of several runs.

    Its error is that of the episodes, or that of the runs' own means where it is greater.
    """
    values, errors, counts = (np.array(part, dtype=float) for part in zip(*means, strict=True))
    total = counts.sum()
    error = float(np.sqrt(((counts * errors) ** 2).sum()) / total)
    if len(values) > 1:
        error = max(error, float(np.std(values, ddof=1) / np.sqrt(len(values))))
    return float((counts * values).sum() / total), error, int(total)


def gain(before: Mean, after: Mean) -> tuple[float, float]:
    """Returns a difference of means and half the width of its 95% interval."""
    return after[0] - before[0], float(np.hypot(half_width(before), half_width(after)))


def verdicts(scores: Scores) -> list[str]:
    """Returns what each wider curriculum gains and loses by protocol; a star excludes 0."""
    lines = []
    for one, other in itertools.pairwise(sorted(scores)):
        before, after = scores[one], scores[other]
        told = [f"{p} {_interval(before[p], after[p])}" for p in after if p in before]
        lines += [f"Curriculum {other} minus {one}: {', '.join(told)}.", ""]
    return lines


def _interval(before: Mean, after: Mean) -> str:
    gap, half = gain(before, after)
    return f"{gap:+.2f} [{gap - half:+.2f}, {gap + half:+.2f}]" + (r"\*" if abs(gap) > half else "")


def answer(tasks: Mapping[str, Scores]) -> list[str]:
    """Returns the lines of a table: for every task and protocol, the curricula that do best.

    Several are named where the 95% interval of their difference to the best has 0 in it.
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
        "their difference has 0 in it.",
        "",
        "| task | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for task, scores in several.items():
        lines.append(f"| {task} | " + " | ".join(_best(scores, name) for name in names) + " |")
    return [*lines, ""]


def _best(scores: Scores, protocol: str) -> str:
    """Returns the curricula that do best in a protocol, and the best score."""
    found = {number: table[protocol] for number, table in scores.items() if protocol in table}
    if not found:
        return ""
    top = max(found.values(), key=lambda mean: mean[0])
    near = [str(n) for n, mean in sorted(found.items()) if np.less_equal(*gain(mean, top))]
    return f"{', '.join(near)} ({top[0]:.2f})"
