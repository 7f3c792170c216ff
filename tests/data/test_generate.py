"""Collecting equals playing an env, whatever the units or a kill; data in memory and on disk."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.data import Collect, SceneWorld, collect, generate, open_dataset
from interverse.data.dataset import PIXELS

WORLDS = [
    ("blocks/observed-5-v1", {}),
    ("blocks/unobserved-3-v1", {"mode": "FewShot-v2"}),
    ("blocks/observed-3-v1", {"plain": True}),
    ("chemistry/chain-v1", {"objects": 4}),
    ("chemistry/full-v1", {"movement": "dynamic"}),
    ("chemistry/random-v1", {"mode": "moving"}),
    ("chemistry/collider-v1", {"mode": "delayed"}),
    ("chemistry/full-v1", {"observed": (0, 2, 3), "meta": True}),
]


def contents(path):
    """Everything in a file, byte for byte."""
    out = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: (
                out.update({name: item[()].tobytes()}) if hasattr(item, "shape") else None
            )
        )
        return out | {f"@{name}": value for name, value in file.attrs.items()}


def small(out, **more):
    return Collect(
        **{"id": "blocks/observed-3-v1", "episodes": 7, "steps": 5, "seed": 3} | more, out=out
    )


@pytest.mark.parametrize(("world_id", "options"), WORLDS)
@pytest.mark.parametrize("images", [False, True])
def test_a_data_set_is_what_an_env_plays(tmp_path, world_id, options, images):
    config = small(tmp_path / "d.h5", id=world_id, options=options, images=images)
    data = open_dataset(collect(config))
    env = iv.make(world_id, **options)
    pictures = data.images()
    for e in range(len(data)):
        observation, _ = env.reset(seed=3, options={"episode": e})
        for name, value in env.values.items():
            np.testing.assert_array_equal(data.values[name][e], value)
        if data.header.targets:
            np.testing.assert_array_equal(data.target_images(e)[0], observation["target"])
        for t in range(5):
            np.testing.assert_array_equal(pictures[e, t], observation["image"])
            np.testing.assert_array_equal(data.states[e, t], observation["state"])
            observation, reward, _, _, info = env.step(data.actions[e, t])
            assert reward == data.rewards[e, t]
            assert not info.get("invalid_push", False)
        np.testing.assert_array_equal(pictures[e, 5], observation["image"])
    assert data.header.images == (images or not isinstance(env.world, SceneWorld))
    np.testing.assert_array_equal(data.images([4, 1]), pictures[[4, 1]])


def test_invalid_pushes_are_drawn_anew(tmp_path):
    """Of many crowded episodes some first draws are invalid: those actions are others."""
    config = small(tmp_path / "d.h5", id="blocks/observed-5-v1", episodes=300, steps=40)
    data = open_dataset(collect(config))
    first = np.stack(
        [
            generate.Noise(data.seeds, data.episodes, data.seeds * 0 + t + 1).integers(
                "policy/action", 25
            )
            for t in range(40)
        ],
        axis=1,
    )
    anew = (first != data.actions).mean()
    assert 0.002 < anew < 0.008  # 0.45 % of actions are invalid


@pytest.mark.parametrize("images", [False, True])
def test_the_size_of_the_units_changes_nothing(tmp_path, monkeypatch, images):
    whole = contents(collect(small(tmp_path / "a.h5", images=images)))
    monkeypatch.setattr(generate, "_UNIT_FRAMES", 12)
    monkeypatch.setattr(generate, "_UNIT_PICTURES", 12)
    assert contents(collect(small(tmp_path / "b.h5", images=images))) == whole


def test_stopped_and_started_again_it_ends_the_same_and_plays_on(tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "_UNIT_FRAMES", 12)  # four units of two episodes
    whole = contents(collect(small(tmp_path / "a.h5")))
    played = []
    play = generate._play

    def failing(path, unit, config):
        played.append(unit.start)
        if played.count(4) == 1 and unit.start == 4:
            raise KeyboardInterrupt
        return play(path, unit, config)

    monkeypatch.setattr(generate, "_play", failing)
    config = small(tmp_path / "b.h5")
    with pytest.raises(KeyboardInterrupt):
        collect(config)
    assert not config.out.exists()
    collect(config)
    assert played == [0, 2, 4, 4, 6]
    assert contents(config.out) == whole
    collect(config)
    assert len(played) == 5, "a finished data set was played again"
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "b.h5"]


SLOWLY = """
import sys, time
from interverse.data import Collect, collect, generate
generate._UNIT_FRAMES = 12
play = generate._play
def slowly(*args, **more):
    time.sleep(0.15)
    return play(*args, **more)
generate._play = slowly
collect(Collect(id="blocks/observed-3-v1", episodes=40, steps=5, seed=3, out=sys.argv[1]))
"""


def test_killed_and_started_again_it_ends_the_same(tmp_path, repository):
    out = tmp_path / "killed.h5"
    process = subprocess.Popen([sys.executable, "-c", SLOWLY, str(out)], cwd=repository)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob(".killed.h5.*.parts/*.h5"))) < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    collect(small(out, episodes=40))
    assert contents(out) == contents(collect(small(tmp_path / "whole.h5", episodes=40)))


def test_two_that_want_the_same_file_play_it_once(tmp_path, monkeypatch):
    played = []
    play = generate._play

    def counting(path, unit, config):
        played.append(unit.start)
        time.sleep(0.1)
        return play(path, unit, config)

    monkeypatch.setattr(generate, "_play", counting)
    config = small(tmp_path / "d.h5")
    rivals = [threading.Thread(target=collect, args=(config,)) for _ in range(3)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join()
    assert played == [0]
    assert len(open_dataset(config.out)) == 7


def test_another_data_set_in_the_way_is_kept_unless_told(tmp_path):
    collect(small(tmp_path / "d.h5"))
    with pytest.raises(
        InvalidValueError, match=r"holds another data set: 7 x 5 of blocks/obs.*3-v1"
    ):
        collect(small(tmp_path / "d.h5", seed=4))
    collect(small(tmp_path / "d.h5", seed=4, overwrite=True))
    assert open_dataset(tmp_path / "d.h5").header.seed == 4


def test_a_file_of_other_code_is_read_but_not_taken_for_the_same(tmp_path, monkeypatch):
    path = collect(small(tmp_path / "d.h5"))
    assert collect(small(path)) == path
    monkeypatch.setattr("interverse.core.code.code_hash", lambda: "edited")
    monkeypatch.setattr("interverse.worlds.own_code.code_hash", lambda: "edited", raising=False)
    with pytest.raises(InvalidValueError, match=r"made by interverse .*, other code"):
        collect(small(path))
    assert len(open_dataset(path).actions) == 7


def test_a_file_from_before_code_was_written_down_is_read(tmp_path):
    path = collect(small(tmp_path / "d.h5"))
    with h5py.File(path, "a") as file:
        header = json.loads(file.attrs["header"])
        del header["code"]
        file.attrs["header"] = json.dumps(header, sort_keys=True)
    assert open_dataset(path).header.code == ""
    assert len(open_dataset(path).actions) == 7
    with pytest.raises(InvalidValueError, match="other code"):
        collect(small(path))


@pytest.mark.parametrize(
    ("more", "error", "match"),
    [
        ({"episodes": 0}, InvalidValueError, "episodes is 0"),
        ({"steps": 2.5}, InvalidValueError, "steps is 2.5"),
        ({"steps": 101}, InvalidValueError, "ends after 100"),
        ({"seed": -1}, InvalidValueError, "seed"),
        ({"id": "blocks/observed-9-v1"}, UnknownNameError, "Did you mean 'blocks/observed-"),
        ({"options": {"objects": 26}}, InvalidValueError, "objects is 26"),
        ({"options": {"graph": "chain"}}, UnknownNameError, "unknown option 'graph'"),
        ({"id": "chemistry/custom-v1", "options": {"graph": "3->1"}}, InvalidValueError, "3"),
    ],
)
def test_bad_configurations_are_named_before_anything_is_written(tmp_path, more, error, match):
    with pytest.raises(error, match=match):
        collect(small(tmp_path / "sub" / "d.h5", **more))
    assert not (tmp_path / "sub").exists()


def test_a_world_without_pictures_is_refused(tmp_path):
    from tests.envs.toy import ensure_registered

    with pytest.raises(InvalidValueError, match="toy/walk-v1 is no grid world"):
        collect(small(tmp_path / "d.h5", id=ensure_registered()))


def test_a_device_changes_no_byte(tmp_path):
    pytest.importorskip("torch")
    here = contents(collect(small(tmp_path / "a.h5")))
    there = contents(collect(small(tmp_path / "b.h5", options={"device": "torch"})))
    assert here == there


def test_progress_goes_to_standard_error(tmp_path, capfd):
    path = collect(small(str(tmp_path / "d.h5"), progress=True))
    assert path == Path(tmp_path / "d.h5")
    seen = capfd.readouterr()
    assert seen.out == ""
    assert "blocks/observed-3-v1 episodes" in seen.err


def test_the_file_is_small_and_says_what_made_it(tmp_path):
    path = collect(small(tmp_path / "d.h5", episodes=100, steps=50))
    assert path.stat().st_size < 300_000
    header = open_dataset(path).header
    assert (header.id, header.seed, header.steps) == ("blocks/observed-3-v1", 3, 50)
    assert header.palette == "Blues"
    assert header.version == iv.__version__
    data = open_dataset(path)
    assert data.graph.parents("block_0/position'") == set(
        iv.make("blocks/observed-3-v1").graph.parents("block_0/position'")
    )
    with h5py.File(path) as file:
        assert not any(name in file for name in PIXELS)
        assert len(file.attrs["fingerprint"]) == 32


@pytest.mark.parametrize("images", [False, True])
def test_a_folder_of_shards_holds_what_a_file_holds(tmp_path, monkeypatch, images):
    monkeypatch.setattr(generate, "_UNIT_FRAMES", 12)  # two episodes a shard
    monkeypatch.setattr(generate, "_UNIT_PICTURES", 12)
    file = open_dataset(collect(small(tmp_path / "a.h5", images=images)))
    folder = open_dataset(collect(small(tmp_path / "a", images=images, episodes=5)))
    assert len(folder) == 5
    folder = open_dataset(collect(small(tmp_path / "a", images=images)))  # two more
    assert folder.header == file.header
    for name in ("actions", "rewards", "states", "seeds", "episodes"):
        np.testing.assert_array_equal(getattr(folder, name), getattr(file, name))
    for some in (None, [6, 0, 3], slice(0, 0)):
        np.testing.assert_array_equal(folder.images(some), file.images(some))


@pytest.mark.parametrize(("objects", "share"), [(3, 0.0815), (5, 0.1514)])
def test_contacts_raise_the_share_of_pushes(tmp_path, objects, share):
    def pushed(contacts):
        asked = small(tmp_path / f"{contacts}", episodes=300, steps=100, contacts=contacts)
        data = open_dataset(collect(replace(asked, id=f"blocks/observed-{objects}-v1")))
        moved = (data.states[:, 1:] != data.states[:, :-1]).any(-1).sum(-1)
        return (moved > 1).mean(), data

    uniform, _ = pushed(0.0)
    rich, data = pushed(0.5)
    assert uniform < 0.034
    assert rich == pytest.approx(share, abs=0.012)
    env = iv.make(data.header.id)
    env.reset(seed=3, options={"episode": 7})
    for t in range(100):
        observation, _, _, _, info = env.step(data.actions[7, t])
        assert not info["invalid_push"]
        np.testing.assert_array_equal(observation["state"], data.states[7, t + 1])
    assert data.take([0]).header.contacts == 0.5


def test_contacts_are_of_blocks_and_are_another_data_set(tmp_path):
    with pytest.raises(InvalidValueError, match="chemistry/chain-v1 has no contacts"):
        collect(small(tmp_path / "c.h5", id="chemistry/chain-v1", contacts=0.5))
    with pytest.raises(InvalidValueError, match=r"contacts is 1\.5"):
        small(tmp_path / "c.h5", contacts=1.5)
    out = collect(small(tmp_path / "d.h5", contacts=0.5))
    with pytest.raises(InvalidValueError, match="holds another data set"):
        collect(small(out))
    how = {"episodes": 20, "folder": tmp_path}
    plain, rich = (
        iv.load_dataset("blocks/observed-3-v1", "test", contacts=share, **how)
        for share in (0.0, 1.0)
    )
    assert plain.path != rich.path
    assert not np.array_equal(plain.actions, rich.actions)


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
