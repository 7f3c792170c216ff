"""The page: all it points to is there, nothing leaks in, and a browser shows it."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest

import interverse as iv
from interverse._version import __version__
from interverse.core.errors import InvalidValueError, RenderError, UnknownNameError
from interverse.protocols.protocol import Protocol
from interverse.reports import PLOTS, page, report
from interverse.reports.episodes import contact_sheet, video
from interverse.results import Results, highlights, tables
from tests.results import synthetic
from tests.results.synthetic import read_csv, row, width

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Reader(HTMLParser):
    """Collects what a page points to and says, and checks that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.links += [found[name] for name in ("src", "href") if name in found]
        self.ids += [found["id"]] if "id" in found else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert reader.open == []
    for link in reader.links:
        assert "://" not in link  # opens from disk, without a network
        if link.startswith("#"):
            assert link[1:] in reader.ids
        else:
            assert (path.parent / link).stat().st_size > 0
    return reader


def test_a_whole_page(tmp_path):
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 255, (12, 33, 47, 3)).astype(np.uint8)
    sheet = contact_sheet(frames, tmp_path / "sheet.png")
    film = video(frames, tmp_path / "film.mp4", fps=10)
    experiments = {
        "ppo": Results.concat(synthetic.results(0.9, episodes=30, step=s) for s in (1000, 2000)),
        "sac": synthetic.results(0.8, episodes=30, step=2000),
    }
    captions = [h.caption for h in highlights(experiments["sac"])]
    path = report(
        experiments,
        tmp_path / "report",
        media={captions[0]: sheet, captions[2]: film},
        title="Push",
    )
    assert path == tmp_path / "report" / "index.html"
    reader = read(path)
    assert reader.tags.count("img") == len(PLOTS) + 1
    assert reader.tags.count("video") == 1
    for words in (
        "Push",
        synthetic.PROVENANCE["command"],
        f"interverse {__version__}",
        "mujoco 4.0.0",
        "block_0 would touch finger_1",
        "Scores by variable (moved together, not causes)",
        "p (Holm)",
        captions[2],
    ):
        assert words in reader.text
    assert {f.suffix for f in (path.parent / "plots").iterdir()} == {".svg", ".pdf"}
    assert len(list((path.parent / "tables").glob("*.csv"))) == 6
    assert not list(path.parent.glob(".*"))


@pytest.mark.parametrize(
    "results",
    [
        Results(),
        synthetic.results(episodes=1, refuse=()).select(protocol="P0"),
        synthetic.results(episodes=2, refuse=(0, 1)).select(protocol="P2"),
    ],
    ids=["empty", "one episode", "all refused"],
)
def test_a_page_of_little(tmp_path, results):
    reader = read(report(results, tmp_path))
    assert "Refusals" in reader.text


def test_names_cannot_become_markup(tmp_path):
    results = synthetic.results(episodes=3).select(protocol="P0").named("<script>alert(1)</script>")
    provenance = {"command": "x </pre><b>", "versions": {"<i>": "1"}}
    path = report(Results(data=results.data, provenance=provenance), tmp_path)
    reader = read(path)
    assert "script" not in reader.tags
    assert "x </pre><b>" in reader.text
    assert "<i> 1" in reader.text
    assert "<script>alert(1)</script>" in reader.text


def test_a_second_report_replaces_the_first_and_keeps_other_files(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    report(Results(), tmp_path, title="First")
    path = report(Results(), tmp_path, title="Second")
    assert "Second" in read(path).text
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_bad_input_is_refused_before_anything_is_written(tmp_path):
    results = synthetic.results(episodes=3)
    target = tmp_path / "report"
    with pytest.raises(InvalidValueError, match=r"results is a str.*Results\.from_parquet"):
        report("results.parquet", target)
    with pytest.raises(UnknownNameError, match=r"unknown metric 'retrun'\. Did you mean 'return'"):
        report(results, target, metric="retrun")
    with pytest.raises(InvalidValueError, match=r"media 'best' is 'x\.gz'.*\.mp4"):
        report(results, target, media={"best": "x.gz"})
    with pytest.raises(InvalidValueError, match="there is no file"):
        report(results, target, media={"best": tmp_path / "none.png"})
    assert not target.exists()


def moved_together(**options):
    """Returns scores of a policy that sees no colour, where colour goes with the goal."""
    near = Protocol(name="near", variables={"box/color": "A", "goal/position": "A"})
    far = Protocol(name="far", variables={"box/color": "B", "goal/position": "B"})
    return iv.evaluate(still, SLIDER, [near, far], episodes=12, **options)


def test_a_policy_that_ignores_colour_is_told_nothing_of_colour(tmp_path):
    results = moved_together()
    (gap,) = [g for g in read_csv(tables.gaps(results, "return")) if g["variable"] == "box/color"]
    assert abs(float(gap["difference"])) > 0.1, "the scores alone would blame the colour"
    path = report(results, tmp_path, metric="return", episodes={"still": still}, costs=True)
    text = read(path).text
    assert "What each variable costs" in text
    assert "Scores by variable" not in text
    assert not (tmp_path / "tables" / "gaps.csv").exists()
    costs = {row["factor"]: row for row in csv.DictReader((tmp_path / "tables/costs.csv").open())}
    assert float(costs["box/color"]["cost"]) == 0
    assert max(costs, key=lambda name: float(costs[name]["cost"])) == "goal/position"
    told = re.findall(r"Nothing changes in any of 20 episodes under: ([^.]*)", text)
    assert all("box/color" in line for line in told)


def test_scores_alone_name_no_cause(tmp_path):
    results = moved_together(max_steps=20)
    path = report(results, tmp_path, metric="return", episodes=False)
    text = read(path).text
    assert "Scores by variable (moved together, not causes)" in text
    assert "What each variable costs" not in text
    gaps = [row["variable"] for row in read_csv(tables.gaps(results, "return"))]
    assert gaps == [name for name in results.variables if name in gaps], "in no order of size"
    path = report(results, tmp_path / "unknown", metric="return")
    assert "still on tutorial/slider-v1: its policy is not where it was" in read(path).text


def test_long_tables_are_cut_on_the_page_only():
    rows = [
        row(protocol=p, episode=i, **{"return": float(i)})
        | {f"value:v{n}": 0.0 if p == "a" else 1.0 for n in range(20)}
        for p in "ab"
        for i in range(4)
    ]
    about = {f"v{n}": {"space_a": [0.0, 0.4], "space_b": [0.6, 1.0]} for n in range(20)}
    found = tables.gaps(Results.from_rows(rows, {"variables": about}), "return")
    shown = page.table_view("gaps", found)
    assert len(found.rows) == 20
    assert (len(shown["rows"]), shown["cut"]) == (12, 8)


@pytest.mark.slow
def test_a_browser_shows_it(tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    path = report(synthetic.results(episodes=30, step=10), tmp_path / "report")
    picture = tmp_path / "page.png"
    flags = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --window-size=1300,4200"
    )
    own = [f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={picture}"]
    command = [browser, *flags.split(), *own, path.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    pixels = iio.imread(picture)[..., :3].astype(int)
    blue = np.abs(pixels - [0x00, 0x72, 0xB2]).sum(axis=-1) < 12
    # The bars, the radar's line and the curves: the pictures were loaded, not only the text.
    rows = np.flatnonzero(blue.any(axis=1))
    assert blue.sum() > 20_000
    assert rows[-1] - rows[0] > 1500


SLIDER = "tutorial/slider-v1"


def still(observations):
    """A policy that does nothing."""
    return np.zeros((len(observations), 2), dtype=np.float32)


@pytest.mark.slow
def test_the_same_episode_of_every_policy_is_shown_again(tmp_path):
    settings = {"task": SLIDER, "protocols": "P0,P5", "episodes": 6, "max_steps": 30}
    results = Results.concat([iv.evaluate(policy, **settings) for policy in ("random", still)])
    path = report(results, tmp_path / "known", metric="return", costs=False)
    reader = read(path)
    assert reader.tags.count("video") == 1, "the results know random by its name"
    assert "Not shown: still on tutorial/slider-v1: its policy is not where it was" in reader.text
    assert "in this replay" not in reader.text, "a replay comes out as it did"
    given = {"metric": "return", "episodes": {"still": still}, "costs": False}
    both = read(report(results, tmp_path / "given", **given))
    assert both.tags.count("video") == 2, "the same episode for both"
    assert "Not shown" not in both.text
    captions = re.findall(r"same episode: [-.\d]+ \((P\d, seed \d, episode \d)\)", both.text)
    assert len(captions) == 2
    assert len(set(captions)) == 1
    film = iio.imread(tmp_path / "given" / "media" / "episode-00.mp4", plugin="FFMPEG")
    assert len(film) == 31
    assert np.ptp(film) > 100
    alone = results.select(experiment="random")
    one = read(report(alone, tmp_path / "alone", metric="return", costs=False))
    assert one.tags.count("video") == 3, "its best, its median and its worst"


def test_a_machine_that_cannot_draw_still_gets_its_page(tmp_path, monkeypatch):
    def render(self, world):
        raise RenderError("no GL library could draw")

    results = iv.evaluate("random", task=SLIDER, protocols="P0", episodes=2, max_steps=5)
    monkeypatch.setattr(type(iv.make(SLIDER).world), "render", render)
    reader = read(report(results, tmp_path, metric="return"))
    assert "Not shown: random on tutorial/slider-v1: no GL library could draw" in reader.text
    assert "video" not in reader.tags


def test_an_episode_of_a_changed_policy_is_not_shown(tmp_path):
    results = iv.evaluate("random", task=SLIDER, protocols="P0", episodes=2, max_steps=5)
    (run,) = results.provenance["runs"]
    other = replace(results, provenance={**results.provenance, "runs": [run | {"policy": "0"}]})
    assert "another policy than the one scored" in read(report(other, tmp_path)).text
    assert read(report(other, tmp_path / "off", episodes=False)).text.count("Episodes") == 0


def test_a_report_needs_a_folder():
    with pytest.raises(InvalidValueError, match="folder is None"):
        report(synthetic.results(), None)


def test_a_page_of_several_trainings_has_intervals_over_seeds(tmp_path):
    rows = [
        row(experiment="ppo", seed=s, episode=e) | {"return": mean + 0.1 * e}
        for s, mean in enumerate((-5.81, -14.73, -22.80))
        for e in range(20)
    ]
    results = Results.from_rows(rows)
    text = report(results, tmp_path, metric="return", episodes=False).read_text()
    (shown,) = csv.DictReader((tmp_path / "tables" / "scores.csv").open())
    assert width(shown, "return") > 30
    assert "over seeds: other trainings of the same method" in text
    assert "resample episodes" not in text
    text = report(results, tmp_path, metric="return", episodes=False, unit="episode").read_text()
    assert "over episodes: other episodes of the same policy" in text
    with pytest.raises(InvalidValueError, match=r"unknown unit 'run'.*episode, seed"):
        report(results, tmp_path, unit="run")


def test_a_table_of_one_of_several_experiments_names_it(tmp_path):
    rows = synthetic.rows(episodes=3, refuse=(), experiment="first")
    rows += [r for r in synthetic.rows(episodes=3, experiment="second") if r["protocol"] == "P0"]
    path = report(Results.from_rows(rows), tmp_path, episodes=False)
    lost = read(path).text.partition("Share of the training score")[2].partition("E_G = ")[0]
    assert "first" in lost  # the second has no test beside its training
