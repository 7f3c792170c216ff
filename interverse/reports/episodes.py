"""Contact sheets and short videos of the best, the median and the worst episode.

An episode is played again from its address: task, options, protocol, seed and number are in the
results, and the policy by its name, or given by the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from interverse.core.errors import InterverseError
from interverse.protocols.fingerprint import fingerprint, recorded_policy
from interverse.protocols.record import protocol_from
from interverse.protocols.unit import Unit, Watched, watch
from interverse.results import Highlight, Results, highlights
from interverse.rollouts.policy_card import PolicyLike
from interverse.worlds.own_code import check_trusted

_PICTURES, _COLUMNS = 6, 3  # of a contact sheet
_FPS = 15.0
_SAME = 5e-3  # a score that comes out so close is the one in the table, as printed


@final
@dataclass(frozen=True, slots=True)
class Film:
    """Pictures for the page (caption -> file), and a line for each episode without."""

    media: Mapping[str, Path]
    missing: tuple[str, ...]


def film(
    results: Results,
    folder: Path,
    *,
    metric: str,
    policies: Mapping[str, PolicyLike],
) -> Film:
    """Writes sheets and videos of the highlights into a folder; returns what came of it.

    What cannot be shown (a policy that the results do not hold, a machine that cannot draw) is
    named in a line and stops nothing.

    Args:
        results: of any number of experiments.
        folder: where the files go.
        metric: the score that says which episode is best.
        policies: experiment -> policy, for those that the results do not name.
    """
    missing: dict[str, None] = {}
    shots: dict[str, dict[str, Path]] = {"videos": {}, "sheets": {}}
    for item, policy, why in _cast(results, metric, policies):
        if why:
            missing[why] = None
            continue
        try:
            watched = _again(results, item, policy)
            name = f"{len(shots['videos']):02d}-{item.label}"
            where = f" {item.task}" if len(results.tasks) > 1 else ""
            caption = _caption(item, watched, metric) + where
            shots["videos"][caption] = _video(watched, folder / name)
            shots["sheets"][f"Contact sheet: {caption}"] = _sheet(watched, folder / name)
        except (InterverseError, ImportError, OSError, RuntimeError, ValueError) as error:
            missing[f"{item.experiment} on {item.task}: {_line(error)}"] = None
    return Film(shots["videos"] | shots["sheets"], tuple(missing))


def _cast(
    results: Results, metric: str, policies: Mapping[str, PolicyLike]
) -> Iterator[tuple[Highlight, PolicyLike, str]]:
    """Yields each highlight with the policy that played it, or why there is none."""
    for item in highlights(results, metric):
        run = _run(results, item)
        policy = policies.get(item.experiment, None if run is None else recorded_policy(run))
        where = f"{item.experiment} on {item.task}"
        if run is None:
            yield item, None, f"{where}: the results do not say how they were made."
        elif policy is None:
            # Results may name any file: only a policy's folder with the recorded hash is opened.
            told = f"--policy {item.experiment}=PATH or episodes={{...}}"
            yield (
                item,
                None,
                f"{where}: its policy is not where it was, or has changed; pass {told}.",
            )
        elif _is_other(policy, run):
            yield item, None, f"{where}: {policy} is another policy than the one scored."
        else:
            yield item, policy, ""


def _run(results: Results, item: Highlight) -> Mapping[str, Any] | None:
    runs = results.provenance.get("runs", [])
    found = [r for r in runs if (r["experiment"], r["task"]) == (item.experiment, item.task)]
    return found[-1] if found else None


def _is_other(policy: PolicyLike, run: Mapping[str, Any]) -> bool:
    known = run.get("policy")
    return known is not None and fingerprint(policy) not in (None, known)


def _again(results: Results, item: Highlight, policy: PolicyLike) -> Watched:
    described = results.provenance["protocols"][item.protocol]
    run = _run(results, item) or {}
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


def _sheet(watched: Watched, path: Path) -> Path:
    from interverse.reports.media import contact_sheet  # brings imageio

    sheet = path.with_suffix(".png")
    return contact_sheet(watched.frames, sheet, count=_PICTURES, columns=_COLUMNS)


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
