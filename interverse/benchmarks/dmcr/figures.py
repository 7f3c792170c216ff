"""Figures 1 to 13, as the paper's captions have them; 1 and 8 to 13 need no training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from interverse.agents.pixel.augment import augmentation
from interverse.benchmarks.dmcr.analysis import (
    attention_of,
    encoder_spread,
    features,
    looks_of_a_state,
    newest_frame,
)
from interverse.benchmarks.dmcr.compare import records
from interverse.benchmarks.dmcr.curves import look_curves, sweep_curves
from interverse.benchmarks.dmcr.published import TASKS
from interverse.benchmarks.dmcr.settings import RemasteredSettings
from interverse.benchmarks.dmcr.sheets import (
    AUGMENTED,
    SHEETS,
    TRAJECTORY,
    one_state,
    sheet,
    trajectory,
)
from interverse.benchmarks.dmcr.variants import SWEPT, DmcrVariant, shown_variants
from interverse.protocols.remastered import REMASTERED
from interverse.reports.sections import Say, plot_style
from interverse.rollouts.exported import PixelPolicy

_SHEET = {"smoke": (3, 48), "reduced": (20, 84), "full": (20, 84)}  # looks, pixels
_LINES = (2, 3, 5, 6, 7)  # drawn as lines
# Figure 8's two groups; it shows the large crop and the large shift, for visual effect.
_GROUPS = {
    "alterations": ("color_jitter", "network_randomization", "grayscale", "gamma"),
    "augmentations": (
        "rad",
        "cutout_color",
        "large_drq",
        "large_translate",
        "rotate",
        "vertical_flip",
        "window",
    ),
}
_DRAWS = 6
_FLOOR = next(p for p in REMASTERED if p.name == "floor")


def write_figures(settings: RemasteredSettings, say: Say) -> list[str]:
    """Writes every figure that was asked for and has something to show; returns their names."""
    style = plot_style(say)
    if style is None:
        return []
    names = []
    for number in sorted(set(settings.figures)):
        figure = _figure(settings, number)
        if figure is None:
            say(f"figure {number}: nothing to show yet")
            continue
        names.append(f"figure-{number}.{'svg' if number in _LINES else 'png'}")
        style.save(figure, settings.out / names[-1])
    return names


def _figure(settings: RemasteredSettings, number: int) -> Any:
    if number in SHEETS:
        return look_sheet(settings, number)
    if number in SWEPT:
        return sweep_curves(settings, number)
    makers: Mapping[int, Callable[[RemasteredSettings], Any]] = {
        2: look_curves,
        3: spread_figure,
        4: attention_figure,
        8: augmentation_sheet,
        9: trajectory_sheet,
    }
    return makers[number](settings)


def look_sheet(settings: RemasteredSettings, number: int) -> Any:
    """Returns Figure 1 or one of 10 to 13: one state of the captioned task in many looks."""
    count, size = _SHEET[settings.budget]
    count = min(count, 10) if number == 1 else count
    columns = min(5, count)
    task = SHEETS[number]
    pictures = one_state(task, count, size, settings.world_options)
    return _rows_of_pictures({task: sheet(pictures, columns)}, 1.7 * -(-count // columns))


def trajectory_sheet(settings: RemasteredSettings) -> Any:
    """Returns Figure 9: six moments of a trajectory of Hopper Hop, a row for each of four looks."""
    size = _SHEET[settings.budget][1]
    pictures = trajectory(4, 6, size, settings.world_options)
    return _rows_of_pictures({TRAJECTORY: sheet(pictures, 6)}, 6.0)


def augmentation_sheet(settings: RemasteredSettings) -> Any:
    """Returns Figure 8: one picture under alterations and under augmentations, four draws each."""
    size = _SHEET[settings.budget][1]
    picture = one_state(AUGMENTED, 1, size, settings.world_options).transpose(0, 3, 1, 2)
    rows = {name: _altered(name, picture) for group in _GROUPS.values() for name in group}
    return _rows_of_pictures({name: sheet(p, len(p)) for name, p in rows.items()}, 0.75)


def _altered(name: str, picture: Any) -> Any:
    batch = torch.as_tensor(picture).repeat(_DRAWS, 1, 1, 1)
    (seen,) = augmentation(name)(batch, generator=torch.Generator().manual_seed(0))
    whole = np.concatenate([picture, seen.clamp(0, 255).to(torch.uint8).numpy()])
    return whole.transpose(0, 2, 3, 1)


def _rows_of_pictures(shown: Mapping[str, Any], height: float) -> Any:
    from interverse.reports.plots import style

    @style.styled
    def drawn() -> Any:
        figure = style.new_figure(height * len(shown))
        panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
        for panel, (name, picture) in zip(panels, shown.items(), strict=True):
            panel.imshow(picture, interpolation="nearest")
            panel.set_ylabel(name.replace("_", " "), rotation=0, ha="right", va="center")
            panel.set_xticks([])
            panel.set_yticks([])
            panel.spines[:].set_visible(False)
            panel.grid(visible=False)
        return figure

    return drawn()


def spread_figure(settings: RemasteredSettings) -> Any:
    """Returns Figure 3: the spread of each encoder output over floors, sorted, mean over runs."""
    from interverse.reports.plots import style

    spreads = {v: s for v in shown_variants(3, settings.sizes()) if len(s := _spreads(settings, v))}
    if not spreads:
        return None

    @style.styled
    def drawn() -> Any:
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
                    panel.fill_between(
                        place, found.min(0), found.max(0), color=look.color, alpha=0.15, lw=0
                    )
            panel.set_title(task)
            panel.set_xlabel("encoder output, in ascending order")
            panel.legend()
        panels[0].set_ylabel("standard deviation over floors")
        return figure

    return drawn()


def _spreads(settings: RemasteredSettings, variant: DmcrVariant) -> Any:
    """Returns (run, output) the sorted spread over floors of one state."""
    floors = _FLOOR.grid["visual_seed"]
    count = settings.sizes().renderings
    chosen = range(floors[0], floors[0] + count)
    found = []
    for policy in _policies(settings, variant):
        options = {**policy.card.trained["options"], **_FLOOR.options}
        pictures = looks_of_a_state(TASKS[variant.task], chosen, options)
        found.append(encoder_spread(features(policy, pictures)))
    return np.array(found)


def attention_figure(settings: RemasteredSettings) -> Any:
    """Returns Figure 4: a state in the look trained in and on another floor, with attention."""
    from interverse.reports.plots import style

    rows = []
    for variant in shown_variants(4, settings.sizes()):
        for policy in _policies(settings, variant)[:1]:
            options = {**policy.card.trained["options"], **_FLOOR.options}
            looks = (0, _FLOOR.grid["visual_seed"][0])
            pictures = looks_of_a_state(TASKS[variant.task], looks, options)
            frames = newest_frame(pictures, policy.card.image_size)
            rows.append((variant, frames, attention_of(policy, pictures)))
    if not rows:
        return None

    @style.styled
    def drawn() -> Any:
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
                panel.set_xticks([])
                panel.set_yticks([])
                panel.grid(visible=False)
        return figure

    return drawn()


def _policies(settings: RemasteredSettings, variant: DmcrVariant) -> list[PixelPolicy]:
    """Returns the policies of the runs that are trained to their end."""
    whole = [record["seed"] for record in records(settings, variant) if "evaluations" in record]
    return [PixelPolicy.load(settings.folder(variant, run) / "policy") for run in whole]
