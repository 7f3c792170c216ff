"""Collected episodes in stable-worldmodel's HDF5 layout: the same numbers, twins as columns."""

import h5py
import numpy as np
import pytest

from interverse.data import CollectEpisodes, TwinFolder, collect_episodes, export_worldmodel


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
