"""A data set in memory and on disk: selections, devices, corrupt and foreign files."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.data import Collect, collect, open_dataset


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    out = tmp_path_factory.mktemp("data") / "d.h5"
    return collect(Collect(id="blocks/observed-3-v1", episodes=6, steps=4, out=out))


@pytest.fixture(scope="module")
def data(path):
    return open_dataset(path)


def test_shapes_and_kinds(data):
    assert len(data) == 6
    assert data.actions.shape == data.rewards.shape == (6, 4)
    assert data.states.shape == (6, 5, 3, 2)
    assert data.images().shape == (6, 5, 50, 50, 3)
    assert data.images().dtype == np.uint8
    assert data.target_images().shape == (6, 50, 50, 3)
    assert data.values["block_0/weight"].tolist() == [3.0] * 6
    assert data.episodes.tolist() == list(range(6))


@pytest.mark.parametrize("chosen", [slice(1, 4), [3, 0], np.arange(6) % 2 == 0, 2, slice(9, 9)])
def test_selected_episodes_are_those(data, chosen):
    everything = data.images()
    expected = np.atleast_1d(np.arange(6)[chosen])
    np.testing.assert_array_equal(data.images(chosen), everything[expected])
    images, actions = data.transitions(chosen)
    np.testing.assert_array_equal(images, everything[expected])
    np.testing.assert_array_equal(actions, data.actions[expected])
    part = data.take(chosen)
    assert len(part) == part.header.episodes == len(expected)
    np.testing.assert_array_equal(part.images(), everything[expected])
    np.testing.assert_array_equal(part.target_images(), data.target_images(chosen))


@pytest.mark.parametrize("chosen", [6, [0, 7], "all", 0.5])
def test_episodes_that_are_not_there(data, chosen):
    with pytest.raises(InvalidValueError, match="episodes is"):
        data.images(chosen)


def test_a_plain_world_has_no_target(tmp_path):
    config = Collect(
        id="blocks/observed-3-v1",
        episodes=2,
        steps=2,
        out=tmp_path / "d.h5",
        options={"plain": True},
    )
    data = open_dataset(collect(config))
    assert (data.rewards == 0).all()
    with pytest.raises(InvalidValueError, match="has no target"):
        data.target_images()


# ----------------------------------------------------------------- broken files


def broken(path, tmp_path, change):
    copy = bytearray(path.read_bytes())
    change(copy)
    out = tmp_path / "broken.h5"
    out.write_bytes(copy)
    return out


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere.h5"):
        open_dataset(tmp_path / "nowhere.h5")


@pytest.mark.parametrize("kept", [0, 10, 700, 5000])
def test_a_truncated_file(path, tmp_path, kept):
    def cut(content):
        del content[kept:]

    with pytest.raises(FileFormatError, match=r"broken.h5 is no data set, or is corrupt"):
        open_dataset(broken(path, tmp_path, cut))


def test_changed_bytes_are_noticed(path, tmp_path):
    """Any byte of the stored arrays: found by a checksum, the hash or the decoder."""
    with h5py.File(path) as file:
        places = [
            (file[name].id.get_chunk_info(0).byte_offset, file[name].id.get_chunk_info(0).size)
            for name in ("actions", "scene/positions", "values/block_1:weight")
        ]
    for start, size in places:
        for at in (start, start + size // 2, start + size - 1):

            def flip(content, at=at):
                content[at] ^= 0x5A

            with pytest.raises(FileFormatError, match="Delete it and collect it again"):
                open_dataset(broken(path, tmp_path, flip))


def test_changed_pixels_are_noticed(tmp_path):
    config = Collect(
        id="blocks/observed-3-v1", episodes=2, steps=3, out=tmp_path / "d.h5", images=True
    )
    path = collect(config)
    with h5py.File(path) as file:
        info = file["images"].id.get_chunk_info(1)

    def flip(content):
        content[info.byte_offset + info.size // 2] ^= 0x5A

    data = open_dataset(broken(path, tmp_path, flip))
    data.images(0)
    with pytest.raises(FileFormatError, match="corrupt"):
        data.images(1)


def test_foreign_files(tmp_path):
    text = tmp_path / "notes.h5"
    text.write_text("no HDF5 at all")
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["x"] = 1
    for path in (text, other):
        with pytest.raises(FileFormatError, match="interverse-dataset-1"):
            open_dataset(path)


def test_a_header_that_lies_is_noticed(path, tmp_path):
    copy = tmp_path / "lies.h5"
    copy.write_bytes(path.read_bytes())
    with h5py.File(copy, "a") as file:
        file.attrs["header"] = file.attrs["header"].replace("Blues", "Reds")
    with pytest.raises(FileFormatError, match="fingerprint"):
        open_dataset(copy)
