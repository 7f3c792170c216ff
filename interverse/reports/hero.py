"""The argument of the library in one picture: what scores seem to say, and what `do` says.

One shipped policy. Above, six pictures of the same episode, after one `do` each. Below, scores in
A and in B over all protocols, where variables move together, beside the same episodes replayed
with one variable moved alone. `interverse demo --hero FILE` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from interverse.core.files.atomic import make_folder
from interverse.envs import make
from interverse.metrics.generalisation import Gap
from interverse.metrics.generalisation import gaps as compare_spaces
from interverse.protocols.evaluate import evaluate
from interverse.reports import palette
from interverse.reports.attribute import attribute
from interverse.reports.attribution import Attribution
from interverse.reports.plots import style
from interverse.results.estimates import interval_rng
from interverse.results.tables import space_labels
from interverse.rollouts import rollout
from interverse.rollouts.saved import trained_policy

POLICY, TASK, METRIC = "pushing_2", "trifinger/pushing-v1", "last_fractional_success"
_STARTS = ("block_0/cylindrical_position", "goal_0/cylindrical_position")
_FACTORS: Mapping[str, tuple[str, ...]] = {
    "colour of the block": ("block_0/color",),
    "colours of the fingers": ("finger_*/color",),
    "masses of the fingers": ("finger_*/mass",),
    "mass of the block": ("block_0/mass",),
    "friction of the floor": ("floor/friction",),
    "start of the block": ("block_0/cylindrical_position",),
    "place of the goal": ("goal_0/cylindrical_position",),
    "size of the block": ("block_0/size",),
}
_TOGETHER: Mapping[tuple[str, ...], str] = {
    ("mass of the block", "friction of the floor"): "mass and friction together",
    ("start of the block", "place of the goal"): "start and goal together",
}
_PROTOCOL_EPISODES = 24  # under each of P0 to P11
_BLUE, _PINK, _SAND = [0.25, 0.42, 0.75], [0.93, 0.6, 0.85], [0.85, 0.62, 0.45]
_RIM = [0.14, 2.6, 0.0325]
_PICTURES: Mapping[str, Mapping[str, Any]] = {
    "as trained": {},
    "all colours": {
        "floor/color": [0.2, 0.3, 0.6],
        "stage/color": [0.62, 0.75, 0.9],
        "block_0/color": [0.1, 0.65, 0.3],
        **{f"finger_0/{part}/color": _PINK for part in ("base", "upper", "middle", "lower")},
        **{f"finger_1/{part}/color": _SAND for part in ("base", "upper", "middle", "lower")},
        **{f"finger_2/{part}/color": _BLUE for part in ("base", "upper", "middle", "lower")},
    },
    "block of 90 g": {"block_0/mass": 0.09},
    "goal at the rim": {"goal_0/cylindrical_position": _RIM},
    "start and goal at rim": {_STARTS[0]: [0.13, 0.3, 0.0325], _STARTS[1]: _RIM},
    "fingers start elsewhere": {"joint_positions": None},  # the middle of B
}
Shot = tuple[str, NDArray[np.uint8], float]  # what was set; picture and score at the end


def make_hero(path: Path, *, episodes: int = 200, seed: int = 0) -> list[Path]:
    """Plays all of it and writes the picture, and forms for dark pages and narrow screens.

    Args:
        path: of the PNG; the others' names end in "-dark", "-narrow" and "-narrow-dark".
        episodes: how many varied starts, each replayed under every intervention.
        seed: of the episodes.
    """
    policy = trained_policy(POLICY)
    results = evaluate(policy, TASK, "P0-P11", episodes=_PROTOCOL_EPISODES, seed=seed)
    found = attribute(
        policy,
        TASK,
        {name: list(patterns) for name, patterns in _FACTORS.items()},
        episodes=episodes,
        seed=seed,
        pairs=0,
        together=list(_TOGETHER),
        starts=_STARTS,
        metric=METRIC,
    )
    shots = [_shot(label, do, seed) for label, do in _PICTURES.items()]
    # Scores in A and in B by factor; the first variable of a factor stands for it.
    wanted = {name: patterns[0].replace("*/", "0/upper/") for name, patterns in _FACTORS.items()}
    labels = {
        name: space_labels(results.values(variable), results.about(variable))
        for name, variable in wanted.items()
    }
    rng = interval_rng(f"hero|{METRIC}")
    compared = compare_spaces(results.scores(METRIC), labels, rng=rng, alike=results.first_alike)
    scores = {gap.variable: gap for gap in compared}
    count = int((~results.refused).sum())
    make_folder(path.parent)
    from PIL import Image  # comes with matplotlib

    files = []
    for narrow, dark in ((False, False), (False, True), (True, False), (True, True)):
        form = "-narrow" * narrow + "-dark" * dark
        files.append(path.with_name(f"{path.stem}{form}{path.suffix}"))
        figure = draw_hero(shots, scores, found, count, dark=dark, narrow=narrow)
        figure.savefig(files[-1], dpi=100, facecolor=figure.get_facecolor())
        with Image.open(files[-1]) as picture:  # 256 colours are a third as large, look the same
            small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        small.save(files[-1], optimize=True)
    return files


def _shot(label: str, do: Mapping[str, Any], seed: int) -> Shot:
    """Returns the end of the policy's episode under an intervention at its start."""
    env = make(TASK, skip_frame=3, render_mode="rgb_array")
    try:
        space: Any = env.variables["joint_positions"].space_b
        middle = (np.asarray(space.low) + np.asarray(space.high)) / 2
        given = {name: middle if value is None else value for name, value in do.items()}
        episode = rollout(env, trained_policy(POLICY), seed=seed, do=given)
        env.world.use_film_size()
        picture = env.render()
        return label, picture, float(np.ravel(episode.values["fractional_success"][-1])[0])
    finally:
        env.close()


@style.styled
def draw_hero(
    shots: Sequence[Shot],
    scores: Mapping[str, Gap],
    found: Attribution,
    count: int,
    *,
    dark: bool,
    narrow: bool,
) -> Figure:
    """Returns the figure, on white or for dark pages, for a page's width or that of a phone."""
    paper, ink = (palette.DARK_PAPER, palette.DARK_INK) if dark else ("white", palette.INK)
    soft, twin = (palette.DARK_SOFT, palette.DARK_TWIN) if dark else (palette.SOFT, palette.TWIN)
    columns, wide, high = (2, 8.0, 22.8) if narrow else (6, 16.0, 9.2)  # pictures a row; inches
    large, small = (16.5, 15.5) if narrow else (13.0, 11.5)  # sizes of letters
    figure = Figure(figsize=(wide, high), facecolor=paper)

    def axes_at(x: float, top: float, width: float, height: float) -> Axes:
        """Adds axes by their place from the top left corner, in inches."""
        added = figure.add_axes((x / wide, 1 - (top + height) / high, width / wide, height / high))
        added.set_facecolor(paper)
        return added

    line = "\n" if narrow else " "
    size, second = (26, 16.5) if narrow else (31, 14.5)
    figure.text(0.03, 1 - 0.6 / high, "Which variable breaks this robot?", size=size, weight="bold",
        color=ink)  # fmt: skip
    told = f"One trained policy, one seed.{line}Each picture is the same episode after one do( )."
    figure.text(0.03, 1 - 0.75 / high, told, size=second, va="top", color=soft)
    width = 0.94 * wide / columns
    height = 0.75 * (width - 0.17) if narrow else 2.25
    for place, (label, picture, score) in enumerate(shots):
        row, column = divmod(place, columns)
        top = (1.9 + row * (height + 0.55)) if narrow else 1.43
        axes = axes_at(0.03 * wide + column * width, top, width - 0.17, height)
        rows, across = picture.shape[:2]
        cut = 0 if narrow else (across - rows) // 2  # a square, the goal in its middle
        axes.imshow(picture[:, cut : across - cut], interpolation="lanczos", aspect="auto")
        style.bare(axes)
        fair = palette.FAIR if score > 0.3 else palette.BAD
        color = palette.GOOD if score > 0.9 else fair
        axes.spines[:].set(edgecolor=color, linewidth=3, visible=True)
        title = f"do: {label}" if place else label
        axes.set_title(title, size=large - 0.5, color=ink, pad=6, weight="normal")
        axes.text(0.97, 0.05, f"{score:.2f}", transform=axes.transAxes, ha="right",
            va="bottom", size=20, weight="bold", color="white", bbox={
            "boxstyle": "round,pad=.25", "facecolor": color, "edgecolor": "none"})  # fmt: skip
    keys = [(name,) for name in scores] + found.combined
    ends = [e for key in keys for e in (found.cost(*key).high, found.cost(*key).value)]
    ends += [float(gap.loss.high) for gap in scores.values()]
    lowest = min(0.0, *(found.cost(*key).low for key in keys), -0.01)
    left, right = (
        (axes_at(3.3, 12.5, 4.1, 4.1), axes_at(3.3, 17.9, 4.1, 4.1))
        if narrow
        else (axes_at(3.2, 4.83, 5.6, 3.77), axes_at(9.92, 4.83, 5.6, 3.77))
    )
    labels = [_TOGETHER.get(key) or " + ".join(key) for key in keys]
    known = int(np.sum(~np.isnan(found.scores[()])))
    in_scores = f"score in A minus score in B, protocols P0 to P11, {count} episodes"
    in_do = f"the same {known} episodes, only this moved from A to B"
    for axes, told, about, color in (
        (left, "What the scores say", in_scores, soft),
        (right, "What do( ) says", in_do, twin),
    ):
        axes.set(xlim=(lowest, 1.12 * np.nanmax(ends)), ylim=(len(keys) - 0.4, -0.6), xticks=[])
        axes.tick_params(axis="y", length=0, pad=12, labelleft=narrow or axes is left)
        axes.grid(visible=False)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.spines["left"].set(color=soft, position=("data", 0.0))
        axes.set_yticks(range(len(keys)), labels, size=large, color=ink)
        start = -3.05 / 4.1 if narrow else 0.0  # of the words above, in widths of the axes
        axes.set_title(told, loc="left", x=start, size=large + 4, weight="bold", color=color,
            pad=2 * small)  # fmt: skip
        axes.text(start, 1.02, about, transform=axes.transAxes, size=small, color=soft)
    for y, key in enumerate(keys):
        gap = scores.get(key[0]) if len(key) == 1 else None
        if gap is not None:
            value, ends_ = float(gap.loss.estimate), (float(gap.loss.low), float(gap.loss.high))
            _bar(left, y, value, ends_, palette.FACT, ink, small)
        cost = found.cost(*key)
        _bar(right, y, cost.value, (cost.low, cost.high), twin, ink, small, weight="bold")
    foot = (
        f"{POLICY} comes with interverse; {TASK}. Score: fraction of the goal{line}that the block "
        "fills at the end. Bars are means, lines 95% intervals."
    )
    figure.text(0.03, 0.17 / high, foot, size=small - 2 * narrow, color=soft)
    return figure


def _bar(axes: Axes, y: int, value: float, ends: tuple[float, float], color: str, ink: str,
    size: float, *, weight: str = "normal") -> None:  # fmt: skip
    axes.barh(y, value, 0.62, color=color)
    low, high = ends
    if high - low > 0.004:
        axes.plot([low, high], [y, y], color=ink, linewidth=1.3)
    at = max(value, 0.0 if np.isnan(high) else high, 0.0)
    axes.annotate(f"{value:z.2f}", (at, y), (6, 0), textcoords="offset points", va="center",
        color=ink, size=size, weight=weight)  # fmt: skip
