"""A folder of results belongs to one policy, one code, one engine; its numbers are checked."""

import functools
import json
import types

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import interverse as iv
from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.protocols.fingerprint import fingerprint
from interverse.protocols.measures import Metric
from interverse.protocols.protocol import Protocol
from interverse.protocols.verify import verify
from interverse.results import Results

SLIDER = "tutorial/slider-v1"
SETTINGS = dict(task=SLIDER, protocols="P1", episodes=3, max_steps=5)
GAIN = 0.0


def constant(seen):
    return np.full((len(seen), 2), GAIN, np.float32)


def helper(seen):
    return constant(seen)


def outer(seen):
    def inner():
        return constant(seen)

    return inner()


def scaled(gain, seen):
    return np.full((len(seen), 2), gain, np.float32)


class Holder:
    def __init__(self, gain):
        self.gain = gain
        self.module = types  # cannot be pickled

    def act(self, seen):
        return scaled(self.gain, seen)

    def __call__(self, seen):
        return self.act(seen) if isinstance(seen, np.ndarray) else self.gain


def weighted(steps):
    return GAIN + float(np.abs(steps.actions).sum())


def policies():
    return {
        "a module constant": constant,
        "a helper": helper,
        "an inner function": outer,
        "class code": type("Made", (), {"__call__": lambda self, seen: constant(seen)})(),
        "a partial": functools.partial(scaled, 0.5),
        "a bound method": Holder(0.5).act,
        "an unpicklable object": Holder(0.5),
        "a lambda": lambda seen: constant(seen),
    }


@pytest.mark.parametrize("kind", policies())
def test_a_callable_of_unknown_content_goes_on_where_it_acts_as_it_did(tmp_path, kind, monkeypatch):
    settings = SETTINGS | {"out": tmp_path, "experiment": "p"}
    iv.evaluate(policies()[kind], **settings)
    more = iv.evaluate(policies()[kind], **settings | {"episodes": 5})
    assert len(more) == 5
    monkeypatch.setitem(globals(), "GAIN", 0.25)
    other = functools.partial(scaled, 0.25)
    with pytest.raises(InvalidValueError, match=r"an episode played again came out.*version="):
        iv.evaluate(other, **settings)
    assert len(Results.from_parquet(tmp_path / "results.parquet")) == 5, "nothing is written over"


def test_a_version_of_the_users_own_resumes_and_another_does_not(tmp_path):
    first = iv.evaluate(constant, out=tmp_path, version="1", **SETTINGS)
    again = iv.evaluate(constant, out=tmp_path, version="1", **SETTINGS)
    assert again.data.equals(first.data)
    with pytest.raises(InvalidValueError, match="policy_version '1' there, '2' here"):
        iv.evaluate(constant, out=tmp_path, version="2", **SETTINGS)


def test_a_metric_of_unknown_content_goes_on_where_it_scores_as_it_did(tmp_path):
    for _ in range(2):
        effort = Metric(name="effort", function=Holder(0.5))
        iv.evaluate("random", out=tmp_path, metrics=[effort], **SETTINGS)
    other = Metric(name="effort", function=Holder(0.25))
    with pytest.raises(InvalidValueError, match="an episode played again came out otherwise"):
        iv.evaluate("random", out=tmp_path, metrics=[other], **SETTINGS)


def test_the_table_is_made_of_all_units(tmp_path):
    """Another seed, other protocols and fewer episodes add to a folder and take nothing away."""
    settings = SETTINGS | {"out": tmp_path}
    iv.evaluate("random", **settings | {"episodes": 52})
    few = iv.evaluate("random", **settings | {"episodes": 2})
    assert len(few) == 2
    iv.evaluate("random", **settings | {"seed": 7})
    iv.evaluate("random", **settings | {"protocols": "P0,P2"})
    table = Results.from_parquet(tmp_path / "results.parquet")
    counts = {
        (p, s): len(table.select(protocol=p, seed=s)) for p in table.protocols for s in (0, 7)
    }
    assert counts == {
        ("P0", 0): 3,
        ("P0", 7): 0,
        ("P1", 0): 52,
        ("P1", 7): 3,
        ("P2", 0): 3,
        ("P2", 7): 0,
    }
    assert set(table.provenance["protocols"]) == {"P0", "P1", "P2"}
    verdict = verify(tmp_path, episodes=10)
    assert verdict.problems == (), verdict
    lost = next((tmp_path / "units").glob("P1-seed7*"))
    lost.unlink()
    assert any("missing" in problem for problem in verify(tmp_path, episodes=1).problems)


def test_a_comment_more_in_the_viewer_does_not_stop_an_evaluation(tmp_path, monkeypatch, capsys):
    from interverse.core import code

    iv.evaluate("random", out=tmp_path, **SETTINGS)
    monkeypatch.setattr(code, "code_hash", lambda: "one comment more")
    assert len(iv.evaluate("random", out=tmp_path, **SETTINGS | {"episodes": 5})) == 5
    assert "begun with other code (package)" in capsys.readouterr().err
    with pytest.raises(InvalidValueError, match=r"another evaluation: options\.max_steps 5 there"):
        iv.evaluate("random", out=tmp_path, **SETTINGS | {"max_steps": 6})


def test_a_metric_is_known_by_its_code_and_the_constants_it_reads(tmp_path, monkeypatch):
    iv.evaluate("random", out=tmp_path, metrics=[weighted], **SETTINGS)
    iv.evaluate("random", out=tmp_path, metrics=[weighted], **SETTINGS)
    monkeypatch.setitem(globals(), "GAIN", 3.0)
    with pytest.raises(InvalidValueError, match="metrics"):
        iv.evaluate("random", out=tmp_path, metrics=[weighted], **SETTINGS)


def test_a_torch_module_is_known_by_weights_attributes_and_code():
    torch = pytest.importorskip("torch")

    def make(gain=1.0, body="return self.line(seen) * self.gain", constant=1.0):
        space = {"__name__": "users_module", "torch": torch, "CONSTANT": constant}
        lines = ["class Net(torch.nn.Module):", "    def __init__(self, gain):"]
        lines += ["        super().__init__()", "        self.line = torch.nn.Linear(2, 1)"]
        lines += ["        self.gain = gain", "    def forward(self, seen):", f"        {body}"]
        exec("\n".join(lines), space)  # a class as a user's module would define it
        torch.manual_seed(0)
        return space["Net"](gain)

    known = fingerprint(make())
    assert known is not None
    assert known == fingerprint(make())
    changed = make()
    changed.line.weight.data += 1e-3
    others = [changed, make(gain=2.0), make(body="return self.line(seen) + self.gain")]
    first, second = (make(body="return self.line(seen) * CONSTANT", constant=c) for c in (1.0, 2.0))
    hashes = [known, *map(fingerprint, [*others, first, second])]
    assert None not in hashes
    assert len(set(hashes)) == len(hashes)
    unknown = make()
    unknown.gain = Holder(1.0)
    assert fingerprint(unknown) is None


def test_other_code_or_libraries_are_told_recorded_and_go_on(tmp_path, capsys):
    first = iv.evaluate("random", out=tmp_path, **SETTINGS)
    held = json.loads((tmp_path / "run.json").read_text())
    assert {"package", "mujoco", "numpy"} <= held["code"][0].keys()
    held["code"][0]["mujoco"] = "3.0.0"
    (tmp_path / "run.json").write_text(json.dumps(held))
    again = iv.evaluate("random", out=tmp_path, **SETTINGS)
    assert "begun with other code (mujoco)" in capsys.readouterr().err
    assert again.data.equals(first.data)
    assert again.provenance["earlier_code"][0]["mujoco"] == "3.0.0"
    assert "played with other code than the results: mujoco" in verify(tmp_path).notes
    assert verify(tmp_path).problems == ()


def edit(path):
    """Changes one number of a table and leaves all else, its metadata too, as it was."""
    table = pq.read_table(path)
    place = table.column_names.index("return")
    values = [v + 1.0 for v in table["return"].to_pylist()]
    pq.write_table(table.set_column(place, "return", pa.array(values)), path)


def test_an_edited_unit_is_played_again(tmp_path, caplog):
    first = iv.evaluate("random", out=tmp_path, **SETTINGS)
    for unit in (tmp_path / "units").iterdir():
        edit(unit)
    again = iv.evaluate("random", out=tmp_path, **SETTINGS)
    assert again.data.equals(first.data)
    assert "played again" in caplog.text


def test_edited_rows_do_not_open_even_without_an_index(tmp_path):
    first = iv.evaluate("random", out=tmp_path, **SETTINGS)
    (tmp_path / "index.json").unlink()
    (unit,) = (tmp_path / "units").iterdir()
    edit(unit)
    with pytest.raises(FileFormatError, match="do not match their hash"):
        Results.from_parquet(unit)
    assert iv.evaluate("random", out=tmp_path, **SETTINGS).data.equals(first.data)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"task": 1}', "\x00\xff"])
def test_a_corrupt_run_file_is_a_typed_error(tmp_path, text):
    iv.evaluate("random", out=tmp_path, **SETTINGS)
    (tmp_path / "run.json").write_text(text)
    with pytest.raises((FileFormatError, InvalidValueError)):
        iv.evaluate("random", out=tmp_path, **SETTINGS)


def test_a_protocol_named_like_a_variable_stays_in_the_folder(tmp_path):
    protocol = Protocol(name="box/mass", variables={"box/mass": "B"})
    settings = {**SETTINGS, "protocols": [protocol], "out": tmp_path / "e"}
    first = iv.evaluate("random", **settings)
    assert iv.evaluate("random", **settings).data.equals(first.data)
    assert [file.name for file in (tmp_path / "e" / "units").iterdir()] == [
        "box%2Fmass-seed0-unit0000.parquet"
    ]


def test_arrays_among_the_options_are_recorded_as_lists(tmp_path):
    graph = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    given = {"task": "chemistry/custom-v1", "episodes": 2, "objects": 3, "max_steps": 3}
    first = iv.evaluate("random", **given, graph=graph, out=tmp_path / "a")
    assert verify(tmp_path / "a").problems == ()
    again = iv.evaluate("random", **given, graph=graph.tolist(), out=tmp_path / "a")
    assert first.data.equals(again.data)


def test_arrays_that_print_alike_are_told_apart(tmp_path):
    given = {"task": "tutorial/slider-v1", "protocols": "P0", "episodes": 1, "max_steps": 1}
    one, other = (np.array([size] * 3) for size in (0.15, 0.150000001))
    iv.evaluate("random", **given, defaults={"box/size": one}, out=tmp_path / "a")
    with pytest.raises(InvalidValueError):
        iv.evaluate("random", **given, defaults={"box/size": other}, out=tmp_path / "a")
