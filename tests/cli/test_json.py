"""`--json`: every verb but `view` writes one JSON document to standard output."""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("matplotlib")

from interverse.cli import VERBS, main
from interverse.cli import demo as tour
from tests.cli import BRIEF, COMMANDS, SLIDER, TRAIN

SWEEP = """
tasks: [tutorial/slider-v1]
train: {steps: 4, num_envs: 2, evaluate_episodes: 0, hyper: {n_steps: 2}, option: {max_steps: 2}}
evaluate: {protocols: P0, episodes: 2}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run, an evaluation, and the file of a sweep."""
    folder = tmp_path_factory.mktemp("json")
    run, scores, file = folder / "run", folder / "scores", folder / "sweep.yaml"
    file.write_text(SWEEP)
    assert main(["train", *TRAIN, "--evaluate-episodes", "0", "--out", str(run)]) == 0
    words = ["--task", SLIDER, "--protocols", "P0", "--episodes", "2", *BRIEF]
    assert main(["evaluate", *words, "--out", str(scores)]) == 0
    grid, original = folder / "grid", folder / "original.h5"
    words = ["blocks/observed-3-v1", "--episodes", "2", "--steps", "2", "--out", str(grid)]
    assert main(["collect", *words]) == 0
    assert main(["export_original", str(grid), "--out", str(original)]) == 0
    held = {"RUN": run, "SCORES": scores, "SWEEP": file}
    return {**held, "GRID": grid, "ORIGINAL": original}


def test_every_verb_is_tried_here():
    assert {name.split()[0] for name in COMMANDS} == set(VERBS) - {"view"}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_standard_output_is_one_document(name, made, tmp_path, capsys, monkeypatch):
    if name == "demo":
        for section in ("do", "imagine", "policy", "looks", "model"):
            empty = {"text": "", "captions": [], "code": "", "missing": True}
            monkeypatch.setattr(tour, f"_{section}_section", lambda _, empty=empty: empty)
    if name == "train pictures":
        pytest.importorskip("dm_control")
    words, told = COMMANDS[name]
    places = made | {"OUT": tmp_path / "out"}
    for mark, place in places.items():
        words = [str(place) + w.removeprefix(mark) if w.startswith(mark) else w for w in words]
    capsys.readouterr()
    assert main([name.split()[0], *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert isinstance(document, dict | list)
    assert not told or told <= set(document)
    for path in _paths(document):
        assert Path(path).exists(), path


def _paths(document):
    """Yields all that a document says was written."""
    for key, value in document.items() if isinstance(document, dict) else ():
        if key in ("folder", "page", "path", "policy", "report", "results", "run"):
            yield value
        elif key in ("files", "media", "plots", "tables") and isinstance(value, list):
            yield from (part for part in value if isinstance(part, str))
        elif isinstance(value, list):
            for part in value:
                yield from _paths(part)


def test_the_flag_is_no_part_of_a_run(tmp_path, capsys):
    words = ["train", *TRAIN, "--evaluate-episodes", "1", "--out"]
    for out, flags in (("a", ["--json"]), ("b", [])):
        assert main([*words, str(tmp_path / out), *flags]) == 0
    files = ("train.json", "policy/policy.json", "policy/policy.safetensors", "evaluation.parquet")
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    held = {(tmp_path / out / "config.yaml").read_text().replace(f"/{out}", "") for out in "ab"}
    assert len(held) == 1
    for out, flags in (("a", []), ("b", ["--json"])):  # go on as the same run
        assert main([*words, str(tmp_path / out), *flags]) == 0


def test_results_that_do_not_hold_are_told_too(made, tmp_path, capsys):
    folder = shutil.copytree(made["SCORES"], tmp_path / "scores")
    (folder / "run.json").write_text("{}")
    capsys.readouterr()
    assert main(["verify", str(folder), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert not told["verified"]
    assert told["problems"] == ["run.json was changed after it was written"]


@pytest.mark.parametrize("verb", ["check", "describe"])
def test_what_a_world_prints_does_not_come_between(verb, capsys, tmp_path, monkeypatch):
    name = f"loud_{verb}"
    assert main(["new", "world", name, "--folder", str(tmp_path)]) == 0
    source = tmp_path / name / "world.py"
    source.write_text(source.read_text() + "\nprint('hello')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    capsys.readouterr()
    main([verb, f"{name}:lab/{name}-v1", "--json"])
    said = capsys.readouterr()
    json.loads(said.out)
    assert "hello" in said.err
