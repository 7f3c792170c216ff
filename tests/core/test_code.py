"""A training folder is tied to its config and to the code that began it."""

from __future__ import annotations

import json

import pytest

from interverse.core import code
from interverse.core.errors import InvalidValueError


def held(folder):
    return json.loads((folder / code.TRAIN_FILE).read_text())


def test_a_folder_goes_on_with_more_steps(tmp_path):
    code.claim_run(tmp_path, {"seed": 0, "steps": 5})
    code.claim_run(tmp_path, {"seed": 0, "steps": 9})
    assert held(tmp_path)["steps"] == 9
    assert held(tmp_path)["code"] == [code.code_identity()]


def test_another_config_is_refused_with_both_sides(tmp_path):
    code.claim_run(tmp_path, {"seed": 0})
    with pytest.raises(InvalidValueError, match="seed 0 there, 1 here"):
        code.claim_run(tmp_path, {"seed": 1}, allow_other_code=True)


def test_of_tables_only_what_differs_is_named(tmp_path):
    code.claim_run(tmp_path, {"hyper": {"gamma": 0.9, "batch": 64}})
    with pytest.raises(InvalidValueError, match=r"run: hyper\.gamma 0\.9 there, 0\.8 here\."):
        code.claim_run(tmp_path, {"hyper": {"gamma": 0.8, "batch": 64}})


def test_other_code_is_refused_unless_allowed_and_then_written_down(tmp_path, monkeypatch):
    code.claim_run(tmp_path, {"seed": 0})
    first = code.code_identity()
    monkeypatch.setattr(code, "code_hash", lambda: "edited")
    with pytest.raises(InvalidValueError, match=r"package differ.*--allow-other-code"):
        code.claim_run(tmp_path, {"seed": 0})
    code.claim_run(tmp_path, {"seed": 0}, allow_other_code=True)
    assert held(tmp_path)["code"] == [first, code.code_identity()]
    code.claim_run(tmp_path, {"seed": 0})  # what was allowed goes on


def test_a_folder_that_names_no_code_is_other_code(tmp_path):
    (tmp_path / code.TRAIN_FILE).write_text(json.dumps({"seed": 0}))
    with pytest.raises(InvalidValueError, match="other code"):
        code.claim_run(tmp_path, {"seed": 0})
