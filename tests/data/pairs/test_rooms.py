"""Pairs of the real rooms: collected by the command line, loaded by folder and by id."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
from interverse.cli import main
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.data.pairs import CollectPairs, PairDataset, PairHeader, collect_pairs
from interverse.data.pairs.official import export_official
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
