"""A training folder is tied to its config and to the code that began it."""

from __future__ import annotations

import json

import pytest

from interverse.core import code
from interverse.core.errors import InvalidValueError


def held(folder):
    return json.loads((folder / code.TRAIN_FILE).read_text())


def test_a_folder_goes_on_with_more_steps(tmp_path):
    code.stamp_run(tmp_path, {"seed": 0, "steps": 5})
    code.stamp_run(tmp_path, {"seed": 0, "steps": 9})
    assert held(tmp_path)["steps"] == 9
    assert held(tmp_path)["code"] == [code.code_identity()]


def test_another_config_is_refused_with_both_sides(tmp_path):
    code.stamp_run(tmp_path, {"seed": 0})
    with pytest.raises(InvalidValueError, match="seed 0 there, 1 here"):
        code.stamp_run(tmp_path, {"seed": 1})


def test_of_tables_only_what_differs_is_named(tmp_path):
    code.stamp_run(tmp_path, {"hyper": {"gamma": 0.9, "batch": 64}})
    with pytest.raises(InvalidValueError, match=r"run: hyper\.gamma 0\.9 there, 0\.8 here\."):
        code.stamp_run(tmp_path, {"hyper": {"gamma": 0.8, "batch": 64}})


def test_other_code_is_told_and_written_down_and_goes_on(tmp_path, monkeypatch, capsys):
    code.stamp_run(tmp_path, {"seed": 0})
    first = code.code_identity()
    monkeypatch.setattr(code, "code_hash", lambda: "edited")
    code.stamp_run(tmp_path, {"seed": 0})
    assert "begun with other code (package): what it holds is kept" in capsys.readouterr().err
    assert held(tmp_path)["code"] == [first, code.code_identity()]
    code.stamp_run(tmp_path, {"seed": 0})
    assert len(held(tmp_path)["code"]) == 2, "each code once"
    assert capsys.readouterr().err == ""
    with pytest.raises(InvalidValueError, match="seed 0 there, 1 here"):
        code.stamp_run(tmp_path, {"seed": 1})


def test_a_folder_that_names_no_code_or_one_is_of_other_code(tmp_path, capsys):
    (tmp_path / code.TRAIN_FILE).write_text(json.dumps({"seed": 0}))
    code.stamp_run(tmp_path, {"seed": 0, "newer": 1})
    assert "other code" in capsys.readouterr().err
    assert held(tmp_path)["code"] == [{}, code.code_identity()]
    older = {"seed": 0, "newer": 1, "code": code.code_identity()}
    (tmp_path / code.TRAIN_FILE).write_text(json.dumps(older))
    code.stamp_run(tmp_path, {"seed": 0, "newer": 1})
    assert capsys.readouterr().err == ""
