"""Films of episodes: an address means the episode that was scored; sheets and videos of frames."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import imageio.v3 as iio
import numpy as np
import pytest

import interverse as iv
from interverse.cli import main
from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.protocols.protocol import Protocol, describe, protocol_from
from interverse.reports.episodes import contact_sheet, film, video
from interverse.results import Results, highlights
from interverse.rollouts.saved import trained_policy

SLIDER = "tutorial/slider-v1"


@pytest.mark.parametrize("paired", [False, True])
def test_the_film_is_of_the_episode_it_names(paired, tmp_path):
    grid = {"box/mass": (0.5, 0.7, 0.9), "box/friction": (0.2, 0.3)}  # not in order of names
    grid = dict(sorted(grid.items(), reverse=True))
    listed = Protocol(name="listed", grid=grid, paired=paired, options={"max_steps": 4})
    iv.evaluate("random", task=SLIDER, protocols=[listed], episodes=5, out=tmp_path / "out")
    results = Results.from_parquet(tmp_path / "out" / "results.parquet")
    filmed = film(results, tmp_path / "film", metric="return", policies={})
    captions = [item.caption for item in highlights(results, "return")]
    assert filmed.missing == ()
    assert list(filmed.media) == captions, "another score in the replay would be told"


def test_a_grid_keeps_its_order_in_the_results():
    grid = {"visual_seed": (5, 6), "dynamics_seed": (0, 1, 2)}
    protocol = Protocol(name="p", grid=grid)
    text = json.dumps(describe(protocol), sort_keys=True)
    again = protocol_from("p", json.loads(text))
    rows = [p.start(np.arange(6)) for p in (protocol, again)]
    assert {n: r.tolist() for n, r in rows[0].items()} == {
        n: r.tolist() for n, r in rows[1].items()
    }
    old = {k: v for k, v in json.loads(text).items() if k != "grid_order"}
    with pytest.raises(FileFormatError, match="order of the grid"):
        protocol_from("p", old)
    assert describe(replace(protocol, paired=True))["paired"] is True


def test_a_policy_of_the_package_is_found_again(tmp_path, capsys):
    """By its name and its content; a folder of the same name with another policy is not it."""
    scored, short = tmp_path / "scored", ["--option", "max_steps=4", "--option", "skip_frame=3"]
    asked = ["evaluate", "reaching_1", "--protocols", "P0", "--episodes", "2"]
    assert main([*asked, *short, "--out", str(scored)]) in (0, None)
    results = Results.from_parquet(scored / "results.parquet")
    filmed = film(results, tmp_path / "film", metric="return", policies={})
    assert filmed.missing == ()
    assert len(filmed.media) in (1, 2, 3)
    assert main(["verify", str(scored)]) in (0, None)
    runs = [run | {"policy": "0" * 32} for run in results.provenance["runs"]]
    other = replace(results, provenance={**results.provenance, "runs": runs})
    filmed = film(other, tmp_path / "other", metric="return", policies={})
    assert "its policy is not where it was" in filmed.missing[0]
    named = ["report", str(scored), "--policy", "reaching_1=reaching_1"]
    assert main(named) in (0, None)
    page = (scored / "report" / "index.html").read_text()
    assert "Not shown" not in page
    capsys.readouterr()
    assert main(["report", str(scored), "--policy", "reaching_1=reaching_7"]) == 2
    assert "or as NAME one of pick_and_place_2" in " ".join(capsys.readouterr().err.split())


def test_the_policy_of_an_evaluated_run_is_found_again_while_it_is_unchanged(tmp_path, capsys):
    run, apart = tmp_path / "run", tmp_path / "scores"
    shutil.copytree(trained_policy("reaching_1"), run / "policy")
    short = "--protocols P0 --episodes 2 --option max_steps=4"
    asked = ["evaluate", str(run), *short.split()]
    for out in (apart, run / "scores"):
        assert main([*asked, "--out", str(out)]) == 0
        assert main(["report", str(out)]) == 0
        assert "Not shown" not in (out / "report" / "index.html").read_text()
    assert main(["verify", str(apart)]) == 0
    moved = run.rename(tmp_path / "moved")
    assert main(["report", str(moved / "scores")]) == 0
    assert "Not shown" not in (moved / "scores" / "report" / "index.html").read_text()
    assert main(["report", str(apart)]) == 0
    assert "its policy is not where it was" in (apart / "report" / "index.html").read_text()
    other = moved.rename(run) / "policy"
    shutil.copytree(trained_policy("pushing_1"), other, dirs_exist_ok=True)
    assert main(["report", str(apart)]) == 0
    assert "its policy is not where it was" in (apart / "report" / "index.html").read_text()


def ramp(count: int, height: int = 20, width: int = 30) -> np.ndarray:
    """Returns frames of one grey each, from dark to bright."""
    greys = np.linspace(0, 250, count).astype(np.uint8)
    return np.broadcast_to(greys[:, None, None, None], (count, height, width, 3)).copy()


def test_a_sheet_shows_first_to_last_in_reading_order(tmp_path):
    sheet = iio.imread(contact_sheet(ramp(100), tmp_path / "a" / "sheet.png", count=8, columns=4))
    assert sheet.shape == (2 * 20 + 4, 4 * 30 + 3 * 4, 3)
    greys = [int(sheet[10 + 24 * r, 15 + 34 * c, 0]) for r in range(2) for c in range(4)]
    assert greys == sorted(greys)
    assert (greys[0], greys[-1]) == (0, 250)


def test_few_frames_make_a_small_sheet(tmp_path):
    sheet = iio.imread(contact_sheet(ramp(3), tmp_path / "sheet.png"))
    assert sheet.shape == (20, 3 * 30 + 2 * 4, 3)


def test_a_video_plays_back(tmp_path):
    path = video(ramp(10, 33, 47), tmp_path / "film.mp4", fps=5)
    frames = iio.imread(path, plugin="FFMPEG")
    assert frames.shape == (10, 32, 46, 3)
    greys = frames.mean(axis=(1, 2, 3))
    np.testing.assert_allclose(greys, np.linspace(0, 250, 10), atol=12)


@pytest.mark.parametrize(
    ("make", "frames", "file", "given", "told"),
    [
        (contact_sheet, np.zeros((2, 4, 4, 3)), "x.png", {}, "dtype float64"),
        (contact_sheet, ramp(2), "x.png", {"count": 0}, "count is 0"),
        (video, np.zeros((0, 4, 4, 3), np.uint8), "x.mp4", {}, "at least one frame"),
        (video, ramp(2), "x.mp4", {"fps": 0}, "fps must be > 0"),
        (video, ramp(2), "x.avi", {}, r"named 'x\.avi'.*\.mp4"),
    ],
)
def test_bad_frames_are_refused(tmp_path, make, frames, file, given, told):
    with pytest.raises(InvalidValueError, match=told):
        make(frames, tmp_path / file, **given)
