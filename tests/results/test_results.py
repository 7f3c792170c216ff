"""The tidy table: what it takes, what it refuses, and how it is kept."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interverse.core.errors import (
    FileFormatError,
    InvalidValueError,
    StorageError,
    UnknownNameError,
)
from interverse.results import Results, highlights, schema
from interverse.results.provenance import versions
from interverse.results.schema import CONTRACT
from tests.results import synthetic

ROW = {"task": "blocks/observed-3-v1", "protocol": "P0", "seed": 0, "episode": 0}
CODE = "from interverse.results.provenance import command; print(command())"


def test_columns_are_those_of_the_contract_then_ours():
    results = synthetic.results()
    assert results.data.column_names == [
        *CONTRACT,
        "experiment",
        "step",
        "solved",
        "value:block_0/mass",
        "value:block_0/size",
    ]
    names = "last_fractional_success mean_fractional_success last20_fractional_success return"
    assert " ".join(CONTRACT) == f"task protocol seed episode {names} length refused reason"


def test_what_a_world_lacks_is_null():
    results = Results.from_rows([ROW | {"return": -0.5, "mean_fractional_success": float("nan")}])
    (row,) = results.data.to_pylist()
    assert row["last_fractional_success"] is row["mean_fractional_success"] is row["reason"] is None
    assert row["refused"] is False
    assert results.metrics == ["return"]
    assert results.experiments == ["policy"]


def test_an_empty_table_works():
    empty = Results()
    assert len(empty) == 0
    assert empty.tasks == empty.protocols == empty.metrics == empty.variables == []
    assert empty.scores("return").shape == (0,)
    assert len(empty.final()) == len(Results.concat([])) == 0
    assert "protocol" in empty.table()
    assert highlights(empty) == []


def test_refused_episodes_are_kept_and_never_scored():
    results = synthetic.results(refuse=(0, 5))
    assert results.refused.sum() == 2
    assert np.isnan(results.scores("return")[results.refused]).all()
    assert not np.isnan(results.scores("return")[~results.refused]).any()
    with pytest.raises(InvalidValueError, match="a refused episode has a return"):
        Results.from_rows([ROW | {"refused": True, "return": 1.0}])


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([{"task": "t", "protocol": "P0", "seed": 0}], "lack the column 'episode'"),
        ([ROW, ROW | {"episode": None}], "episode is null in 1 rows"),
        ([ROW, ROW], "more than once: experiment='policy', task='blocks/observed-3-v1'"),
        ([ROW | {"sucess": 1.0}], r"unknown result columns \['sucess'\]"),
        ([ROW | {"seed": "zero"}], "column 'seed' is string"),
        ([ROW, ROW | {"episode": "one"}], "do not form a table"),
    ],
)
def test_bad_rows_are_refused(rows, text):
    with pytest.raises(InvalidValueError, match=text):
        Results.from_rows(rows)


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda _: Results.from_rows([ROW], {"policy": object()}), "cannot be written as JSON"),
        (lambda _: Results(data={}), "data is a dict"),
        (lambda known: known.scores("retrun"), "Did you mean 'return'"),
        (lambda known: known.values("block_0/mas"), "Did you mean 'block_0/mass'"),
        (lambda known: known.select(protocl="P0"), "Did you mean 'protocol'"),
        (lambda known: known.select(protocol=3), "protocol is 3, and the column holds string"),
        (lambda known: known.table(metrics=3), "metrics is 3"),
        (lambda known: known.to_parquet(None), "path is None"),
        (lambda _: Results.from_parquet(5), "path is 5"),
    ],
)
def test_what_no_table_can_take_is_named(ask, told):
    error = UnknownNameError if "Did you mean" in told else InvalidValueError
    with pytest.raises(error, match=told):
        ask(synthetic.results())


def test_further_scores_have_their_own_columns():
    results = Results.from_rows([ROW | {"score:time_to_success": float("inf")}])
    assert results.metrics == ["time_to_success"]
    assert results.scores("time_to_success").tolist() == [np.inf]


def test_values_come_as_components_and_nan_where_not_set():
    results = synthetic.results()
    assert results.values("block_0/mass").shape == (100, 1)
    assert results.values("block_0/size").shape == (100, 3)
    unset = results.column("protocol") == "P0"
    assert np.isnan(results.values("block_0/size")[unset]).all()


def test_protocols_are_sorted_by_number():
    assert synthetic.results().protocols == ["P0", "P1", "P2", "P3", "P10"]


def test_final_keeps_every_seed_at_its_own_last_step():
    rows = [
        ROW | {"seed": s, "episode": e, "step": step, "return": 10.0 * s + e}
        for s in range(3)
        for e in range(3)
        for step in (500, 1000 - s)
    ]
    last = Results.from_rows(rows).final()
    assert set(zip(last.column("seed"), last.column("step"), strict=True)) == {
        (0, 1000),
        (1, 999),
        (2, 998),
    }
    assert len(last) == 9


def test_select_and_named_and_final():
    early, late = synthetic.results(0.5, step=1000), synthetic.results(0.9, step=2000)
    both = Results.concat([early, late])
    assert len(both) == 200
    assert both.final().data["step"].unique().to_pylist() == [2000]
    assert len(both.select(protocol="P3", step=1000)) == 20
    assert both.named("b").experiments == ["b"]
    some = both.select(protocol=["P3", "P1"], step=1000)
    assert (len(some), some.protocols) == (40, ["P1", "P3"])
    two = both.select(protocol=["P1", "P3"]).select(seed=[0], episode=0, step=1000)
    assert two.select(protocol=["P3", "P1"]).protocols == ["P1", "P3"]
    with pytest.raises(InvalidValueError, match=r"protocol is \[3\], and the column holds string"):
        both.select(protocol=[3])


def test_concat_joins_provenance_and_refuses_doubles():
    first, second = synthetic.results().named("a"), synthetic.results().named("b")
    both = Results.concat([first, second])
    assert both.experiments == ["a", "b"]
    assert both.provenance == first.provenance
    with pytest.raises(InvalidValueError, match=r"more than once.*results\.named"):
        Results.concat([first, first])
    other = Results.from_rows([ROW], {"command": "another", "protocols": {"Q": {"variables": {}}}})
    joined = Results.concat([first, other]).provenance
    assert joined["command"].splitlines()[1] == "another"
    assert set(joined["protocols"]) == {*synthetic.PROTOCOLS, "Q"}
    clash = Results.from_rows([ROW | {"value:block_0/size": 1.0}])
    with pytest.raises(InvalidValueError, match="do not fit together"):
        Results.concat([first, clash])


def test_parquet_keeps_everything(tmp_path):
    results = synthetic.results().named("ppo")
    path = results.to_parquet(tmp_path / "new" / "results.parquet")
    back = Results.from_parquet(path)
    assert back.data.equals(results.data)
    assert back.provenance == results.provenance
    assert [f.name for f in path.parent.iterdir()] == ["results.parquet"]


def test_equal_results_give_equal_bytes(tmp_path):
    paths = [synthetic.results().to_parquet(tmp_path / f"{i}.parquet") for i in (0, 1)]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = synthetic.results().to_parquet(tmp_path / "results.parquet")
    before = path.read_bytes()

    def fail(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        synthetic.results(0.1).to_parquet(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@given(cut=st.floats(0, 0.999))
def test_truncated_files_are_refused(tmp_path_factory, cut):
    path = synthetic.results(episodes=2, refuse=()).to_parquet(
        tmp_path_factory.mktemp("cut") / "results.parquet"
    )
    whole = path.read_bytes()
    path.write_bytes(whole[: int(cut * len(whole))])
    with pytest.raises(FileFormatError, match="truncated or not a Parquet file"):
        Results.from_parquet(path)


def test_other_files_and_versions_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InvalidValueError, match=r"there is no file .*none\.parquet"):
        Results.from_parquet(tmp_path / "none.parquet")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "plain.parquet")
    with pytest.raises(FileFormatError, match="not one of results"):
        Results.from_parquet(tmp_path / "plain.parquet")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "__version__", "0.0.1")
        path = synthetic.results().to_parquet(tmp_path / "old.parquet")
    with pytest.raises(FileFormatError, match=r"made by interverse 0\.0\.1.*any_version=True"):
        Results.from_parquet(path)
    assert len(Results.from_parquet(path, any_version=True)) == 100
    with monkeypatch.context() as patch:
        patch.setattr(schema, "FORMAT", "interverse-results-9")
        path = synthetic.results().to_parquet(tmp_path / "format.parquet")
    with pytest.raises(FileFormatError, match="format 'interverse-results-9'"):
        Results.from_parquet(path, any_version=True)


def test_pandas_has_the_same_rows():
    frame = synthetic.results().to_pandas()
    assert frame.groupby("protocol")["return"].count()["P2"] == 19
    assert frame["refused"].dtype == bool


def test_highlights_are_the_extremes_and_the_middle():
    results = Results.from_rows(
        ROW | {"episode": i, "last_fractional_success": s} for i, s in enumerate([0.4, 0.9, 0.1])
    )
    found = {h.label: (h.episode, h.score) for h in highlights(results)}
    assert found == {"best": (1, 0.9), "median": (0, 0.4), "worst": (2, 0.1)}
    assert highlights(results)[0].caption == "policy, best: 0.90 (P0, seed 0, episode 1)"


def test_versions_are_those_installed():
    assert versions()["numpy"] == np.__version__


@pytest.mark.parametrize(
    ("how", "known"),
    [
        (["-c", CODE, "a b"], f"python -c '{CODE}' 'a b'"),
        (["run.py", "--x", "1"], "python run.py --x 1"),
        (["-m", "run", "--x"], "python -m run --x"),
    ],
)
def test_the_command_can_be_pasted(how, known, tmp_path, repository):
    (tmp_path / "run.py").write_text(CODE)
    found = subprocess.run(
        [sys.executable, *how],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == known


def test_a_folder_is_no_file_to_write_to(tmp_path):
    results = synthetic.results()
    with pytest.raises(StorageError, match="is a folder"):
        results.to_parquet(tmp_path)
    (tmp_path / "a_file").write_text("")
    with pytest.raises(StorageError, match=r"a_file is a file\. Allowed: a folder"):
        results.to_parquet(tmp_path / "a_file" / "results.parquet")


def test_a_table_of_one_metric():
    results = synthetic.results()
    name = results.metrics[0]
    assert results.table("csv", metrics=name) == results.table("csv", metrics=[name])


def test_a_range_that_parts_disagree_on_is_not_known_of_the_whole():
    """Episodes of other lengths have other best returns; the last part's stood for all."""
    parts = [
        Results.from_rows(
            [{**ROW, "experiment": name, "return": 1.0}],
            {"ranges": {ROW["task"]: {"return": [0.0, most], "success": [0.0, 1.0]}}},
        )
        for name, most in (("long", 50.0), ("short", 2.0))
    ]
    for order in (parts, parts[::-1]):
        joined = Results.concat(order).provenance["ranges"]
        assert joined == {ROW["task"]: {"success": [0.0, 1.0]}}
