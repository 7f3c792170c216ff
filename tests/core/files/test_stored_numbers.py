"""Stored numbers are checked: parts, labels of pairs, versions of data sets, paths in an index."""

import json

import h5py
import numpy as np
import pytest

from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.core.files.atomic import cache_folder, datasets_folder
from interverse.data import load_dataset
from interverse.data.dataset import arrays_hash, open_dataset
from interverse.data.generate import Collect, collect
from interverse.data.pairs import shards
from interverse.data.pairs.shards import PairHeader
from tests.core.files.test_fuzz import _pairs_index


@pytest.mark.parametrize("name", ["actions", "images"])
def test_an_edited_shard_is_played_again(tmp_path, name):
    config = Collect(id="blocks/observed-3-v1", out=tmp_path / "d", episodes=2, images=True)
    collect(config)
    (path,) = config.out.glob("*.h5")
    whole = path.read_bytes()
    with h5py.File(path, "r+") as file:
        held = file[name][()]
        held.flat[0] ^= 1
        file[name][...] = held
    assert path.read_bytes() != whole
    collect(config)
    assert path.read_bytes() == whole


def test_a_data_set_of_another_version_is_not_taken_for_ones_own(tmp_path):
    config = Collect(id="blocks/observed-3-v1", out=tmp_path / "a.h5", episodes=2, steps=3)
    collect(config)
    with h5py.File(config.out, "r+") as file:
        header = json.loads(file.attrs["header"])
        file.attrs["header"] = json.dumps({**header, "version": "0.0.1"}, sort_keys=True)
    with pytest.raises(InvalidValueError, match=r"made by interverse 0\.0\.1"):
        collect(config)
    load_dataset("blocks/observed-3-v1", "test", folder=tmp_path / "cache", episodes=2)
    (file,) = (tmp_path / "cache").glob("*.h5")
    assert f"-{header['version']}-" in file.name


def test_an_altered_picture_of_a_finished_data_set_is_noticed(tmp_path):
    config = Collect(id="blocks/observed-3-v1", out=tmp_path / "d.h5", episodes=3, images=True)
    collect(config)
    whole = open_dataset(config.out).images()
    with h5py.File(config.out, "r+") as file:
        file["images"][1, 0, 0, 0, 0] ^= 1
    data = open_dataset(config.out)
    assert np.array_equal(data.images([0, 2]), whole[[0, 2]])
    with pytest.raises(FileFormatError, match="pictures of episode 1 were changed"):
        data.images()
    with h5py.File(config.out, "r+") as file:
        file["checks/images"][1] = 7
    with pytest.raises(FileFormatError, match="checksums of the pictures were changed"):
        data.images([0])
    with h5py.File(config.out, "r+") as file:
        del file.attrs["checks"]
    with pytest.raises(FileFormatError, match="checks"):
        data.images([0])


def test_the_cache_is_where_the_variable_says(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERVERSE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    assert datasets_folder() == tmp_path / "datasets"
    monkeypatch.delenv("INTERVERSE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "interverse"


def test_changed_labels_of_pairs_do_not_open(tmp_path):
    arrays = {"verb": np.arange(4), "noun": np.arange(4)}
    with h5py.File(tmp_path / "shard.h5", "w") as file:
        file.attrs["format"], file.attrs["labels"] = shards.FORMAT, arrays_hash(arrays)
        for name, array in arrays.items():
            file[name] = array
    assert shards.read_columns(tmp_path / "shard.h5", 3)["noun"].tolist() == [0, 1, 2]
    with h5py.File(tmp_path / "shard.h5", "r+") as file:
        file["verb"][0] = 3
    with pytest.raises(FileFormatError, match="fingerprint"):
        shards.read_columns(tmp_path / "shard.h5", 3)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.h5", "..", "", "a/b.h5", 3])
def test_an_index_of_pairs_stays_in_its_folder(tmp_path, path):
    index = _pairs_index()
    index["shards"][0]["file"] = path
    (tmp_path / "index.json").write_text(json.dumps(index | {"format": shards.FORMAT}))
    with pytest.raises(FileFormatError, match="outside the folder"):
        PairHeader.load(tmp_path)
