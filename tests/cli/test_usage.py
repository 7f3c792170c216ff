"""What verbs say on a terminal: lists that add up, help, widths, completion, the tour."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import interverse as iv
from interverse.cli import main


def test_a_list_given_twice_adds_up(capsys):
    words = ["evaluate", "--task", "tutorial/slider-v1", "--option", "max_steps=2", "--json"]
    more = ["--episodes", "1", "--protocols", "P0", "--option", "space=A"]
    assert main([*words, *more]) == 0
    assert main([*words, "--option", "no_such_option=1"]) == 2
    assert "no_such_option" in capsys.readouterr().err


def test_the_help_of_collect_names_worlds_by_their_families(capsys):
    with pytest.raises(SystemExit):
        main(["collect", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "blocks or chemistry" in told
    assert "grid world" not in told


def test_no_name_is_broken_on_a_terminal_of_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["describe", "trifinger/pushing-v1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 45, "a world fits a screen"
    told = " ".join(" ".join(lines).split())
    assert "mass 0.02 kg [0.015, 0.045] (0.045, 0.1]" in told
    assert "A: training" in told
    assert main(["describe", "trifinger/pushing-v1", "--all", "--edges"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert " block_0/cylindrical_position" in [line.rstrip() for line in lines]
    words = ["--task", "trifinger/pushing-v1", "--protocols", "P0", "--option", "max_steps=2"]
    assert main(["evaluate", *words, "--episodes", "2"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "Fraction at the end" in shown
    assert "last20" not in shown.partition("also measured")[0], "one primary metric by default"
    more = ["--episodes", "2", "--metrics", "all"]
    assert main(["evaluate", *words, *more]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "Return" in shown


def test_bash_completes_verbs_flags_and_ids(capsys):
    assert main(["--completion"]) == 0
    script = capsys.readouterr().out

    def complete(*words: str) -> set[str]:
        asked = f"COMP_WORDS=({' '.join(words)} ''); COMP_CWORD={len(words) - 1}"
        code = f'{script}\n{asked}\n_interverse; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    assert complete("interverse", "ex") == {"explain", "export", "export_original"}
    assert "--episodes" in complete("interverse", "evaluate", "--e")
    assert complete("interverse", "describe", "chemistry/c") == {
        "chemistry/chain-v1",
        "chemistry/collider-v1",
        "chemistry/custom-v1",
    }


def test_the_tour_says_what_it_leaves_out(monkeypatch):
    tour = pytest.importorskip("interverse.cli.demo")
    monkeypatch.setattr(tour.importlib.util, "find_spec", lambda name: None)
    sections = {tour._policy_section: "torch", tour._model_section: "torch"}
    for section, extras in (sections | {tour._looks_section: "torch,control"}).items():
        left = section(tour.Demo())
        assert left["missing"]
        assert f"pip install 'interverse[{extras}]'" in left["text"]


def test_the_tour_shows_a_pixel_policy_under_other_looks(monkeypatch, tmp_path):
    tour = pytest.importorskip("interverse.cli.demo")
    pytest.importorskip("torch")
    pytest.importorskip("dm_control")
    played = []

    def briefly(*words, **given):
        played.append(iv.rollout(*words, **(given | {"max_steps": 1})))
        return played[-1]

    monkeypatch.setattr(tour, "rollout", briefly)
    section = tour._looks_section(tour.Demo(out=tmp_path))
    assert (tmp_path / section["image"]).stat().st_size > 10_000
    for episodes in (played[:5], played[5:]):  # of the pole, and of the walker
        first, *others = (episode.observations[0] for episode in episodes)
        assert others
        assert not any(np.array_equal(first, seen) for seen in others)
        places = {episode.values["qpos"][0].tobytes() for episode in episodes}
        assert len(places) == 1
    assert len(played) == 7


@pytest.mark.parametrize("task", ["control/cartpole_balance-v1", "rooms/single-v1"])
def test_collect_makes_no_folder_with_the_name_of_a_file(task, tmp_path, capsys):
    assert main(["collect", task, "--out", str(tmp_path / "c.h5")]) == 2
    assert f"of {task} go to a folder" in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_training_a_perceptron_on_pictures_names_the_cure(tmp_path, capsys):
    words = ["--task", "control/cartpole_balance-v1", "--algorithm", "sb3_ppo", "--steps", "8"]
    assert main(["train", *words, "--out", str(tmp_path / "run")]) == 2
    assert "--option observation=state" in " ".join(capsys.readouterr().err.split())
