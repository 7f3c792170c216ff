"""The original's file layout: members, kinds, values; back again; files that do not fit."""

import json

import h5py
import numpy as np
import pytest

import interverse as iv
from interverse.cli import main
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.data import (
    Collect,
    CollectEpisodes,
    collect,
    collect_episodes,
    export_original,
    import_original,
    open_dataset,
)

WORLD = "blocks/unobserved-3-v1"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp("data") / "d.h5"
    return open_dataset(collect(Collect(id=WORLD, episodes=12, steps=10, out=out)))


@pytest.fixture
def exported(data, tmp_path):
    return export_original(data, tmp_path / "original.h5")


def test_the_layout_is_the_original_s(data, exported):
    with h5py.File(exported) as file:
        assert sorted(file, key=int) == [str(i) for i in range(12)]
        for e in range(12):
            group = file[str(e)]
            kinds = {name: (item.dtype, item.shape) for name, item in group.items()}
            assert kinds == {
                "obs": (np.float32, (10, 3, 50, 50)),
                "next_obs": (np.float32, (10, 3, 50, 50)),
                "action": (np.int64, (10,)),
                "reward": (np.float64, (10,)),
                "target": (np.float32, (3, 50, 50)),
            }
            assert all(item.chunks is None for item in group.values())
            np.testing.assert_array_equal(group["obs"][1:], group["next_obs"][:-1])
        frame = file["7"]["next_obs"][4]
    np.testing.assert_array_equal(frame, np.moveaxis(data.images(7)[0, 5], -1, 0) / np.float32(255))


def test_there_and_back_is_the_same(data, exported, tmp_path):
    back = open_dataset(import_original(exported, tmp_path / "back.h5", id=WORLD))
    assert back.header.source == "imported"
    assert back.header.palette == data.header.palette
    np.testing.assert_array_equal(back.images(), data.images())
    np.testing.assert_array_equal(back.target_images(), data.target_images())
    np.testing.assert_array_equal(back.actions, data.actions)
    np.testing.assert_array_equal(back.rewards, data.rewards)
    assert back.states.size == 0
    with pytest.raises(InvalidValueError, match="pixels, not the scenes"):
        back.scene_arrays()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["back.h5", "original.h5"]


def test_the_original_reader_s_order_is_by_name(data, exported, tmp_path):
    back = open_dataset(import_original(exported, tmp_path / "back.h5", id=WORLD, order="text"))
    order = [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]
    np.testing.assert_array_equal(back.actions, data.actions[order])
    with pytest.raises(InvalidValueError, match="order is 'random'"):
        import_original(exported, tmp_path / "x.h5", id=WORLD, order="random")


def test_files_that_do_not_fit_are_named(exported, tmp_path):
    with pytest.raises(FileFormatError, match="import_original reads files of CausalMBRL"):
        iv.load_dataset(str(exported))
    with h5py.File(exported, "a") as file:
        del file["5"]["reward"]
    with pytest.raises(FileFormatError, match="episode 5 has no reward"):
        import_original(exported, tmp_path / "x.h5", id=WORLD)
    with h5py.File(exported, "a") as file:
        del file["5"]
        del file["3"]["action"]
        file["3"]["action"] = np.zeros(4, dtype=np.int64)
    with pytest.raises(FileFormatError, match="episode 3 has 4 actions"):
        import_original(exported, tmp_path / "x.h5", id=WORLD)
    empty = tmp_path / "empty.h5"
    h5py.File(empty, "w").close()
    with pytest.raises(FileFormatError, match="no episodes"):
        import_original(empty, tmp_path / "x.h5", id=WORLD)
    with pytest.raises(FileFormatError, match="layout, one group per episode"):
        import_original(__file__, tmp_path / "x.h5", id=WORLD)
    assert not (tmp_path / "x.h5").exists()


BLOCKS, CHEMISTRY = "blocks/observed-3-v1", "chemistry/chain-v1"


@pytest.mark.parametrize(
    ("made", "options", "said", "told"),
    [
        (CHEMISTRY, {"objects": 3}, BLOCKS, "change colour, as in chemistry"),
        (CHEMISTRY, {"objects": 3, "colors": 8}, BLOCKS, "actions from 0 to 23, and there are 15"),
        (BLOCKS, {}, CHEMISTRY, "as in blocks"),
        (BLOCKS, {}, "blocks/observed-5-v1", "show 3 objects, and there are 5"),
        (CHEMISTRY, {}, "chemistry/full-v1 colors=8", "actions end at 24, and there are 40"),
    ],
)
def test_a_file_of_another_world_is_refused(made, options, said, told, tmp_path):
    said, _, more = said.partition(" ")
    out = tmp_path / "d.h5"
    held = collect(Collect(id=made, episodes=8, steps=20, out=out, options=options))
    file = export_original(open_dataset(held), tmp_path / "original.h5")
    about = {"colors": 8} if more else {"objects": 3} if said.startswith("chemistry") else {}
    with pytest.raises(InvalidValueError, match=told):
        import_original(file, tmp_path / "x.h5", id=said, **about)
    assert not (tmp_path / "x.h5").exists()
    import_original(file, tmp_path / "x.h5", id=made, **options)
    with pytest.raises(UnknownNameError, match="unknown world 'blocks/observed-3'"):
        import_original(file, tmp_path / "y.h5", id="blocks/observed-3")


def test_the_command_line_writes_and_reads_the_layout(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("INTERVERSE_CACHE", str(tmp_path / "cache"))
    out, asked = str(tmp_path / "original.h5"), "--split few-shot-v2 --episodes 3"
    assert main(["export_original", WORLD, *asked.split(), "--out", out]) == 0
    with h5py.File(out) as file:
        assert sorted(file) == ["0", "1", "2"]
    back = ["--out", str(tmp_path / "back.h5"), "--option", "mode=FewShot-v2", "--json"]
    capsys.readouterr()
    assert main(["import_original", out, "--id", WORLD, *back]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 3
    again = iv.load_dataset(str(tmp_path / "back.h5"))
    made = iv.load_dataset(WORLD, "few-shot-v2", episodes=3)
    np.testing.assert_array_equal(again.images(), made.images())
    np.testing.assert_array_equal(again.actions, made.actions)
    twice = ["export_original", str(tmp_path / "back.h5"), "--out", out]
    assert main(twice) == 0
    assert main([*twice, "--split", "test"]) == 2
    assert "is there already: split cannot be chosen" in capsys.readouterr().err


def test_what_was_collected_is_loaded_by_its_path(tmp_path):
    folder = collect(Collect(id=WORLD, episodes=3, steps=2, out=tmp_path / "grid"))
    assert len(iv.load_dataset(str(folder))) == 3
    asked = CollectEpisodes(id=WORLD, episodes=2, steps=2, out=tmp_path / "episodes")
    assert len(iv.load_dataset(str(collect_episodes(asked)))) == 2
    with pytest.raises(InvalidValueError, match="episodes cannot be chosen"):
        iv.load_dataset(str(folder), episodes=1)
