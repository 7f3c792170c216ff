"""Figures 6, 7, 8, 10 and 13, each drawn from what is on disk; and bars of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from interverse.benchmarks.causaltriplet.settings import (
    FIGURES,
    TripletSettings,
    found_in,
    scores,
    seed_variants,
    sweep_variant,
)
from interverse.benchmarks.comparison import summary
from interverse.benchmarks.driver import Tables
from interverse.core.files.zip_archive import read_npz
from interverse.reports.plots import style

_SETS = (("test_id", "ID"), ("test_ood", "OOD"))


def figures(settings: TripletSettings, tables: Tables) -> Iterator[tuple[str, Any]]:
    """Yields bars of every table and the figures that were asked for, by file."""
    for content in tables:
        if content["cells"]:
            yield f"table-{content['table']}.svg", table_bars(content)
    for number in sorted({6, 7, 10}.intersection(settings.figures)):
        yield f"figure-{number}.svg", sweep_figure(settings, number)
    if change := change_figure(settings):  # drawn where a table has its models
        yield "figure-8.png", change
    if 13 in settings.figures:
        yield "figure-13.svg", seed_figure(settings)


@style.styled
def table_bars(content: Mapping[str, Any]) -> Any:
    """Returns bars of a table: ours under two rules, and a mark where the paper's number is."""
    groups = list(dict.fromkeys((c["shift"], c["split"]) for c in content["cells"]))
    figure = style.new_figure(3.4)
    axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for panel, (shift, split) in zip(axes, groups, strict=True):
        cells = [c for c in content["cells"] if (c["shift"], c["split"]) == (shift, split)]
        place = np.arange(len(cells))
        for number, rule in enumerate(("last", "best_each")):
            ours = [cell["ours"][rule] for cell in cells]
            panel.bar(
                place + 0.38 * (number - 0.5),
                [o["mean"] for o in ours],
                0.36,
                yerr=[o["deviation"] for o in ours],
                color=style.look(number).color,
                ecolor=style.SOFT,
                label=f"ours, {rule.replace('_', ' ')}",
            )
        theirs = [c["published"] for c in cells]
        diamond = {"marker": "D", "color": "black", "zorder": 3, "s": 22}
        panel.scatter(place, theirs, label="published", **diamond)
        panel.axhline(1 / 7, color=style.SOFT, linestyle=":", linewidth=1)
        panel.set_xticks(place, [c["method"] for c in cells], rotation=25, ha="right")
        panel.set_title(f"{shift}, {split}" if len(groups) > 2 else split)
        panel.set_ylim(0, 1)
    axes[0].set_ylabel("accuracy (dotted: chance)")
    style.legend_above(figure, axes[0], 3)
    return figure


@style.styled
def sweep_figure(settings: TripletSettings, number: int) -> Any:
    """Returns accuracy against a weight, ours and the logs'; None with fewer than two points."""
    rows = {v: settings.records(sweep_variant(number, v)) for v in settings.sizes().sweeps[number]}
    rows = {value: found for value, found in rows.items() if found}
    if len(rows) < 2:
        return None
    place = np.arange(len(rows))  # even: values are nearly geometric and may hold 0
    # No log of Figure 6 was published.
    logs = found_in(f"fig{number}_log_max") if number != 6 else ()

    figure = style.new_figure(3.8)
    axes: Any = figure.subplots()
    for index, (name, told) in enumerate(_SETS):
        look = style.look(index)
        for rule, line in (("last", "-"), ("best_each", "--")):
            known = [summary(scores(found, rule, name)) for found in rows.values()]
            means = np.array([row["mean"] for row in known])
            spread = np.array([row["deviation"] for row in known])
            label = f"{told}, {rule.replace('_', ' ')}"
            shown = {"color": look.color, "marker": look.marker, "markersize": 4}
            axes.plot(place, means, line, label=label, **shown)
            if rule == "last":
                ends = means - spread, means + spread
                style.band(axes, place, *ends, look.color)
        theirs = {_value(row["method"]): row.value for row in logs if row["split"] == told}
        shared = [(p, theirs[v]) for p, v in zip(place, rows, strict=True) if v in theirs]
        if shared:
            label = f"{told}, published (best each)"
            pairs = zip(*shared, strict=True)
            axes.scatter(*pairs, marker="x", color=look.color, s=26, label=label)
    held = [
        [r["analysis"]["object"]["accuracy"] for r in found if "analysis" in r]
        for found in rows.values()
    ]
    if number == 6 and all(held):
        shown = {"color": style.look(2).color, "marker": "^", "markersize": 4}
        label = "object told from action embedding"
        axes.plot(place, [float(np.mean(one)) for one in held], ":", label=label, **shown)
    axes.set_xticks(place, [f"{value:g}" for value in rows])
    axes.set_xlabel(FIGURES[number])
    axes.set_ylabel("accuracy")
    axes.set_ylim(0, 1)
    style.legend_above(figure, axes, 6)
    return figure


def _value(told: str) -> float:
    """Returns the number behind an equals sign, as the logs name weights and seeds."""
    return float(told.split("=")[1])


@style.styled
def change_figure(settings: TripletSettings) -> Any:
    """Returns Figure 8: a row per pair, a column per feature, dark where it changed."""
    found = []
    for value in sorted({0.0, 0.1, *settings.sizes().sweeps[7]}):
        path = settings.out / "rows" / f"{sweep_variant(7, value).name}.change.npz"
        if path.exists():
            file = read_npz(path)
            found.append((value, file["change"], [str(g) for g in file["groups"]]))
    if not found:
        return None

    figure = style.new_figure(3.6, max(4.0, 2.2 * len(found) + 1.6))
    axes = figure.subplots(1, len(found), squeeze=False)[0]
    for panel, (value, change, groups) in zip(axes, found, strict=True):
        top = np.quantile(change, 0.98) or 1.0
        shown = {"cmap": "magma", "vmin": 0, "vmax": 1, "interpolation": "nearest"}
        panel.imshow(change / top, aspect="auto", **shown)
        names = list(dict.fromkeys(groups))
        starts = [groups.index(name) for name in names]
        for start in starts[1:]:
            panel.axhline(start - 0.5, color="white", linewidth=0.8)
        for block in range(1, len(names)):
            panel.axvline(
                block * (change.shape[1] // len(names)) - 0.5, color="white", linewidth=0.4
            )
        middles = [s + groups.count(n) / 2 for s, n in zip(starts, names, strict=True)]
        first = panel is axes[0]
        style.bare(panel)
        panel.set_yticks(middles, names if first else [""] * len(names))
        panel.set_title(f"weight {value:g}", fontsize=9)
    figure.supxlabel("feature; blocks between the lines", fontsize=9)
    return figure


@style.styled
def seed_figure(settings: TripletSettings) -> Any:
    """Returns Figure 13: ID and OOD accuracy of the group models, seed by seed."""
    ours = {name: settings.records(variant) for name, variant in seed_variants().items()}
    ours = {name: found for name, found in ours.items() if found}
    if len(ours) < 2:
        return None

    figure = style.new_figure(3.6)
    axes = figure.subplots(1, 2)
    for index, (name, found) in enumerate(ours.items()):
        look = style.look(index)
        for panel, (key, told) in zip(axes, _SETS, strict=True):
            mine = scores(found, "best_each", key)
            shown = {"marker": look.marker, "color": look.color, "label": name}
            panel.plot([int(s) for s in mine], list(mine.values()), **shown)
            theirs = {
                int(_value(row["setting"])): row.value
                for row in found_in("fig13_log_max")
                if (row["method"], row["split"]) == (f"{name} frozen", told)
            }
            panel.plot(list(theirs), list(theirs.values()), ":", color=look.color, alpha=0.6)
            panel.set_title(f"{told} (dotted: published)")
            panel.set_xlabel("seed")
            panel.set_xticks(range(1, 11))
    axes[0].set_ylabel("accuracy, best epoch of each set")
    style.legend_above(figure, axes[0], len(ours))
    return figure
