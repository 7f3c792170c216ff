"""Films of episodes for a report, and its policies with one group of variables moved at a time.

An episode is played again from its address: task, options, protocol, seed and number are in the
results, and the policy by its name, or given by the caller.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InterverseError, InvalidValueError, explain, missing_extra
from interverse.core.files.atomic import make_folder
from interverse.envs import make
from interverse.protocols.fingerprint import fingerprint, recorded_policy
from interverse.protocols.protocol import protocol_from
from interverse.protocols.unit import Unit, watch
from interverse.reports.attribute import attribute
from interverse.results import Highlight, Results, highlights
from interverse.rollouts.saved import PolicyLike
from interverse.worlds.own_code import check_trusted

if TYPE_CHECKING:
    from interverse.reports.attribution import Attribution

Frames = NDArray[np.uint8]  # (frame, height, width, 3)
_GAP = 4  # pixels of white between the pictures of a sheet
_FPS = 15.0
_SAME = 5e-3  # a score that comes out so close is the one in the table, as printed
_EPISODES, _MOST_EXPLAINED = 20, 3  # some 20 s a policy of TriFinger on one core
_PLAY_ERRORS = (InterverseError, ImportError, OSError, RuntimeError, ValueError)


class Film(NamedTuple):
    """Videos for the page (caption -> file), and a line for each episode without."""

    media: Mapping[str, Path]
    missing: tuple[str, ...]


class Explained(NamedTuple):
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
            watched = watch(unit, policy, episode=item.episode)
            where = f" {item.task}" if len(results.tasks) > 1 else ""
            now = watched.row.get(metric, watched.row.get(f"score:{metric}"))
            other = now is not None and abs(now - item.score) > _SAME * max(1.0, abs(item.score))
            caption = item.caption + (f"; {now:.2f} in this replay" if other else "") + where
            file = folder / f"{len(videos):02d}.mp4"
            videos[caption] = video(watched.frames, file, fps=_FPS)
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
                yield Highlight("same episode", experiment, task, *address, score)
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
                env = make(task, **options)
                spaces = getattr(env.observation_space, "spaces", {"": env.observation_space})
                env.close()
                if any(len(space.shape or ()) > 1 for space in spaces.values()):
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
    if run.get("policy") is not None and fingerprint(policy) not in (None, run["policy"]):
        return None, f"{where}: {policy} is another policy than the one scored."
    return policy, ""


def _run(results: Results, experiment: str, task: str) -> Mapping[str, Any] | None:
    runs = results.provenance.get("runs", [])
    found = [r for r in runs if (r["experiment"], r["task"]) == (experiment, task)]
    return found[-1] if found else None


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# ----------------------------------------------------------------------------------------- pictures


def contact_sheet(frames: Frames, path: str | Path, *, count: int = 8, columns: int = 4) -> Path:
    """Writes evenly spaced frames, the first and the last among them, side by side as one picture.

    Args:
        frames: (frame, height, width, 3) uint8.
        path: of the picture, with a suffix such as .png.
        count: how many frames to show; all, if there are fewer.
        columns: how many stand in a row.
    """
    given = _checked(frames)
    if count < 1 or columns < 1:
        raise InvalidValueError(
            f"count is {count} and columns {columns}", allowed="whole numbers from 1"
        )
    chosen = given[np.unique(np.linspace(0, len(given) - 1, count).round().astype(int))]
    make_folder(Path(path).parent)
    _imageio().imwrite(path, side_by_side(chosen, min(columns, len(chosen))))
    return Path(path)


def side_by_side(pictures: Frames, columns: int, gap: int = _GAP) -> Frames:
    """Returns pictures (N, h, w, 3) side by side in rows, on white.

    >>> side_by_side(np.zeros((3, 4, 5, 3), np.uint8), columns=2, gap=1).shape
    (9, 11, 3)
    """
    count, height, width, _ = pictures.shape
    rows = -(-count // columns)
    shape = (rows * (height + gap) - gap, columns * (width + gap) - gap, 3)
    out = np.full(shape, 255, dtype=np.uint8)
    for i, picture in enumerate(pictures):
        top, left = (i // columns) * (height + gap), (i % columns) * (width + gap)
        out[top : top + height, left : left + width] = picture
    return out


def video(frames: Frames, path: str | Path, *, fps: float = 25.0) -> Path:
    """Writes frames as an MP4 that every browser plays.

    Sides are cut to even numbers of pixels, which the codec needs.
    """
    given = _checked(frames)
    if not fps > 0:
        raise InvalidValueError(explain(f"fps must be > 0, got {fps}"))
    target = Path(path)
    if target.suffix.lower() != ".mp4":
        raise InvalidValueError(f"the video is named {target.name!r}", allowed="*.mp4")
    height, width = (side - side % 2 for side in given.shape[1:3])
    make_folder(target.parent)
    options: Any = {"codec": "libx264", "macro_block_size": 2, "output_params": ["-crf", "23"]}
    _imageio().imwrite(target, given[:, :height, :width], fps=fps, plugin="FFMPEG", **options)
    return target


def _checked(frames: Frames) -> Frames:
    given = np.asarray(frames)
    if given.ndim != 4 or given.shape[-1] != 3 or given.dtype != np.uint8 or not len(given):
        raise InvalidValueError(
            f"frames have shape {given.shape} and dtype {given.dtype}",
            allowed="(frame, height, width, 3) uint8, at least one frame",
        )
    return given


def _imageio() -> Any:
    try:
        return importlib.import_module("imageio.v3")
    except ImportError as error:
        raise missing_extra("imageio", "report") from error
