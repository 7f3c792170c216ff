"""Every plot of the registry, on empty, one-run and many-run tables."""

from __future__ import annotations

import io
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from scipy import stats

from interverse.core.errors import UnknownNameError
from interverse.reports import PLOTS
from interverse.reports.plots import style
from interverse.reports.plots.bars import VARIED, protocol_grid
from interverse.results import Results
from tests.results import synthetic


def many(count: int) -> Results:
    """Returns as many experiments, each with two training steps and two seeds."""
    parts = [
        synthetic.results(0.5 + 0.4 * i / count, episodes=6, seeds=(0, 1), step=1000 * step).named(
            f"experiment {i}"
        )
        for i in range(count)
        for step in (1, 2)
    ]
    return Results.concat(parts)


TABLES = {
    "empty": Results(),
    "one episode": synthetic.results(episodes=1, refuse=()).select(protocol="P0"),
    "one run": synthetic.results(episodes=12, step=5),
    "all refused": synthetic.results(episodes=2, refuse=(0, 1)).select(protocol="P2"),
    "no success": Results.from_rows(
        [
            {**row, "last_fractional_success": None, "return": -5.0}
            for row in synthetic.rows(episodes=3, refuse=())
        ]
    ),
    "many runs": many(3),
    "nine experiments": many(9),
    "two tasks": Results.concat(
        [synthetic.results(task=f"trifinger/{t}-v1", step=1) for t in ("pushing", "picking")]
    ),
}


def settings() -> dict[str, object]:
    """Returns matplotlib's global settings but for the back end, which it finds out by itself."""
    return {name: mpl.rcParams[name] for name in mpl.rcParams if name != "backend"}


def texts(figure: Figure) -> list[str]:
    found = [text.get_text() for text in figure.findobj(mpl.text.Text)]
    return [text for text in found if text]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("plot", PLOTS)
def test_every_plot_draws_every_table(plot, table):
    results = TABLES[table]
    metric = "return" if table == "no success" else "last_fractional_success"
    before = settings()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = PLOTS.load(plot)(results, metric)
        assert isinstance(figure, Figure)
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=40)
    assert settings() == before
    picture.seek(0)
    pixels = mpl.image.imread(picture)
    assert np.ptp(pixels[..., :3]) > 0.5  # something is drawn on the ground
    if table in ("empty", "all refused"):
        assert len(texts(figure)) == 1
        assert texts(figure)[0].startswith("No ")


@pytest.mark.parametrize("plot", PLOTS)
def test_every_experiment_is_named(plot):
    found = texts(PLOTS.load(plot)(TABLES["nine experiments"]))
    for i in range(9):
        assert f"experiment {i}" in found


def test_experiments_of_different_tasks_are_named_in_one_legend():
    rows = [
        {"task": task, "protocol": "P0", "seed": 0, "episode": k, "experiment": name, "return": k}
        for task, name in (("t/one-v1", "first"), ("t/two-v1", "second"))
        for k in range(3)
    ]
    figure = PLOTS.load("profiles")(Results.from_rows(rows), "return")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["first", "second"]


@pytest.mark.parametrize("plot", PLOTS)
def test_an_unknown_metric_is_refused(plot):
    with pytest.raises(UnknownNameError, match="unknown metric 'sucess'"):
        PLOTS.load(plot)(TABLES["one run"], "sucess")


@pytest.mark.parametrize("plot", PLOTS)
def test_the_same_table_gives_the_same_file(plot, tmp_path):
    paths = [tmp_path / "first.svg", tmp_path / "second.svg"]
    for path in paths:
        style.save(PLOTS.load(plot)(TABLES["one run"].select(protocol="P1")), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_bars_stand_at_the_means_and_letters_at_the_spaces():
    results = synthetic.results(episodes=12)
    figure = PLOTS.load("bars")(results)
    heights = sorted(bar.get_height() for bar in figure.axes[0].patches)
    means = [
        np.nanmean(results.select(protocol=p).scores("last_fractional_success"))
        for p in results.protocols
    ]
    np.testing.assert_allclose(heights, sorted(means))
    letters = [t.get_text() for t in figure.axes[1].texts]
    assert sorted(letters) == ["A", "A", "A", "A", "B"]


def test_the_grid_is_declared_or_read_from_the_values():
    declared = protocol_grid(synthetic.results())
    assert declared.protocols == ("P0", "P1", "P2", "P3", "P10")
    assert dict(declared.rows) == {
        "block mass": ("", "A", "B", "", "A"),
        "block size": ("", "", "", "A", "A"),
    }
    spaces_only = {"variables": synthetic.VARIABLES}
    assert protocol_grid(Results.from_rows(synthetic.rows(), spaces_only)) == declared
    silent = dict(protocol_grid(Results.from_rows(synthetic.rows())).rows)
    assert silent["block mass"] == ("", VARIED, VARIED, "", VARIED)
    listed = {"P0": {"variables": ["everything"], "space": "B"}}
    one = Results.from_rows(synthetic.rows(), {"protocols": listed}).select(protocol="P0")
    assert protocol_grid(one).rows == (("everything", ("B",)),)


def test_many_variables_share_rows():
    spaces = {f"finger_{i}/{part}/color": "A" for i in range(3) for part in ("upper", "lower")}
    spaces["floor/color"] = "A"
    provenance = {"protocols": {"P10": {"variables": spaces}}}
    results = Results.from_rows(synthetic.rows(), provenance).select(protocol="P10")
    ((label, cells),) = protocol_grid(results).rows
    assert label == "finger lower color, finger upper color + 1 more"
    assert cells == ("A",)


def test_looks_differ_in_more_than_colour():
    looks = [style.look(i) for i in range(28)]
    assert len(set(looks)) == 28
    assert len({look.marker for look in looks[:7]}) == 7


def test_colours_can_be_told_apart_without_red_or_green():
    """Simulates both common kinds of colour blindness (Vienot 1999) and asks for a distance."""
    to_lms = np.array(
        [[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]]
    )
    blind = {
        "protan": np.array([[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]]),
        "deutan": np.array([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]]),
    }
    colors = np.array([to_rgb(c) for c in style.COLORS]) ** 2.2
    for lens in blind.values():
        seen = colors @ to_lms.T @ lens.T @ np.linalg.inv(to_lms).T
        seen = np.clip(seen, 0, 1) ** (1 / 2.2)
        distance = np.linalg.norm(seen[:, None] - seen, axis=-1)
        assert distance[np.triu_indices(len(colors), 1)].min() > 0.1


def test_the_band_of_a_learning_curve_is_student_s_t_over_seeds():
    row = {"task": "t/x-v1", "protocol": "P0", "episode": 0}
    made = [
        row | {"seed": seed, "step": step, "return": step * value}
        for seed, value in enumerate((1.0, 2.0, 4.0))
        for step in (10, 20)
    ]
    figure = PLOTS.load("curves")(Results.from_rows(made), "return")
    (band,) = (c for axes in figure.axes for c in axes.collections)
    ends = stats.t.interval(0.95, 2, 70 / 3, stats.sem([10.0, 20.0, 40.0]))
    first = [y for x, y in band.get_paths()[0].vertices if x == 10]
    assert (min(first), max(first)) == pytest.approx(ends)


def test_numbers_of_bars_below_zero_stand_below_them():
    axes = PLOTS.load("bars")(TABLES["no success"], "return").axes[0]
    numbers = [note for note in axes.texts if note.get_text().startswith("-5")]
    assert numbers
    assert all(note.get_verticalalignment() == "top" for note in numbers)
    assert all(note.xy[1] <= -5.0 for note in numbers)


def test_a_wide_interval_of_a_share_leaves_the_number_on_the_plot():
    rows = [row for s, skill in enumerate((0.2, 0.9)) for row in synthetic.rows(skill, seeds=(s,))]
    axes = PLOTS.load("bars")(Results.from_rows(rows)).axes[0]
    assert len(axes.texts) == len(synthetic.PROTOCOLS)
    assert all(note.xy[1] <= 1.0 for note in axes.texts)
