"""Figures 1 to 7 and 9 to 13, each drawn from what is on disk; 1 and 9 to 13 from the worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from interverse.protocols.remastered import REMASTERED
from interverse.reproduce.remastered.analysis import (
    attention_of,
    encoder_spread,
    features,
    looks_of_a_state,
    newest_frame,
)
from interverse.reproduce.remastered.compare import records, scored
from interverse.reproduce.remastered.published import TASKS
from interverse.reproduce.remastered.settings import RemasteredSettings
from interverse.reproduce.remastered.sheets import DOMAINS, SHEETS, one_state, sheet
from interverse.reproduce.remastered.variants import (
    Variant,
    look_variants,
    shown_variants,
    sweep_variants,
)
from interverse.rollouts.pixels import PixelPolicy

Say = Callable[[str], None]
_SHEET = {"smoke": (3, 48), "reduced": (20, 84), "full": (20, 84)}  # looks, pixels
_SWEPT = {5: "beta (share of a batch that is augmented)", 6: "lambda", 7: "augmentation"}
_FLOOR = next(p for p in REMASTERED if p.name == "floor")


def write_figures(settings: RemasteredSettings, say: Say) -> list[str]:
    """Writes every figure that was asked for and has something to show; returns their names."""
    try:
        from interverse.reports.plots import style
    except ImportError:
        say("no figures: pip install 'interverse[report]' brings matplotlib")
        return []
    makers: Mapping[int, Callable[[RemasteredSettings], Any]] = {
        1: overview,
        2: look_curves,
        3: spread_figure,
        4: attention_figure,
    }
    names = []
    for number in sorted(set(settings.figures)):
        if number in makers:
            figure = makers[number](settings)
        else:
            figure = (domain_sheets if number in SHEETS else sweep_figure)(settings, number)
        if figure is None:
            say(f"figure {number}: nothing to show yet")
            continue
        names.append(f"figure-{number}.{'svg' if number in (2, 3, 5, 6, 7) else 'png'}")
        style.save(figure, settings.out / names[-1])
    return names


def overview(settings: RemasteredSettings) -> Any:
    """Returns Figure 1: a row of looks for every domain."""
    count, size = _SHEET[settings.budget]
    shown = {name: one_state(name, min(count, 8), size) for name in DOMAINS}
    return _rows_of_pictures({name: sheet(p, len(p)) for name, p in shown.items()}, 0.95)


def domain_sheets(settings: RemasteredSettings, number: int) -> Any:
    """Returns one of Figures 9 to 13: twenty looks of two domains."""
    count, size = _SHEET[settings.budget]
    columns = min(10, count)
    shown = {name: sheet(one_state(name, count, size), columns) for name in SHEETS[number]}
    return _rows_of_pictures(shown, 0.9 * -(-count // columns))


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


def look_curves(settings: RemasteredSettings) -> Any:
    """Returns Figure 2: learning curves, one per look that was trained in."""
    from interverse.reports.plots import style

    curves = [
        (variant, [record["evaluations"] for record in found])
        for variant in look_variants(settings.sizes())
        if (found := [r for r in records(settings, variant) if "evaluations" in r])
    ]
    if not curves:
        return None

    @style.styled
    def drawn() -> Any:
        tasks = list(dict.fromkeys(variant.task for variant, _ in curves))
        figure = style.new_figure(3.6)
        panels = figure.subplots(1, len(tasks), squeeze=False)[0]
        for panel, task in zip(panels, tasks, strict=True):
            mine = [curve for curve in curves if curve[0].task == task]
            for index, (variant, runs) in enumerate(mine):
                shortest = min(len(run) for run in runs)
                steps = [row["step"] for row in runs[0][:shortest]]
                means = np.mean([[row["mean"] for row in run[:shortest]] for run in runs], axis=0)
                look = style.look(index)
                panel.plot(
                    steps,
                    means,
                    look.line,
                    color=look.color,
                    marker=look.marker,
                    markersize=3,
                    label=f"look {variant.visual_seed}",
                )
            panel.set_title(task)
            panel.set_xlabel("decisions")
            if len(mine) <= 8:
                panel.legend(fontsize=8)
        panels[0].set_ylabel("return in the look trained in")
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


def _spreads(settings: RemasteredSettings, variant: Variant) -> Any:
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


def _policies(settings: RemasteredSettings, variant: Variant) -> list[PixelPolicy]:
    """Returns the policies of the runs that are trained to their end."""
    whole = [record["seed"] for record in records(settings, variant) if "evaluations" in record]
    return [PixelPolicy.load(settings.folder(variant, run) / "policy") for run in whole]


def sweep_figure(settings: RemasteredSettings, number: int) -> Any:
    """Returns Figure 5, 6 or 7: returns in the look trained in and in new ones, by a setting."""
    from interverse.reports.plots import style

    variants = sweep_variants(number, settings.sizes())
    found = {
        value: (scored(kept, "train"), scored(kept, "all"))
        for value, variant in variants.items()
        if (kept := records(settings, variant))
    }
    found = {value: pair for value, pair in found.items() if None not in pair}
    if len(found) < 2:
        return None

    @style.styled
    def drawn() -> Any:
        figure = style.new_figure(3.6)
        panel = figure.subplots()
        place = np.arange(len(found))
        for k, told in enumerate(("look trained in", "new looks")):
            numbers = [pair[k]["return"] for pair in found.values()]
            means = np.array([n["mean"] for n in numbers])
            ends = [
                [mean - n["low"], n["high"] - mean] if n["low"] is not None else [0.0, 0.0]
                for mean, n in zip(means, numbers, strict=True)
            ]
            panel.bar(
                place + 0.4 * (k - 0.5),
                means,
                0.38,
                yerr=np.array(ends).T.clip(0),
                color=style.look(k).color,
                ecolor=style.SOFT,
                label=told,
            )
        turn = {"rotation": 25, "ha": "right"} if number == 7 else {}
        panel.set_xticks(place, [name.replace("_", " ") for name in found], **turn)
        panel.set_xlabel(_SWEPT[number])
        panel.set_ylabel("return")
        panel.set_title(next(iter(variants.values())).task)
        style.legend_above(figure, panel, 2)
        return figure

    return drawn()
