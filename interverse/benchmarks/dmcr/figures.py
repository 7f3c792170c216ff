"""Figures 1 to 13, as the paper's captions have them; 1 and 8 to 13 need no training.

Contact sheets show states in many looks. Learning curves are of looks, agents and settings. Of
encoders the figures show how far their outputs spread over looks of one state, and where they are
active.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from interverse.agents.pixel.augment import augmentation
from interverse.benchmarks.dmcr.settings import (
    AUGMENTED,
    SHEETS,
    SWEPT,
    TASKS,
    TRAJECTORY,
    DmcrVariant,
    RemasteredSettings,
    look_parts,
    shown_variants,
    sweep_variants,
    swept_tasks,
)
from interverse.benchmarks.driver import Tables
from interverse.envs import make
from interverse.envs.remastered import LOOKS, task_id
from interverse.protocols.remastered import REMASTERED
from interverse.reports.episodes import Frames, side_by_side
from interverse.reports.plots import style
from interverse.rollouts.exported import PixelPolicy

Lines = dict[str, list[Sequence[Mapping[str, Any]]]]  # label -> the evaluations of its runs
_SWEPT = {5: "beta", 6: "lambda", 7: "augmentation"}
_MOST_LABELS = 12
_AT_ONCE = 64  # pictures: the first maps of more would fill the memory
START = 0  # the dynamics seed of the state that is shown; the paper does not say which it took
_EVERY = 10  # decisions between its moments
_SETTLING = {"ball_in_cup/catch": 10}  # decisions, until the string is taut
_SHEET = {"smoke": (3, 48), "reduced": (20, 84), "full": (20, 84)}  # looks, pixels
_LINES = (2, 3, 5, 6, 7)  # drawn as lines
# Figure 8: alterations, then augmentations; the large crop and the large shift, for visual effect.
_AUGMENTED = (
    *("color_jitter", "network_randomization", "grayscale", "gamma"),
    *("rad", "cutout_color", "large_drq", "large_translate", "rotate", "vertical_flip", "window"),
)
_DRAWS = 6
_FLOOR = next(p for p in REMASTERED if p.name == "floor")


def figures(settings: RemasteredSettings, _: Tables) -> Iterator[tuple[str, Any]]:
    """Yields every figure that was asked for, by its file; None has nothing to show."""
    makers: Mapping[int, Callable[[RemasteredSettings], Any]] = {
        2: look_curves,
        3: spread_figure,
        4: attention_figure,
        8: augmentation_sheet,
        9: trajectory_sheet,
        **{n: functools.partial(look_sheet, number=n) for n in SHEETS},
        **{n: functools.partial(sweep_curves, number=n) for n in SWEPT},
    }
    for number in sorted(set(settings.figures)):
        suffix = "svg" if number in _LINES else "png"
        yield f"figure-{number}.{suffix}", makers[number](settings)


def look_sheet(settings: RemasteredSettings, number: int) -> Any:
    """Returns Figure 1 or one of 10 to 13: one state of the captioned task in many looks."""
    count, size = _SHEET[settings.budget]
    count = min(count, 10) if number == 1 else count
    columns = min(5, count)
    task = SHEETS[number]
    pictures = one_state(task, count, size, settings.world_options)
    rows, picture = -(-count // columns), side_by_side(pictures, columns, gap=2)
    return _rows_of_pictures({task: picture}, 1.7 * rows)


def trajectory_sheet(settings: RemasteredSettings) -> Any:
    """Returns Figure 9: six moments of a trajectory of Hopper Hop, a row for each of four looks."""
    size = _SHEET[settings.budget][1]
    pictures = trajectory(4, 6, size, settings.world_options)
    return _rows_of_pictures({TRAJECTORY: side_by_side(pictures, 6, gap=2)}, 6.0)


def augmentation_sheet(settings: RemasteredSettings) -> Any:
    """Returns Figure 8: one picture under alterations and under augmentations, four draws each."""
    size = _SHEET[settings.budget][1]
    picture = one_state(AUGMENTED, 1, size, settings.world_options).transpose(0, 3, 1, 2)
    batch, rows = torch.as_tensor(picture).repeat(_DRAWS, 1, 1, 1), {}
    for name in _AUGMENTED:
        (seen,) = augmentation(name)(batch, generator=torch.Generator().manual_seed(0))
        whole = np.concatenate([picture, seen.clamp(0, 255).to(torch.uint8).numpy()])
        rows[name] = side_by_side(whole.transpose(0, 2, 3, 1), len(whole), gap=2)
    return _rows_of_pictures(rows, 0.75)


@style.styled
def _rows_of_pictures(shown: Mapping[str, Any], height: float) -> Any:
    figure = style.new_figure(height * len(shown))
    panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
    for panel, (name, picture) in zip(panels, shown.items(), strict=True):
        panel.imshow(picture, interpolation="nearest")
        panel.set_ylabel(name.replace("_", " "), rotation=0, ha="right", va="center")
        panel.spines[:].set_visible(False)
        style.bare(panel)
    return figure


@style.styled
def spread_figure(settings: RemasteredSettings) -> Any:
    """Returns Figure 3: the spread of each encoder output over floors, sorted, mean over runs."""
    first, spreads = _FLOOR.grid["visual_seed"][0], {}
    floors = range(first, first + settings.sizes().renderings)
    for variant in shown_variants(3, settings.sizes()):
        if policies := _policies(settings, variant):
            seen = (features(policy, _on_floors(policy, variant, floors)) for policy in policies)
            spreads[variant] = np.array([encoder_spread(one) for one in seen])  # (run, output)
    if not spreads:
        return None

    tasks = list(dict.fromkeys(variant.task for variant in spreads))
    figure = style.new_figure(3.4)
    panels = figure.subplots(1, len(tasks), squeeze=False)[0]
    for panel, task in zip(panels, tasks, strict=True):
        mine = {v.method: s for v, s in spreads.items() if v.task == task}
        for index, (method, found) in enumerate(mine.items()):
            look, mean = style.look(index), found.mean(axis=0)
            place = np.arange(1, len(mean) + 1)
            panel.plot(place, mean, look.line, color=look.color, label=method)
            if len(found) > 1:
                style.band(panel, place, found.min(0), found.max(0), look.color)
        panel.set_title(task)
        panel.set_xlabel("encoder output, in ascending order")
        panel.legend()
    panels[0].set_ylabel("standard deviation over floors")
    return figure


def _on_floors(policy: PixelPolicy, variant: DmcrVariant, looks: Sequence[int]) -> Frames:
    options = {**policy.card.trained["options"], **_FLOOR.options}
    return looks_of_a_state(TASKS[variant.task], looks, options)


@style.styled
def attention_figure(settings: RemasteredSettings) -> Any:
    """Returns Figure 4: a state in the look trained in and on another floor, with attention."""
    rows = []
    for variant in shown_variants(4, settings.sizes()):
        for policy in _policies(settings, variant)[:1]:
            pictures = _on_floors(policy, variant, (0, _FLOOR.grid["visual_seed"][0]))
            frames = newest_frame(pictures, policy.card.image_size)
            rows.append((variant, frames, attention_of(policy, pictures)))
    if not rows:
        return None

    figure = style.new_figure(2.4 * len(rows))
    panels = figure.subplots(len(rows), 4, squeeze=False)
    for line, (variant, frames, maps) in zip(panels, rows, strict=True):
        for k, told in enumerate(("look trained in", "another floor")):
            line[2 * k].imshow(frames[k])
            line[2 * k + 1].imshow(frames[k].mean(-1), cmap="gray", vmin=0, vmax=255)
            line[2 * k + 1].imshow(maps[k], cmap="inferno", alpha=0.65, vmin=0, vmax=1)
            line[2 * k].set_title(told)
            line[2 * k + 1].set_title("attention")
        line[0].set_ylabel(f"{variant.task}\n{variant.method}")
        for panel in line:
            style.bare(panel)
    return figure


def _policies(settings: RemasteredSettings, variant: DmcrVariant) -> list[PixelPolicy]:
    """Returns the policies of the runs that are trained to their end."""
    whole = [record["seed"] for record in settings.records(variant) if "evaluations" in record]
    return [PixelPolicy.load(settings.folder(variant, run) / "policy") for run in whole]


# ----------------------------------------------------------------------------- states in many looks


def one_state(task: str, count: int, size: int, options: Mapping[str, Any]) -> Frames:
    """Returns one state of a task such as "walker/walk" in `count` looks, the default one first."""
    with _begun(task, size, options) as env:
        for _ in range(_SETTLING.get(task, 0)):
            env.step(np.zeros(env.action_space.shape, np.float32))
        return _in_looks(env, count)


def trajectory(count: int, moments: int, size: int, options: Mapping[str, Any]) -> Frames:
    """Returns Figure 9's pictures, a row of `moments` for each of `count` looks."""
    with _begun(TRAJECTORY, size, options) as env:
        seen = [_in_looks(env, count)]
        for t in range((moments - 1) * _EVERY):
            env.step(np.sin(0.3 * t + np.arange(env.action_space.shape[0])).astype(np.float32))
            if (t + 1) % _EVERY == 0:
                seen.append(_in_looks(env, count))
        return np.stack(seen, axis=1).reshape(-1, *seen[0].shape[1:])


@contextmanager
def _begun(task: str, size: int, options: Mapping[str, Any]) -> Iterator[Any]:
    shape = {"image_size": size, "frame_stack": 1, "channels_first": False}
    env = make(task_id(task), **{**options, **shape})
    try:
        env.reset(seed=0, options={"do": {"dynamics_seed": START}})
        yield env
    finally:
        env.close()


def _in_looks(env: Any, count: int) -> Frames:
    looks = (0, *LOOKS["test"][: count - 1])
    return np.stack([env.do({"visual_seed": look}).observation for look in looks])


# ---------------------------------------------------------------------------------- learning curves


def look_curves(settings: RemasteredSettings) -> Any:
    """Returns Figure 2: a panel for each agent with a curve per look, then many looks of a task."""
    by_agent, many = look_parts(settings.sizes())
    places = [(f"{v.task}: {v.method}", f"look {v.visual_seed}", v) for v in by_agent]
    for v in many:
        told = "new looks" if v.visual_seed else "default look"
        places.append((v.task, f"{v.method}, {told}", v))
    panels: dict[str, Lines] = {}
    for panel, label, variant in places:
        if runs := _runs(settings, variant):
            panels.setdefault(panel, {}).setdefault(label, []).extend(runs)
    return drawn_curves(panels)


def sweep_curves(settings: RemasteredSettings, number: int) -> Any:
    """Returns Figure 5, 6 or 7: a panel for each task, a curve per value of the setting."""
    sizes = settings.sizes()
    panels: dict[str, Lines] = {}
    for task in swept_tasks(number, sizes):
        found = {
            f"{_SWEPT[number]} {value.replace('_', ' ')}": _runs(settings, variant)
            for value, variant in sweep_variants(number, sizes, task).items()
        }
        panels[task] = {label: runs for label, runs in found.items() if runs}
    panels = {task: lines for task, lines in panels.items() if len(lines) > 1}
    return drawn_curves(panels)


def _runs(settings: RemasteredSettings, variant: DmcrVariant) -> list[Any]:
    return [r["evaluations"] for r in settings.records(variant) if "evaluations" in r]


@style.styled
def drawn_curves(panels: Mapping[str, Lines]) -> Any:
    """Returns panels of mean curves, or None if there is none."""
    if not panels:
        return None

    figure, places = style.panels(len(panels), 3, 3.2, sharey=False)
    for place, (title, lines) in zip(places.flat, panels.items(), strict=False):
        for index, (label, runs) in enumerate(lines.items()):
            look = style.look(index)
            steps, means = mean_curve(runs)
            shown = {"color": look.color, "marker": look.marker, "label": label}
            place.plot(steps, means, look.line, markersize=3, **shown)
        place.set_title(title)
        place.set_xlabel("decisions")
        if len(lines) <= _MOST_LABELS:
            place.legend(fontsize=7)
    for row in places:
        row[0].set_ylabel("return in the look trained in")
    return figure


def mean_curve(runs: Iterable[Sequence[Mapping[str, Any]]]) -> tuple[list[int], Any]:
    """Returns the steps that all runs have, and the mean over runs at each.

    >>> long, short = [(5, 1.0), (9, 8.0)], [(5, 3.0)]
    >>> mean_curve([[{"step": s, "mean": m} for s, m in run] for run in (long, short)])
    ([5], array([2.]))
    """
    kept = list(runs)
    shortest = min(len(run) for run in kept)
    steps = [row["step"] for row in kept[0][:shortest]]
    return steps, np.mean([[row["mean"] for row in run[:shortest]] for run in kept], axis=0)


# ----------------------------------------------------------------------------------------- encoders


def looks_of_a_state(
    task: str, looks: Sequence[int], options: Mapping[str, Any], *, start: int = START
) -> Frames:
    """Returns one state in several looks, (look, *observation); the first state of an episode."""
    env = make(task, **options)
    try:
        seen = []
        for look in looks:
            given = {"visual_seed": look, "dynamics_seed": start}
            seen.append(env.reset(seed=0, options={"do": given})[0])
        return np.stack(seen)
    finally:
        env.close()


def encoder_spread(features: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Returns the standard deviation of every output over (look, output), in ascending order.

    >>> encoder_spread(np.array([[0.0, 5.0], [2.0, 5.0]])).tolist()
    [0.0, 1.0]
    """
    return np.sort(np.asarray(features, dtype=np.float64).std(axis=0))


def features(policy: PixelPolicy, pictures: Frames) -> NDArray[np.float32]:
    """Returns the encoder's outputs, (picture, output)."""
    with torch.no_grad():
        parts = torch.split(torch.as_tensor(pictures), _AT_ONCE)
        return torch.cat([policy.features(part) for part in parts]).numpy()


def attention(activations: Tensor, size: int) -> NDArray[np.float32]:
    """Returns attention maps (N, size, size) from 0 to 1 of activations (N, filters, h, w).

    The mean over filters of the absolute activation, enlarged bilinearly, each map divided by its
    greatest value. Layer, exponent and scale are not stated in the paper.
    """
    mean = activations.abs().mean(1, keepdim=True)
    large = functional.interpolate(mean, size=(size, size), mode="bilinear", align_corners=False)
    top = large.amax((2, 3), keepdim=True)
    return torch.where(top > 0, large / top, 0.0)[:, 0].numpy()


def attention_of(policy: PixelPolicy, pictures: Frames, layer: int = -1) -> NDArray[np.float32]:
    """Returns where a policy's encoder is active in each picture, (N, size, size)."""
    with torch.no_grad():
        return attention(policy.maps(torch.as_tensor(pictures))[layer], policy.card.image_size)


def newest_frame(pictures: Frames, size: int) -> Frames:
    """Returns the last frame of stacks (N, C, S, S), its middle, as (N, size, size, 3)."""
    start = (pictures.shape[-1] - size) // 2
    middle = pictures[:, -3:, start : start + size, start : start + size]
    return middle.transpose(0, 2, 3, 1)
