"""Config files stand for flags, and every verb writes its own beside its results."""

import importlib

import pytest

from interverse.cli import VERBS, _load, main
from interverse.cli.flags import CONFIG_FILE, config_text
from interverse.core.errors import InterverseError

# Words of each verb that writes a folder, with a flag of every kind.
COMMANDS = {
    "collect": ["tutorial/slider-v1", "--episodes", "3", "--out", "d", "--option", "a=1", "b=x"],
    "demo": ["--out", "tour"],
    "evaluate": ["--task", "tutorial/slider-v1", "--protocols", "P0", "--episodes", "2"],
    "explain": ["runs/a", "--factors", "push", "x=box/mass,box/size"],
    "export": ["runs/a", "--no-video", "--onnx"],
    "export_original": ["blocks/observed-3-v1", "--out", "f.h5", "--split", "test"],
    "import_original": ["theirs.h5", "--id", "blocks/observed-3-v1", "--out", "f.h5"],
    "fit": ["chemistry/chain-v1", "--epochs", "2", "--time-limit", "3.5"],
    "report": ["runs/a", "runs/b", "--no-episodes", "--metric", "return"],
    "reproduce": ["--benchmark", "causalworld", "--out", "d"],
    "train": ["--task", "tutorial/slider-v1", "--out", "r", "--steps", "5", "--her"],
}


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_a_config_comes_back_as_it_was(verb, tmp_path):
    pytest.importorskip("torch")
    config, _, folder = _load(verb, COMMANDS[verb])
    assert folder is not None or verb in ("evaluate", "explain")
    file = tmp_path / "run.yaml"
    file.write_text(config_text(config, verb))
    again, _, _ = _load(verb, ["--config", str(file)])
    assert again == config


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


def test_every_verb_that_writes_a_folder_is_tried_here():
    pytest.importorskip("torch")
    writing = set()
    for verb, row in VERBS.items():
        try:
            module = importlib.import_module(f"interverse.cli.{row[0]}")
        except InterverseError:
            continue  # an extra is not installed
        config = getattr(module, row[1]) if row[1] else module.choose([])[0]
        if "out" in config.__dataclass_fields__:
            writing.add(verb)
    assert writing - {"bench", "sweep"} == set(COMMANDS)
