"""Scores of CausalWorld runs, and the paper's question: which curriculum generalises where.

Runs are those just made and those kept in files. Scores of untrained and of released policies come
with the package.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from interverse.benchmarks.comparison import LEVEL, reach, welch
from interverse.core.errors import FileFormatError
from interverse.core.files.json_text import read_json_object
from interverse.metrics.comparison import holm
from interverse.reports.sections import Grid, grouped, markdown
from interverse.results.published import published

Record = Mapping[str, Any]
SCORE = "last_fractional_success"
RELEASED_EPISODES = 20
ONE_START = "P0"  # nothing is drawn: all of a run's episodes are one, but for rounding
_SAME = 0.005  # runs nearer to each other than this print alike, and say nothing of their spread
_FEWEST = 3  # episodes that an interval is made of
_MOST = 1.0  # scores are shares, so no mean and no difference is further off than this
_NEEDED = {"task", "curriculum", "seed", "curve"}
_HERE = Path(__file__).parent


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
# By two curricula, the lower one first: in what runs differ beside the curriculum.
Unlike = Mapping[tuple[int, int], str]


def half_width(mean: Mean) -> float:
    """Returns half the width of the 95% interval of a mean, by Student's t; NaN where none is."""
    return float(np.clip(reach(mean.error, max(mean.freedom, 1.0)), mean.least, _MOST))


def sampled(value: float, error: float, episodes: int) -> Mean:
    """Returns the mean of one run over drawn episodes.

    Where all of n are alike, so are not all there could be: a kind of episode of the share
    1 - .025^(1/n) is missed by n of them once in forty. No interval is narrower than that, nor is
    that of a difference from another mean.
    """
    if episodes < _FEWEST:
        return Mean(value, np.nan, episodes, 0.0)
    unseen = 1.0 - (LEVEL / 2) ** (1 / episodes)
    least = unseen / reach(1.0, episodes - 1)
    return Mean(value, max(error, least), episodes, episodes - 1.0, least=unseen)


def joined(means: Sequence[Mean], scores: NDArray[np.float64] | None = None) -> Mean:
    """Returns the mean of all episodes of several runs.

    Its error is that of the episodes, or that of the runs' own means where its interval is wider.
    With `scores` (runs, episodes) all runs were tested on the same episodes, and the error is that
    of the episodes' means over runs.
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


def baseline_means(task: str) -> dict[str, dict[str, Mean]]:
    """Returns what policies that nobody trained score in a task, by policy and protocol.

    `tools/causalworld_baselines.py` played them on the CPU engine with convex contacts, seed 0, at
    commit 45a307d6.
    """
    found: dict[str, dict[str, Mean]] = {}
    for one in published(_HERE / "baselines.csv"):
        if one["task"] == task:
            mean = kept_mean(one["protocol"], one.value, float(one["error"]), int(one["episodes"]))
            found.setdefault(one["policy"], {})[one["protocol"]] = mean
    return found


def released_scores() -> dict[tuple[str, int], dict[str, float]]:
    """Returns the scores of the original's released policies, by task and curriculum.

    They were measured with the original's own code, `RELEASED_EPISODES` a protocol, seed 0; the
    paper prints bars without numbers.
    """
    out: dict[tuple[str, int], dict[str, float]] = {}
    for one in published(_HERE / "published.csv", "released"):
        key = one["task"], int(one["curriculum"])
        out.setdefault(key, {})[one["protocol"]] = one.value
    return out


def stored_records(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Returns the runs of result files, such as results/causalworld/h200.json, by task.

    Runs that kept the scores of their episodes have rows; all were tested on the draws of seed 0,
    by the code of their commit: a run with other draws says so in `older`.
    One with a `variant`, another learner or another way to learn, is a row of its own in tables.
    """
    found = []
    for file in files:
        runs = read_json_object(file).get("runs")
        if not isinstance(runs, list) or not all(
            isinstance(run, dict) and run.keys() >= _NEEDED for run in runs
        ):
            raise FileFormatError(
                f"{file} is no result file of CausalWorld runs",
                allowed=f"an object with runs, each with {', '.join(sorted(_NEEDED))}",
                fix="Give a file such as results/causalworld/h200.json",
            )
        for run in runs:
            task = run["task"].removeprefix("trifinger/").removesuffix("-v1")
            rows = [
                {"protocol": protocol, "episode": number, "refused": False, SCORE: score}
                for protocol, scores in run.get("scores", {}).items()
                for number, score in enumerate(scores)
            ]
            found.append({**run, "task": task, "rows": rows})
    return sorted(found, key=lambda run: (run["task"], run["curriculum"], run["seed"]))


def by_curriculum(records: Sequence[Record]) -> dict[int, dict[str, Mean]]:
    """Returns the mean scores of the runs of each curriculum, by protocol; no variants."""
    runs = grouped([record for record in records if "variant" not in record], "curriculum")
    return {number: scores_by_protocol(runs[number]) for number in sorted(runs)}


def scores_by_protocol(records: Sequence[Record]) -> dict[str, Mean]:
    """Returns the mean last fractional success of all episodes of all runs, by protocol."""
    parts: dict[str, list[Mean]] = {}
    played: dict[str, list[Mapping[int, float]]] = {}
    for record in records:
        scores = _episodes(record)
        for protocol, mean in run_means(record).items():
            parts.setdefault(protocol, []).append(mean)
            played.setdefault(protocol, []).append(scores.get(protocol, {}))
    found = {}
    for protocol, means in parts.items():
        runs = played[protocol]
        common = sorted(set(runs[0]).intersection(*runs[1:]))
        few = len(common) < 0.9 * max(map(len, runs)) or len(common) < 2
        shared = np.array([[run[k] for k in common] for run in runs])
        found[protocol] = joined(means, None if protocol == ONE_START or few else shared)
    return found


def _episodes(record: Record) -> dict[str, dict[int, float]]:
    """Returns the scores of a run's episodes by protocol and number, where they are kept."""
    scores: dict[str, dict[int, float]] = {}
    for row in (row for row in record["rows"] if not row["refused"]):
        scores.setdefault(row["protocol"], {})[row["episode"]] = row[SCORE]
    return scores


def run_means(record: Record) -> dict[str, Mean]:
    """Returns a run's means: of its rows, or those that its file keeps instead."""
    scores = {name: list(found.values()) for name, found in _episodes(record).items()}
    if scores:
        return {
            name: _mean(name, float(np.mean(values)), spread, len(values))
            for name, values in scores.items()
            for spread in [float(np.std(values, ddof=1)) if len(values) > 1 else 0.0]
        }
    return {
        name: kept_mean(name, kept[SCORE], kept.get(f"{SCORE}_error"), kept["episodes"])
        for name, kept in record.get("protocols", {}).items()
    }


def cpu_means(record: Record) -> dict[str, Mean]:
    """Returns what a run's policy scored on the CPU engine, by protocol."""
    played = record["cpu_engine"]
    errors, counts = played.get("standard_error", {}), played["episodes"]
    return {
        name: kept_mean(
            name, value, errors.get(name), counts if isinstance(counts, int) else counts[name]
        )
        for name, value in played[SCORE].items()
    }


def kept_mean(protocol: str, value: float, error: float | None, episodes: int) -> Mean:
    """Returns a mean that a file keeps; without an error it has the most that shares can have."""
    most = (value * (1 - value)) ** 0.5
    spread = most if error is None else error * episodes**0.5
    return _mean(protocol, value, spread, episodes)


def moved_mean(record: Record) -> Mean:
    """Returns what a run's policy scored on the CPU engine with the block of P0 moved a little."""
    moved = record["cpu_engine"]["moved"]
    return sampled(moved[SCORE], moved["standard_error"], moved["episodes"])


def _mean(protocol: str, value: float, spread: float, episodes: int) -> Mean:
    if protocol == ONE_START:  # paths from a single start are one episode
        return Mean(value, np.nan, 1, 0.0)
    return sampled(value, spread / episodes**0.5, episodes)


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


def gain(before: Mean, after: Mean) -> tuple[float, float, float]:
    """Returns a difference of means, half of its 95% interval and its p-value, by Welch.

    The interval is no narrower than the least ones of both means together, and the p-value goes
    with it.
    """
    gap = after.value - before.value
    squares = [(mean.error**2, max(mean.freedom, 1.0)) for mean in (before, after)]
    if not sum(square for square, _ in squares) > 0:  # NaN: no interval
        return gap, np.nan, np.nan
    return gap, *welch(gap, *squares, least=float(np.hypot(before.least, after.least)))


def differences(scores: Scores) -> dict[tuple[int, int, str], Difference]:
    """Returns what every curriculum has more than every lower one, by protocol."""
    keys = [
        (one, other, protocol)
        for one, other in itertools.combinations(sorted(scores), 2)
        for protocol in scores[other]
        if protocol in scores[one]
    ]
    found = [gain(scores[one][p], scores[other][p]) for one, other, p in keys]
    told = holm([p for *_, p in found]) < LEVEL  # NaN is not below
    return {
        key: Difference(gap, half, bool(apart))
        for key, (gap, half, _), apart in zip(keys, found, told, strict=True)
    }


def verdicts(scores: Scores, unlike: Unlike) -> list[str]:
    """Returns what each wider curriculum of a task gains and loses by protocol."""
    lines, found = [], differences(scores)
    for pair in itertools.pairwise(sorted(scores)):
        single = [str(number) for number in pair if _runs(scores[number]) < 2]
        notes = [f"one run under {' and '.join(single)}, so no stars"] if single else []
        notes += [f"unlike runs: {unlike[pair]}"] if unlike.get(pair) else []
        told = []
        for (*curricula, protocol), (gap, half, apart) in found.items():
            if tuple(curricula) == pair:
                low, high = np.clip((gap - half, gap + half), -_MOST, _MOST)
                shown = "" if np.isnan(half) else f" [{low:+.2f}, {high:+.2f}]"
                star = r"\*" if apart and not single else ""
                told.append(f"{protocol} {gap:+.2f}{shown}{star}")
        note = f" ({'; '.join(notes)})" if notes else ""
        lines += [f"Curriculum {pair[1]} minus {pair[0]}{note}: {', '.join(told)}.", ""]
    return lines


def _runs(table: Mapping[str, Mean]) -> int:
    return max((mean.runs for mean in table.values()), default=0)


def answer(tasks: Mapping[str, Scores], unlike: Mapping[str, Unlike]) -> list[str]:
    """Returns the lines of a table: for every task and protocol, the curricula that do best."""
    several = {task: scores for task, scores in tasks.items() if len(scores) > 1}
    if not several:
        return []
    every = {name for scores in several.values() for table in scores.values() for name in table}
    names = sorted(every, key=lambda name: (len(name), name))
    grid: Grid = [["task", *names]]
    for task, scores in several.items():
        marks = " ‡" if min(map(_runs, scores.values())) < 2 else ""
        line = [task + marks + (" †" if any(unlike.get(task, {}).values()) else "")]
        apart = differences(scores)
        for protocol in names:  # those that no other one is told to be above
            found = {n: scores[n][protocol] for n in sorted(scores) if protocol in scores[n]}
            top = max(found, key=lambda n: found[n].value, default=0)
            near = [
                str(n)
                for n in found
                if n == top or not apart[min(n, top), max(n, top), protocol].told
            ]
            line.append(f"{', '.join(near)} ({found[top].value:.2f})" if near else "")
        grid.append(line)
    return [
        "## Which curriculum generalises to which protocol",
        "",
        "The curricula that do best, with the best one's score; several where they are not told "
        "apart from it. ‡: a curriculum has one run, so what is told apart are runs. †: "
        "some runs also differ in length, planned length, settings or learner, as their tables of "
        "runs say, so more than the curriculum is compared.",
        "",
        *markdown(grid).splitlines(),
        "",
    ]
