"""`verify` catches one altered score however it was altered; `diff` says what differs."""

import pytest

import interverse as iv
from interverse.agents.policies import trained_policy
from interverse.cli import main
from interverse.core.errors import InvalidValueError
from interverse.protocols.record import write_index
from interverse.protocols.verify import VerificationError, verify
from interverse.results import Results
from interverse.rollouts.policy import load_policy

SETTINGS = dict(task="tutorial/slider-v1", protocols="P0,P1", episodes=6, max_steps=6)


@pytest.fixture
def folder(tmp_path):
    metrics = ["peak_success", "time_to_success"]
    iv.evaluate("random", out=tmp_path / "e", metrics=metrics, **SETTINGS)
    return tmp_path / "e"


def alter(path, row=3):
    """Changes one score by the last bit but a few, and writes an honest-looking file."""
    held = Results.from_parquet(path)
    rows = held.data.to_pylist()
    rows[row]["return"] += 1e-12
    Results.from_rows(rows, held.provenance).to_parquet(path)


def test_honest_results_are_verified(folder, capsys):
    verdict = verify(folder, episodes=None)
    assert verdict.problems == ()
    assert (verdict.episodes, verdict.files) == (12, 4)
    assert main(["verify", str(folder), "--episodes", "3"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("VERIFIED")
    assert "3 episodes played again, equal bit for bit" in said


def test_a_policy_can_be_told_by_its_name(folder, capsys):
    assert main(["verify", str(folder), "--episodes", "3", "--policy", "random"]) == 0
    assert capsys.readouterr().out.startswith("VERIFIED")
    assert main(["verify", str(folder), "--policy", "scripted"]) == 2
    assert "the policy scripted is another one than was scored" in capsys.readouterr().err
    assert main(["verify", str(folder), "--policy", "randon"]) == 2
    assert "unknown policy 'randon'. Did you mean 'random'?" in capsys.readouterr().err


def test_a_folder_stands_for_the_policy_that_was_loaded_from_it(tmp_path):
    of, task = trained_policy("pushing_1"), "trifinger/pushing-v1"
    loaded, options = load_policy(of), {"skip_frame": 3, "max_steps": 2}
    iv.evaluate(loaded, task, protocols="P0", episodes=1, out=tmp_path / "e", **options)
    assert verify(tmp_path / "e", policy=str(of)).problems == ()
    with pytest.raises(VerificationError, match="is another one than was scored"):
        verify(tmp_path / "e", policy=str(trained_policy("pushing_2")))


@pytest.mark.parametrize("cover", ["none", "index", "units"])
def test_one_altered_score_is_caught(folder, capsys, cover):
    alter(folder / "results.parquet")
    if cover == "units":
        alter(sorted((folder / "units").iterdir())[0])
    if cover != "none":
        write_index(folder)
    assert main(["verify", str(folder), "--all"]) == 2
    said = capsys.readouterr().err
    assert "NOT VERIFIED" in said
    assert "return of protocol P0, seed 0, episode 3" in said


def test_files_that_results_name_are_not_opened(tmp_path):
    def still(seen):
        import numpy as np

        return np.zeros((len(seen), 2), np.float32)

    iv.evaluate(still, out=tmp_path, **SETTINGS)
    with pytest.raises(InvalidValueError, match="do not hold their policy"):
        verify(tmp_path)
    assert verify(tmp_path, policy=still).problems == ()
    assert "NOT VERIFIED" in str(verify(tmp_path, policy="random"))


def test_diff_says_what_differs_and_whether_it_matters(folder, tmp_path, capsys):
    assert main(["diff", str(folder), str(folder)]) == 0
    assert "equal to the last bit" in capsys.readouterr().out
    other = {**SETTINGS, "max_steps": 7}
    iv.evaluate("random", out=tmp_path / "o", **other)
    assert main(["diff", str(folder), str(tmp_path / "o")]) == 0
    said = capsys.readouterr().out
    assert "options.max_steps" in said
    assert "It matters" in said or "chance" in said


def rewrite(folder, change):
    """Alters the rows of table and units alike, and writes honest-looking files."""
    for path in (folder / "results.parquet", *sorted((folder / "units").iterdir())):
        held = Results.from_parquet(path)
        Results.from_rows(change(held.data.to_pylist()), held.provenance).to_parquet(path)
    write_index(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: [r for r in rows if r["episode"] != 2], "episode 2 is missing"),
        (lambda rows: [rows[0] | {"protocol": "x"}, *rows[1:]], "episode 0 is not of this"),
    ],
)
def test_rows_left_out_or_made_up_are_caught(folder, change, words):
    rewrite(folder, change)
    assert any(words in problem for problem in verify(folder, episodes=None).problems)


REACHING = dict(task="trifinger/reaching-v1", protocols="P0", episodes=2, max_steps=4)


def test_contacts_are_decided_where_the_command_starts_and_stand_in_every_row(tmp_path, missing):
    """A machine that cannot do the same refuses: it never plays something else in silence."""
    results = iv.evaluate("random", out=tmp_path / "exact", **REACHING)
    assert all("contact=exact" in told for told in results.column("settings"))
    assert "friction solver" in results.provenance["versions"]
    missing.append("there is no C compiler")
    with pytest.raises(InvalidValueError, match=r'contact is "exact".*there is no C compiler'):
        verify(tmp_path / "exact")
    with pytest.warns(UserWarning, match="contact is convex, not exact: there is no C compiler"):
        results = iv.evaluate("random", out=tmp_path / "convex", **REACHING)
    assert all("contact=convex" in told for told in results.column("settings"))
    assert results.provenance["engine"]["contact"] == "convex"
    missing.clear()
    assert verify(tmp_path / "convex").problems == ()


@pytest.fixture
def missing(monkeypatch):
    """Why there are no exact contacts; nothing while it is empty."""
    from interverse.sim import coulomb

    reasons, real = [], coulomb.missing
    monkeypatch.setattr(coulomb, "missing", lambda: reasons[0] if reasons else real())
    return reasons
