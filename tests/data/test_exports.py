"""Collected episodes in other libraries' layouts: the same numbers, twins as columns, pictures."""

import io
import json
import sys

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from interverse.core.errors import MissingExtraError
from interverse.data import (
    Collect,
    CollectEpisodes,
    TwinFolder,
    collect,
    collect_episodes,
    export_lance,
    export_parquet,
    export_worldmodel,
    open_dataset,
    to_minari,
)
from interverse.data.exports import CARD_FILE, DATA_FILE

GRID = ({"object_0/color": 1}, {"object_0/position": [4, 4]})  # the second cell is taken
SLIDER = ({"gravity": -5.0}, {"box/mass": "B"})
SEED = 2**24 + 1  # the first that float32 cannot hold


def collected(out, id, twins, episodes=2, steps=4, **more):
    sizes = {"episodes": episodes, "steps": steps}
    return collect_episodes(CollectEpisodes(id=id, out=out, twins=twins, **sizes, **more))


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    return collected(tmp_path_factory.mktemp("data") / "d", "chemistry/chain-v1", GRID, 3)


@pytest.fixture(scope="module")
def slider(tmp_path_factory):
    return collected(tmp_path_factory.mktemp("data") / "d", "tutorial/slider-v1", SLIDER)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    pytest.importorskip("dm_control")
    out, options = tmp_path_factory.mktemp("data") / "d", {"observation": "state"}
    twins = ({"visual_seed": SEED},)
    return collected(out, "control/cartpole_balance-v1", twins, 1, 2, options=options)


# ----------------------------------------------------------------------------------- Hugging Face


def test_rows_are_moments_and_twins_are_columns(slider):
    table = pq.read_table(export_parquet(slider) / DATA_FILE)
    data = TwinFolder(slider)
    assert table.num_rows == 2 * 5
    for row in table.to_pylist():
        fact, step = data.facts[row["episode_index"]], row["frame_index"]
        twin = data.twin(row["episode_index"], 1)
        assert row["observation"] == fact.observations[step].tolist()
        assert row["twin_1.observation"] == twin.observations[step].tolist()
        assert row["twin_1.value.box/mass"] == twin.values["box/mass"][step]
        assert row["twin_0.value.gravity"] == -5.0
        assert row["twin_0.refused"] is None
        if step < 4:
            assert row["action"] == row["twin_1.action"] == fact.actions[step].tolist()
            assert row["next.reward"] == fact.rewards[step]
        else:
            assert row["action"] is None


def test_the_library_of_the_hub_reads_the_folder(slider, tmp_path):
    datasets = pytest.importorskip("datasets")
    out = export_parquet(slider, tmp_path / "hub")
    read = datasets.load_dataset(str(out), split="train", cache_dir=str(tmp_path / "cache"))
    assert read.num_rows == 10
    first = TwinFolder(slider).facts[0]
    assert np.array_equal(read[0]["observation"], first.observations[0])


def test_pictures_are_pictures(grid, tmp_path):
    image = pytest.importorskip("PIL.Image")
    out = export_parquet(grid, tmp_path / "hub")
    table = pq.read_table(out / DATA_FILE)
    known = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert known["observation.image"] == {"_type": "Image"}
    stored = table["observation.image"][0].as_py()["bytes"]
    fact = TwinFolder(grid).facts[0]
    assert np.array_equal(image.open(io.BytesIO(stored)), fact.observations["image"][0])
    assert "chemistry/chain-v1" in (out / CARD_FILE).read_text()


# ------------------------------------------------------------------------------ stable-worldmodel


def test_columns_hold_what_was_collected(grid):
    data = TwinFolder(grid)
    with h5py.File(export_worldmodel(grid)) as file:
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


def test_its_own_reader_opens_the_file(grid, tmp_path):
    formats = pytest.importorskip("stable_worldmodel.data.formats.hdf5")
    data = formats.HDF5Dataset(path=export_worldmodel(grid, tmp_path / "d.h5"), num_steps=2)
    assert len(data) == 9
    assert {"pixels", "action", "twin_0_pixels"} <= set(data[0])


def test_a_lance_table_holds_the_same(grid, tmp_path):
    lance = pytest.importorskip("lance")
    image = pytest.importorskip("PIL.Image")
    export_lance(grid, tmp_path / "d.lance")
    table = lance.dataset(str(export_lance(grid, tmp_path / "d.lance"))).to_table()  # replaced
    assert table["episode_idx"].to_pylist() == [0] * 4 + [1] * 4 + [2] * 4
    assert table["step_idx"].to_pylist() == [0, 1, 2, 3] * 3
    data = TwinFolder(grid)
    for row, stored in enumerate(table.to_pylist()):
        fact, twin = data.facts[row // 4], data.twin(row // 4, 0)
        assert stored["action"] == [fact.actions[row % 4]]
        assert stored["twin_0_value_object_0_color"] == [twin.values["object_0/color"][row % 4]]
        picture = np.asarray(image.open(io.BytesIO(stored["twin_0_pixels"])), dtype=np.int16)
        assert np.abs(picture - twin.observations["image"][row % 4]).mean() < 2


def test_of_stacked_pictures_a_row_holds_the_newest(tmp_path):
    lance, image = pytest.importorskip("lance"), pytest.importorskip("PIL.Image")
    pytest.importorskip("dm_control")
    looks = ({"light/diffuse": "A"},)
    folder = collected(tmp_path / "c", "control/cartpole_balance-v1", looks, 1, 2)
    data = TwinFolder(folder)
    newest = np.moveaxis(data.facts[0].observations[:2, -3:], 1, -1)
    with h5py.File(export_worldmodel(folder)) as file:
        np.testing.assert_array_equal(file["pixels"][:], newest)
        assert file["twin_0_pixels"].shape == newest.shape
    rows = lance.dataset(str(export_lance(folder))).to_table().to_pylist()
    seen = np.asarray(image.open(io.BytesIO(rows[1]["pixels"]))).astype(int)
    assert np.abs(seen - newest[1]).mean() < 4  # a JPEG
    table = pq.read_table(export_parquet(folder) / DATA_FILE)
    exact = np.asarray(image.open(io.BytesIO(table["observation"][1].as_py()["bytes"])))
    np.testing.assert_array_equal(exact, newest[1])


def test_whole_numbers_keep_their_value(seeded):
    drawn = TwinFolder(seeded).facts[0].values["dynamics_seed"][0]
    with h5py.File(export_worldmodel(seeded)) as file:
        assert file["twin_0_value_visual_seed"][:].tolist() == [[SEED], [SEED]]
        assert file["value_dynamics_seed"][0, 0] == drawn
        assert file["value_dynamics_seed"].dtype == np.int64
        assert file["action"].dtype == file["value_qpos"].dtype == np.float32
    lance = pytest.importorskip("lance")
    rows = lance.dataset(str(export_lance(seeded))).to_table().to_pylist()
    assert rows[0]["twin_0_value_visual_seed"] == [SEED]


# ----------------------------------------------------------------------------------------- Minari


@pytest.fixture
def minari(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return pytest.importorskip("minari")


def stored_grid(tmp_path):
    asked = Collect(id="blocks/observed-3-v1", episodes=3, steps=4, out=tmp_path / "d.h5")
    return open_dataset(collect(asked))


def test_a_missing_package_names_its_extra(grid, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(MissingExtraError, match=r"interverse\[lance\]"):
        export_lance(grid)
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(MissingExtraError, match=r"interverse\[minari\]"):
        to_minari(stored_grid(tmp_path), "interverse/blocks/test-v0")


def test_episodes_come_back_from_minari(tmp_path, minari):
    data = stored_grid(tmp_path)
    to_minari(data, "interverse/blocks-observed-3/test-v0", author="nobody")
    back = minari.load_dataset("interverse/blocks-observed-3/test-v0")
    assert back.total_episodes == 3
    for e, episode in enumerate(back.iterate_episodes()):
        np.testing.assert_array_equal(episode.observations["image"], data.images(e)[0])
        np.testing.assert_array_equal(episode.observations["state"], data.states[e])
        np.testing.assert_array_equal(episode.actions, data.actions[e])
        np.testing.assert_array_equal(episode.rewards, data.rewards[e])
        assert episode.truncations.tolist() == [False] * 3 + [True]


def test_every_episode_has_the_columns_of_its_twins(tmp_path, minari):
    twins = ({"box/mass": -3.0}, {"gravity": -5.0})  # the first cannot be
    data = TwinFolder(collected(tmp_path / "t", "tutorial/slider-v1", twins, 2, 3))
    assert [sum(reasons.values()) for reasons in data.refusals()] == [2, 0]
    to_minari(data, "interverse/slider/test-v0", author="nobody")
    for e, episode in enumerate(minari.load_dataset("interverse/slider/test-v0")):
        fact, told, twin = data.facts[e], episode.infos, data.twin(e, 1)
        np.testing.assert_array_equal(episode.observations, fact.observations)
        np.testing.assert_array_equal(episode.rewards, fact.rewards)
        np.testing.assert_array_equal(told["value.box.mass"], fact.values["box/mass"])
        assert told["twin_0.refused"].all()
        np.testing.assert_array_equal(told["twin_0.observations"], fact.observations)
        assert not told["twin_1.refused"].any()
        np.testing.assert_array_equal(told["twin_1.observations"], twin.observations)
        np.testing.assert_array_equal(
            told["twin_1.value.box.position"], twin.values["box/position"]
        )
        assert (told["twin_1.value.gravity"] == -5.0).all()
