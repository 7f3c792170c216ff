"""Houses: how many pairs of each, the first one, tests in houses of their own, presets."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from interverse.cli.flags import parse_pairs
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.data.pairs import CollectPairs, Labels, SplitConfig, collect_pairs, open_pairs
from interverse.data.pairs.load import PRESETS, PairPreset, collect_preset, preset_cost
from interverse.data.pairs.splits import split_pairs
from interverse.models.pairs.tensors import from_dataset

SMALL = {"image_size": 32, "objects": 4}


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs") / "set"
    config = CollectPairs(
        id="rooms/multi-v1", out=folder, pairs=5, pairs_per_house=2, first_house=40, options=SMALL
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
    preset = PairPreset(train=2, test=1, options=SMALL)
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
