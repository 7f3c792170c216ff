"""Collected episodes in the layouts of stable-worldmodel: the same numbers, twins as columns."""

import io
import sys

import h5py
import numpy as np
import pyarrow.parquet as parquet
import pytest

from interverse.core.errors import MissingExtraError
from interverse.data import (
    CollectEpisodes,
    TwinFolder,
    collect_episodes,
    export_lance,
    export_parquet,
    export_worldmodel,
)
from interverse.data.hub import DATA_FILE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("data") / "twins"
    twins = ({"object_0/color": 1}, {"object_0/position": [4, 4]})  # the second cell is taken
    sizes = {"episodes": 3, "steps": 4}
    return collect_episodes(CollectEpisodes(id="chemistry/chain-v1", out=out, twins=twins, **sizes))


def test_columns_hold_what_was_collected(folder):
    data = TwinFolder(folder)
    with h5py.File(export_worldmodel(folder)) as file:
        assert file["ep_len"][:].tolist() == [4, 4, 4]
        assert file["ep_offset"][:].tolist() == [0, 4, 8]
        for number, fact in enumerate(data.facts):
            rows = slice(4 * number, 4 * number + 4)
            assert np.array_equal(file["pixels"][rows], fact.observations["image"][:4])
            assert np.array_equal(file["action"][rows, 0], fact.actions)
            assert np.array_equal(file["reward"][rows, 0], fact.rewards.astype(np.float32))
            assert (file["twin_0_value_object_0.color"][0 + rows.start] == 1).all()
            twin = data.twin(number, 0)
            assert np.array_equal(file["twin_0_pixels"][rows], twin.observations["image"][:4])
            assert (file["twin_1_refused"][rows] == 1).all()
            assert (file["twin_0_refused"][rows] == 0).all()


def test_its_own_reader_opens_the_file(folder, tmp_path):
    formats = pytest.importorskip("stable_worldmodel.data.formats.hdf5")
    data = formats.HDF5Dataset(path=export_worldmodel(folder, tmp_path / "d.h5"), num_steps=2)
    assert len(data) == 9
    assert {"pixels", "action", "twin_0_pixels"} <= set(data[0])


def test_a_lance_table_holds_the_same(folder, tmp_path):
    lance = pytest.importorskip("lance")
    image = pytest.importorskip("PIL.Image")
    export_lance(folder, tmp_path / "d.lance")
    table = lance.dataset(str(export_lance(folder, tmp_path / "d.lance"))).to_table()  # replaced
    assert table["episode_idx"].to_pylist() == [0] * 4 + [1] * 4 + [2] * 4
    assert table["step_idx"].to_pylist() == [0, 1, 2, 3] * 3
    data = TwinFolder(folder)
    for row, stored in enumerate(table.to_pylist()):
        fact, twin = data.facts[row // 4], data.twin(row // 4, 0)
        assert stored["action"] == [fact.actions[row % 4]]
        assert stored["twin_0_value_object_0_color"] == [twin.values["object_0/color"][row % 4]]
        picture = np.asarray(image.open(io.BytesIO(stored["twin_0_pixels"])), dtype=np.int16)
        assert np.abs(picture - twin.observations["image"][row % 4]).mean() < 2


def test_a_missing_package_names_its_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(MissingExtraError, match=r"interverse\[lance\]"):
        export_lance(folder)


def test_of_stacked_pictures_a_row_holds_the_newest(tmp_path):
    lance, image = pytest.importorskip("lance"), pytest.importorskip("PIL.Image")
    pytest.importorskip("dm_control")
    looks = ({"light/diffuse": "A"},)
    config = CollectEpisodes(
        id="control/cartpole_balance-v1", out=tmp_path / "c", episodes=1, steps=2, twins=looks
    )
    folder = collect_episodes(config)
    data = TwinFolder(folder)
    newest = np.moveaxis(data.facts[0].observations[:2, -3:], 1, -1)
    with h5py.File(export_worldmodel(folder)) as file:
        np.testing.assert_array_equal(file["pixels"][:], newest)
        assert file["twin_0_pixels"].shape == newest.shape
    rows = lance.dataset(str(export_lance(folder))).to_table().to_pylist()
    seen = np.asarray(image.open(io.BytesIO(rows[1]["pixels"]))).astype(int)
    assert np.abs(seen - newest[1]).mean() < 4  # a JPEG
    table = parquet.read_table(export_parquet(folder) / DATA_FILE)
    exact = np.asarray(image.open(io.BytesIO(table["observation"][1].as_py()["bytes"])))
    np.testing.assert_array_equal(exact, newest[1])


SEED = 2**24 + 1  # the first that float32 cannot hold


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    pytest.importorskip("dm_control")
    config = CollectEpisodes(
        id="control/cartpole_balance-v1",
        out=tmp_path_factory.mktemp("seeded") / "c",
        episodes=1,
        steps=2,
        twins=({"visual_seed": SEED},),
        options={"observation": "state"},
    )
    return collect_episodes(config)


def test_whole_numbers_keep_their_value(seeded):
    drawn = TwinFolder(seeded).facts[0].values["dynamics_seed"][0]
    with h5py.File(export_worldmodel(seeded)) as file:
        assert file["twin_0_value_visual_seed"][:].tolist() == [[SEED], [SEED]]
        assert file["value_dynamics_seed"][0, 0] == drawn
        assert file["value_dynamics_seed"].dtype == np.int64
        assert file["action"].dtype == file["value_qpos"].dtype == np.float32


def test_whole_numbers_keep_their_value_in_lance(seeded):
    lance = pytest.importorskip("lance")
    rows = lance.dataset(str(export_lance(seeded))).to_table().to_pylist()
    assert rows[0]["twin_0_value_visual_seed"] == [SEED]
