"""Pairs of the real rooms: by command line, folder, id and house; tests in houses of their own."""

from __future__ import annotations

import hashlib
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
from interverse.cli import main
from interverse.cli.flags import parse_pairs
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.data.pairs import (
    CollectPairs,
    Labels,
    PairDataset,
    PairHeader,
    SplitConfig,
    collect_pairs,
    open_pairs,
)
from interverse.data.pairs.load import PRESETS, PairPreset, collect_preset, preset_cost
from interverse.data.pairs.official import export_official
from interverse.data.pairs.splits import split_pairs
from interverse.models.pairs.tensors import from_dataset
from interverse.worlds.rooms.pair import Pair
from interverse.worlds.rooms.pairs import generate_pairs

SMALL = {"image_size": 64, "objects": 4}
FLAGS = ["--option", "image_size=64", "objects=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("rooms") / "pairs"
    assert main(["collect", "rooms/multi-v1", "--pairs", "25", "--out", str(out), *FLAGS]) == 0
    return out


@pytest.fixture
def data(folder) -> PairDataset:
    return iv.load_dataset(str(folder))


def test_the_folder_is_told_about(folder, data, capsys):
    again = ["collect", "rooms/multi-v1", "--pairs", "25", "--out", str(folder), *FLAGS]
    assert main(again) == 0
    told = capsys.readouterr()
    assert told.out.strip() == str(folder)
    assert "25 pairs, " in told.err
    assert "tries accepted" in told.err
    header = data.header
    assert (header.id, header.size, header.pairs) == ("rooms/multi-v1", 64, 25)
    assert dict(header.options) == SMALL
    assert 0 < header.acceptance < 1
    assert (len(header.verbs), len(header.nouns)) == (7, 24)


def test_pairs_are_those_of_the_generator(data):
    found = generate_pairs("rooms/multi-v1", 0, 0, options=SMALL)
    pairs = list(islice((item for item in found if isinstance(item, Pair)), 6))
    for row, pair in enumerate(pairs):
        assert tuple(data.address[row]) == pair.address
        for kind in data.pictures.kinds:
            np.testing.assert_array_equal(data.images(kind, row)[0], getattr(pair, kind))
        assert (data.verb[row], data.noun[row]) == (pair.verb, pair.cls)
        assert set(pair.factors_before) == set(data.factors_before)


def test_every_variable_of_the_world_is_kept_and_the_action_is_its_change(data):
    assert set(data.graph.nodes) >= {"object/state", "action/verb", "room/seed"}
    assert set(data.factors_before) >= {"object/state", "object/class", "room/seed"}
    np.testing.assert_array_equal(data.factors_before["object/class"], data.noun)
    before, after = data.factors_before["object/state"], data.factors_after["object/state"]
    assert np.all((before != after).sum(axis=1) == 1)
    assert not any(column.any() for column in data.nuisance.values())


def test_arrays_for_training(data):
    before, after, masks = data.tensors(32, "single")
    assert before.shape == after.shape == (25, 3, 32, 32)
    assert np.all(masks.reshape(25, -1).max(axis=1) > 0)
    assert np.all((before != after).reshape(25, -1).any(axis=1))


def test_a_split_by_name_and_refusals(folder, data):
    part = iv.load_dataset(str(folder), "noun/train")
    np.testing.assert_array_equal(part.verb, data.verb[data.split("noun").train])
    with pytest.raises(UnknownNameError, match="unknown split 'noun/tests'"):
        iv.load_dataset(str(folder), "noun/tests")
    with pytest.raises(InvalidValueError, match="pairs cannot be chosen"):
        iv.load_dataset(str(folder), pairs=3)
    with pytest.raises(InvalidValueError, match="pairs, not episodes"):
        iv.load_dataset(str(folder), episodes=3)


def test_by_id_it_is_collected_once(tmp_path):
    how = dict(folder=tmp_path, pairs=2, seed=3, **SMALL)
    first = iv.load_dataset("rooms/multi-v1", **how)
    assert (len(first), first.path.parent) == (2, tmp_path)
    when = (first.path / "collect.json").stat().st_mtime_ns
    again = iv.load_dataset("rooms/multi-v1", **how)
    assert again.path == first.path
    assert (again.path / "collect.json").stat().st_mtime_ns == when


def test_the_official_layout_is_loaded_by_folder_too(data, tmp_path):
    root = export_official(data, tmp_path / "official")
    back = iv.load_dataset(str(root))
    assert back.verb_names.tolist() == data.verb_names.tolist()
    assert back.header is None


def test_worlds_without_pairs_are_refused(tmp_path):
    with pytest.raises(InvalidValueError, match="tutorial/slider-v1 has no pairs"):
        collect_pairs(CollectPairs(id="tutorial/slider-v1", out=tmp_path / "x"))


@pytest.mark.slow
def test_a_thousand_pairs_at_224_pixels_take_less_than_130_megabytes(tmp_path):
    path = collect_pairs(CollectPairs(id="rooms/multi-v1", out=tmp_path / "x", pairs=60))
    held = sum(shard.held["pairs"] for shard in PairHeader.load(path).shards)
    assert sum(file.stat().st_size for file in path.iterdir()) / held < 130_000


TINY = {"image_size": 32, "objects": 4}


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs") / "set"
    config = CollectPairs(
        id="rooms/multi-v1", out=folder, pairs=5, pairs_per_house=2, first_house=40, options=TINY
    )
    return config, open_pairs(collect_pairs(config))


def test_pairs_of_a_house_and_the_first_house_are_chosen(spread):
    config, data = spread
    houses = data.address[:, 1]
    assert houses.min() == 40
    assert np.bincount(houses)[40:].max() == 2
    assert len(np.unique(houses)) >= 3
    assert data.header.first_house == 40
    assert collect_pairs(config) == config.out, "done before"


def test_wrong_houses_are_refused(tmp_path):
    with pytest.raises(InvalidValueError, match="pairs_per_house is 26"):
        CollectPairs(id="rooms/multi-v1", out=tmp_path, pairs_per_house=26)


def labels(count=4000, houses=80, size=224):
    rng = np.random.default_rng(0)
    low = rng.integers(0, size - 60, (count, 2))
    return Labels(
        verb=rng.integers(0, 7, count),
        noun=rng.integers(0, 12, count),
        verbs=("open", "close", "turnon", "turnoff", "dirty", "clean", "break"),
        box=np.concatenate([low, low + 50], axis=1),
        width=size,
        height=size,
        house=np.arange(count) % houses,
    )


@pytest.mark.parametrize("shift", ["comp", "noun", "random", "loca"])
def test_tests_have_houses_of_their_own(shift):
    given = labels()
    config = SplitConfig(shift=shift, variant="mended", test_houses=0.25)
    split = split_pairs(given, config, seed=3)
    trained = set(given.house[np.concatenate([split.train, split.valid])].tolist())
    tested = set(given.house[np.concatenate([split.test_id, split.test_ood])].tolist())
    assert not trained & tested
    assert len(tested) == 20
    assert min(map(len, (split.train, split.valid, split.test_id, split.test_ood))) > 10
    with pytest.raises(InvalidValueError, match="test_houses is 1"):
        SplitConfig(test_houses=1.0)


def test_places_are_those_of_the_pictures_that_boxes_are_in(spread):
    pairs = from_dataset(spread[1], size=16, crop="multi")
    assert (pairs.labels.width, pairs.labels.height) == (32, 32)
    given = labels(size=224)
    split = split_pairs(given, SplitConfig(shift="loca", variant="mended"), seed=0)
    assert given.box[split.train][:, 0].min() > 112
    assert given.box[split.test_ood][:, 2].max() < 112


def test_factors_are_all_there(spread):
    names = set(from_dataset(spread[1], size=16, crop="multi").factors)
    for vector, letters in (("camera/position", "xyz"), ("light/color", "rgb")):
        assert {f"{vector}/{letter}" for letter in letters} <= names
    assert {f"object/position/{letter}" for letter in "xyz"} <= names
    assert {"object/yaw", "object/class", "open", "on", "dirty", "broken"} <= names


def test_options_may_be_written_as_in_python():
    found = parse_pairs(("light_spill=True", "a=False", "b=None", "c=1.5", "d=both"))
    assert found == {"light_spill": True, "a": False, "b": None, "c": 1.5, "d": "both"}


def test_a_preset_has_a_card_checksums_and_test_houses(tmp_path):
    preset = PairPreset(train=2, test=1, options=TINY)
    how = CollectPairs(id="rooms/multi-v1", out=tmp_path, pairs_per_house=2)
    said = []
    folder = collect_preset("tiny", how, said.append, preset)
    assert said == [preset_cost(preset, 1)]
    assert "minutes" in said[0]
    train, test = (open_pairs(folder / part) for part in ("train", "test"))
    assert not set(train.scene.tolist()) & set(test.scene.tolist())
    card = (folder / "README.md").read_text()
    assert "| train | 2 |" in card
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    with pytest.raises(UnknownNameError, match="triplet-30k"):
        collect_preset("triplet", how, said.append)
    assert PRESETS["triplet-30k"].total == 30_000
    small = PRESETS["triplet-30k"].scaled(60)
    assert (small.train, small.test) == (50, 10)
    with pytest.raises(InvalidValueError, match="pairs is 1"):
        small.scaled(1)
