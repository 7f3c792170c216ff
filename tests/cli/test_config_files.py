"""Config files stand for flags, and every verb writes its own beside its results."""

import pytest

from interverse.cli import _load, main
from interverse.cli.flags import CONFIG_FILE, config_text
from tests.cli import COMMANDS


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_config_comes_back_as_it_was(name, tmp_path):
    pytest.importorskip("stable_baselines3")
    verb, file = name.split()[0], tmp_path / "run.yaml"
    config = _load(verb, COMMANDS[name][0])[0]
    file.write_text(config_text(config, verb))
    assert _load(verb, ["--config", str(file)])[0] == config


def test_how_a_command_prints_is_not_kept():
    words = ["runs/a", "--pairs", "2"]
    plain, as_json = (_load("explain", [*words, *flag])[0] for flag in ([], ["--json"]))
    assert plain != as_json
    assert config_text(plain, "explain") == config_text(as_json, "explain")


def test_a_flag_wins_over_the_file(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("run: runs/a\nepisodes: 7\nfactors: [push]\npairs: 2\n")
    config, _, _ = _load("explain", ["runs/b", f"--config={file}", "--pairs", "3"])
    assert (config.run, config.episodes, config.pairs) == ("runs/b", 7, 3)
    assert config.factors == ("push",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("epsodes: 3\n", "episodes"),
        ("episodes: many\n", "episodes"),
        ("verb: train\n", "interverse train"),
        ("- 1\n", "KEY: VALUE"),
        ("&a episodes: 3\n", "anchor"),
    ],
)
def test_mistakes_in_a_file_are_one_line(text, told, tmp_path, capsys):
    file = tmp_path / "run.yaml"
    file.write_text(text)
    assert main(["evaluate", "--config", str(file)]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_a_run_can_be_made_again_from_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--task", "tutorial/slider-v1", "--protocols", "P0", "--episodes", "2"]
    assert main(["evaluate", *words, "--option", "max_steps=3", "--out", "a"]) == 0
    assert main(["evaluate", "--config", f"a/{CONFIG_FILE}", "--out", "b"]) == 0
    one, other = ((tmp_path / name / "results.parquet").read_bytes() for name in "ab")
    assert one == other


def test_a_refused_command_leaves_nothing(tmp_path, capsys):
    words = ["--task", "tutorial/slider-v1", "--protocols", "P77", "--out", str(tmp_path / "a/b")]
    assert main(["evaluate", *words]) == 2
    assert not (tmp_path / "a").exists()
    assert main(["export", str(tmp_path / "none")]) == 2
    assert not (tmp_path / "none").exists()
