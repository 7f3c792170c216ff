"""Published splits and the original's files: sizes, seeds, layout; what does not fit is refused."""

import json
import re

import h5py
import numpy as np
import pytest

import interverse as iv
from interverse.cli import main
from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.core.rng import SEED_REGIONS
from interverse.data import (
    SPLITS,
    Collect,
    CollectEpisodes,
    collect,
    collect_episodes,
    export_original,
    import_original,
    load_dataset,
    open_dataset,
    splits,
)

# world, split -> episodes, steps, seed, mode
PUBLISHED = {
    ("blocks/observed-3-v1", "train"): (1000, 100, 1, None),
    ("blocks/observed-5-v1", "valid"): (200, 100, 2, None),
    ("blocks/observed-5-v1", "test"): (10_000, 10, 3, None),
    ("blocks/observed-3-v1", "test-v1"): (10_000, 10, 4, "Test-v1"),
    ("blocks/observed-3-v1", "test-v2"): (10_000, 10, 5, "Test-v2"),
    ("blocks/observed-3-v1", "test-v3"): (10_000, 10, 6, "Test-v3"),
    ("blocks/observed-3-v1", "zero-shot"): (10_000, 10, 7, "ZeroShot"),
    ("blocks/observed-3-v1", "zero-shot-shape"): (10_000, 10, 8, "ZeroShotShape"),
    ("blocks/unobserved-3-v1", "zero-shot-shape"): (10_000, 10, 4, "ZeroShotShape"),
    ("blocks/unobserved-3-v1", "few-shot-v1"): (10_000, 10, 5, "FewShot-v1"),
    ("blocks/fixed_unobserved-5-v1", "few-shot-v3"): (10_000, 10, 7, "FewShot-v3"),
    ("blocks/fixed_unobserved-5-v1", "test"): (10_000, 10, 3, None),
    ("chemistry/chain-v1", "train"): (1000, 100, 1, None),
    ("chemistry/chain-v1", "valid"): (200, 100, 3, None),
    ("chemistry/chain-v1", "test"): (10_000, 10, 2, None),
}


@pytest.mark.parametrize(("world", "split"), PUBLISHED)
def test_published_sizes_and_seeds(world, split):
    found = splits(world)[split]
    episodes, steps, seed, mode = PUBLISHED[world, split]
    assert (found.episodes, found.steps, found.seed) == (episodes, steps, seed)
    assert found.options.get("mode") == mode


def test_delayed_chemistry_trains_on_shorter_episodes():
    table = splits("chemistry/chain-v1", mode="delayed")
    assert (table["train"].steps, table["valid"].steps) == (50, 100)


@pytest.mark.parametrize("family", SPLITS)
def test_no_two_splits_of_a_world_share_a_seed(family):
    seeds = [split.seed for split in SPLITS[family].values()]
    assert len(set(seeds)) == len(seeds)


def test_a_loaded_set_is_kept_and_loaded_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = load_dataset("blocks/observed-3-v1", split="zero-shot", episodes=5)
    assert first.header.seed == 7
    assert first.header.options == {"mode": "ZeroShot"}
    assert first.path.parent == tmp_path / "interverse" / "datasets"
    written = first.path.stat().st_mtime_ns
    again = load_dataset("blocks/observed-3-v1", split="zero-shot", episodes=5)
    assert again.path == first.path
    assert again.path.stat().st_mtime_ns == written
    longer = load_dataset("blocks/observed-3-v1", split="zero-shot", episodes=9, folder=tmp_path)
    np.testing.assert_array_equal(longer.actions[:5], first.actions)
    np.testing.assert_array_equal(longer.images(slice(5)), first.images())


def test_other_code_makes_a_set_anew_under_the_same_version(tmp_path, monkeypatch):
    asked = {"split": "test", "episodes": 3, "folder": tmp_path}
    first = load_dataset("blocks/observed-3-v1", **asked)
    before = first.states.copy()
    monkeypatch.setattr("interverse.core.code.code_hash", lambda: "edited")
    monkeypatch.setattr("interverse.worlds.own_code.code_hash", lambda: "edited", raising=False)
    edited = load_dataset("blocks/observed-3-v1", **asked)
    assert edited.path != first.path
    assert (edited.header.version, edited.header.code) == (first.header.version, "edited")
    assert edited.header.key == first.header.key, "what it stands for is the same"
    np.testing.assert_array_equal(edited.states, before)


def test_splits_differ(tmp_path):
    sets = [
        load_dataset("blocks/observed-3-v1", split, episodes=20, folder=tmp_path)
        for split in ("train", "valid", "test")
    ]
    starts = [data.states[:, 0].tobytes() for data in sets]
    assert len(set(starts)) == 3


@pytest.mark.parametrize(
    ("world", "split", "options", "error", "match"),
    [
        ("blocks/observed-3-v1", "trian", {}, UnknownNameError, "Did you mean 'train'"),
        ("blocks/unobserved-3-v1", "zero-shot", {}, UnknownNameError, "zero-shot-shape"),
        ("blocks/observed-3-v1", "test-v1", {"mode": "Train"}, InvalidValueError, "another split"),
        ("tutorial/slider-v1", "train", {}, UnknownNameError, "no published splits"),
        ("blocks/observed-7-v1", "train", {}, UnknownNameError, "unknown world"),
        ("blocks/observed-3-v1", "train", {"episodes": 0}, InvalidValueError, "episodes is 0"),
    ],
)
def test_bad_requests_are_named(tmp_path, world, split, options, error, match):
    with pytest.raises(error, match=match):
        load_dataset(world, split, folder=tmp_path, **options)


def test_a_corrupt_cached_file_is_named(tmp_path):
    data = load_dataset("blocks/observed-3-v1", "test", episodes=2, folder=tmp_path)
    data.path.write_bytes(b"spoilt")
    with pytest.raises(FileFormatError, match=re.escape(data.path.name)):
        load_dataset("blocks/observed-3-v1", "test", episodes=2, folder=tmp_path)


def test_without_a_split_the_file_is_named_after_the_one_that_is_taken(tmp_path):
    load_dataset("blocks/observed-3-v1", folder=tmp_path, episodes=2)
    (path,) = tmp_path.glob("*.h5")
    assert ".train." in path.name
    data = iv.load_dataset("blocks/observed-3-v1", "train", folder=tmp_path, episodes=np.int64(2))
    assert repr(data).startswith("Dataset(blocks/observed-3-v1, 2 episodes of 100 actions, ")
    assert len(repr(data)) < 150
    assert list(tmp_path.glob("*.h5")) == [path]


def test_a_split_gives_no_more_episodes_than_it_has(tmp_path):
    with pytest.raises(InvalidValueError, match="episodes is 500, and split 'valid' has 200"):
        load_dataset("blocks/observed-3-v1", "valid", episodes=500, folder=tmp_path)
    with pytest.raises(InvalidValueError, match=r"episodes is 2\.5"):
        load_dataset("blocks/observed-3-v1", "valid", episodes=2.5, folder=tmp_path)


@pytest.mark.parametrize("name", [None, 3])
def test_an_id_that_is_no_text_is_named(name):
    with pytest.raises(InvalidValueError, match=r"id is .* Allowed: a text"):
        load_dataset(name)


def test_data_of_ones_own_are_no_published_split_unless_said(tmp_path, capsys):
    """Seed 3 of blocks is the published test set: 10,000 episodes to test on, not to train on."""
    own = collect(Collect(id="blocks/observed-3-v1", out=tmp_path / "own.h5", episodes=4, steps=5))
    assert open_dataset(own).header.seed == SEED_REGIONS["collecting"]
    assert CollectEpisodes(id="tutorial/slider-v1", out=tmp_path).seed == SEED_REGIONS["collecting"]
    words = ["collect", "blocks/observed-3-v1", "--episodes", "4", "--steps", "5", "--seed"]
    for seed, mode, told in (("3", "Train", "test"), ("7", "ZeroShot", "zero-shot"), ("9", "", "")):
        more = ["--option", f"mode={mode}"] if mode else []
        assert main([*words, seed, "--out", str(tmp_path / f"{seed}.h5"), *more]) == 0
        said = f"Seed {seed} plays the published split '{told}' of blocks/observed-3-v1."
        assert (said in capsys.readouterr().err) == bool(told)


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
