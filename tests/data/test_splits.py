"""The published splits, loading them, and data sets that do not belong together."""

import re

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
