"""Films of episodes for a report, and its policies with one group of variables moved at a time.

An episode is played again from its address: task, options, protocol, seed and number are in the
results, and the policy by its name, or given by the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from interverse.core.errors import InterverseError
from interverse.envs import make
from interverse.protocols.fingerprint import fingerprint, recorded_policy
from interverse.protocols.record import protocol_from
from interverse.protocols.unit import Unit, Watched, watch
from interverse.reports.attribute import attribute
from interverse.results import Highlight, Results, highlights
from interverse.rollouts.saved import PolicyLike
from interverse.worlds.own_code import check_trusted

if TYPE_CHECKING:
    from interverse.reports.attribution import Attribution

_FPS = 15.0
_SAME = 5e-3  # a score that comes out so close is the one in the table, as printed
_EPISODES, _MOST_EXPLAINED = 20, 3  # some 20 s a policy of TriFinger on one core
_PLAY_ERRORS = (InterverseError, ImportError, OSError, RuntimeError, ValueError)


@final
@dataclass(frozen=True, slots=True)
class Film:
    """Videos for the page (caption -> file), and a line for each episode without."""

    media: Mapping[str, Path]
    missing: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Explained:
    """What variables cost (policy and task -> attribution), and a line for each policy without."""

    attributions: Mapping[str, Attribution]
    missing: tuple[str, ...]


def film(
    results: Results,
    folder: Path,
    *,
    metric: str,
    policies: Mapping[str, PolicyLike],
) -> Film:
    """Writes videos of episodes worth seeing into a folder; returns what came of it.

    Policies of one task are shown on the same episode, the one in which their scores differ most;
    a policy alone in its best, median and worst episode. What cannot be shown (a policy that the
    results do not hold, a machine that cannot draw) is named in a line and stops nothing.

    Args:
        results: of any number of experiments.
        folder: where the files go.
        metric: the score that says which episode is best.
        policies: experiment -> policy, for those that the results do not name.
    """
    missing: dict[str, None] = {}
    videos: dict[str, Path] = {}
    for item in _worth_seeing(results, metric):
        policy, why = _player(results, item.experiment, item.task, policies)
        if why:
            missing[why] = None
            continue
        try:
            watched = _again(results, item, policy)
            where = f" {item.task}" if len(results.tasks) > 1 else ""
            caption = _caption(item, watched, metric) + where
            videos[caption] = _video(watched, folder / f"{len(videos):02d}")
        except _PLAY_ERRORS as error:
            missing[f"{item.experiment} on {item.task}: {_line(error)}"] = None
    return Film(videos, tuple(missing))


def _worth_seeing(results: Results, metric: str) -> Iterator[Highlight]:
    """Yields the episodes to film, each once."""
    last = results.final()
    every = highlights(results, metric)
    for task in last.tasks:
        part = last.select(task=task)
        scores = part.scores(metric)
        known: dict[tuple[str, int, int], dict[str, float]] = {}
        names = ("experiment", "protocol", "seed", "episode")
        for *row, score in zip(*map(part.column, names), scores, strict=True):
            experiment, protocol, seed, episode = row
            if not np.isnan(score):
                address = (str(protocol), int(seed), int(episode))
                known.setdefault(address, {})[str(experiment)] = float(score)
        # A later episode wins no tie: the choice is the same every time.
        shared = {a: s for a, s in known.items() if len(s) == len(part.experiments) > 1}
        if shared:
            spread = {a: max(s.values()) - min(s.values()) for a, s in shared.items()}
            address = max(spread, key=lambda a: spread[a])
            for experiment, score in shared[address].items():
                yield Highlight(
                    label="same episode",
                    experiment=experiment,
                    task=task,
                    protocol=address[0],
                    seed=address[1],
                    episode=address[2],
                    score=score,
                )
            continue
        seen: set[Highlight] = set()
        for item in every:
            if item.task == task and (alone := replace(item, label="")) not in seen:
                seen.add(alone)
                yield item


def explain_costs(
    results: Results, *, metric: str, policies: Mapping[str, PolicyLike]
) -> Explained:
    """Returns what each group of variables costs the policies of the results, moved alone.

    Policies that see pictures are left to `interverse explain`: they would take many minutes.
    """
    found: dict[str, Attribution] = {}
    missing: list[str] = []
    last = results.final()
    pairs = {(e, t) for e, t in zip(last.column("experiment"), last.column("task"), strict=True)}
    for experiment, task in sorted((str(e), str(t)) for e, t in pairs):
        policy, why = _player(results, experiment, task, policies)
        where = f"{experiment} on {task}" if len(last.tasks) > 1 else experiment
        command = f"interverse explain {experiment} --task {task}"
        if why:
            missing.append(why)
        elif len(found) == _MOST_EXPLAINED:
            missing.append(f"{where}: not played, for time's sake; {command} does.")
        else:
            options = (_run(results, experiment, task) or {}).get("options", {})
            try:
                check_trusted("the table of results", task, options)
                if _sees_pictures(task, options):
                    missing.append(f"{where}: sees pictures and takes minutes; {command} plays it.")
                    continue
                settings: Any = {"episodes": _EPISODES, "pairs": 0, "metric": metric, **options}
                one = attribute(policy, task, seed=int(last.column("seed")[0]), **settings)
            except _PLAY_ERRORS as error:
                missing.append(f"{where}: {_line(error)}")
                continue
            if one.shows_no_loss:
                missing.append(f"{where}: {one.verdict()}")
            else:
                found[where] = one
    return Explained(found, tuple(missing))


def _sees_pictures(task: str, options: Mapping[str, Any]) -> bool:
    env = make(task, **options)
    try:
        spaces = getattr(env.observation_space, "spaces", {"": env.observation_space})
        return any(len(space.shape or ()) > 1 for space in spaces.values())
    finally:
        env.close()


def _player(
    results: Results, experiment: str, task: str, policies: Mapping[str, PolicyLike]
) -> tuple[PolicyLike, str]:
    """Returns the policy that played, or why there is none."""
    run = _run(results, experiment, task)
    policy = policies.get(experiment, None if run is None else recorded_policy(run))
    where = f"{experiment} on {task}"
    if run is None:
        return None, f"{where}: the results do not say how they were made."
    if policy is None:
        # Results may name any file: only a policy's folder with the recorded hash is opened.
        told = f"--policy {experiment}=PATH or episodes={{...}}"
        return None, f"{where}: its policy is not where it was, or has changed; pass {told}."
    if _is_other(policy, run):
        return None, f"{where}: {policy} is another policy than the one scored."
    return policy, ""


def _run(results: Results, experiment: str, task: str) -> Mapping[str, Any] | None:
    runs = results.provenance.get("runs", [])
    found = [r for r in runs if (r["experiment"], r["task"]) == (experiment, task)]
    return found[-1] if found else None


def _is_other(policy: PolicyLike, run: Mapping[str, Any]) -> bool:
    known = run.get("policy")
    return known is not None and fingerprint(policy) not in (None, known)


def _again(results: Results, item: Highlight, policy: PolicyLike) -> Watched:
    described = results.provenance["protocols"][item.protocol]
    run = _run(results, item.experiment, item.task) or {}
    options = {**run["options"], **described.get("options", {})}
    check_trusted("the table of results", item.task, options)
    unit = Unit(
        task=item.task,
        options=run["options"],
        protocol=protocol_from(item.protocol, described),
        seed=item.seed,
        number=0,
        episodes=1,
    )
    return watch(unit, policy, episode=item.episode)


def _caption(item: Highlight, watched: Watched, metric: str) -> str:
    """Returns the video's caption; a score that came out otherwise this time is told."""
    now = watched.row.get(metric, watched.row.get(f"score:{metric}"))
    if now is None or abs(now - item.score) <= _SAME * max(1.0, abs(item.score)):
        return item.caption
    return f"{item.caption}; {now:.2f} in this replay"


def _video(watched: Watched, path: Path) -> Path:
    from interverse.reports.media import video  # brings imageio

    return video(watched.frames, path.with_suffix(".mp4"), fps=_FPS)


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
