"""Pairs in memory and in `.npz` files."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.models.pairs.tensors import from_dataset, load, save
from interverse.models.pairs.toy import VERBS, toy_pairs


def _equal(a, b):
    assert torch.equal(a.images, b.images)
    assert torch.equal(a.masks, b.masks)
    assert torch.equal(a.verb, b.verb)
    assert torch.equal(a.noun, b.noun)
    assert (a.verbs, a.nouns, a.crop) == (b.verbs, b.nouns, b.crop)
    assert a.factors.keys() == b.factors.keys()
    for name in a.factors:
        np.testing.assert_array_equal(a.factors[name], b.factors[name])


def test_writing_and_reading_changes_nothing(tmp_path, scenes):
    save(scenes, tmp_path / "a.npz")
    _equal(load(tmp_path / "a.npz"), scenes)
    assert list(tmp_path.iterdir()) == [tmp_path / "a.npz"]


def test_a_file_is_smaller_than_its_pictures(tmp_path, scenes):
    save(scenes, tmp_path / "a.npz")
    assert (tmp_path / "a.npz").stat().st_size < 0.5 * scenes.images.numel()


def test_a_plain_file_is_read_too(tmp_path, pairs):
    some = pairs.take(np.arange(5))
    images = some.images.numpy()
    np.savez(
        tmp_path / "plain.npz",
        before=images[:, 0],
        after=images[:, 1],
        masks=some.masks.numpy(),
        verb=some.verb.numpy(),
        noun=some.noun.numpy(),
        verbs=np.array(some.verbs),
        nouns=np.array(some.nouns),
        crop=np.array("single"),
        coding=np.array("plain"),
    )
    _equal(load(tmp_path / "plain.npz"), replace(some, factors={}))


def test_toys_change_in_the_object_alone_and_as_the_verb_says():
    toys = toy_pairs(60, size=48, crop="multi", seed=3)
    change = (toys.images[:, 0] != toys.images[:, 1]).any(1)
    assert not (change & ~toys.masks[:, 0]).any()
    assert change.flatten(1).any(1).all()
    states = np.stack([toys.factors[n] for n in ("open", "on", "dirty", "broken")], axis=2)
    for row in range(60):
        moved = np.flatnonzero(states[row, 0] != states[row, 1])
        assert len(moved) == 1
        number = VERBS.index(toys.verbs[toys.verb[row]])
        assert number // 2 == moved[0]
        assert states[row, 1, moved[0]] == (number % 2 == 0)


def test_a_data_set_becomes_tensors_with_the_state_of_the_object_acted_on():
    arrays = SimpleNamespace(
        before=np.zeros((2, 3, 4, 4), np.uint8),
        after=np.ones((2, 3, 4, 4), np.uint8),
        masks=np.full((2, 2, 4, 4), 200, np.uint8),
    )
    state = np.zeros((2, 4))
    moved = np.array([[0.8, 0, 0, 0], [0, 0, 1.0, 0]])
    dataset = SimpleNamespace(
        tensors=lambda size, crop: arrays,
        scene=np.array(["a", "b"]),
        box_after=None,
        verb=np.array([0, 1]),
        noun=np.array([0, 0]),
        verbs=("open", "dirty"),
        nouns=("Fridge",),
        factors_before={
            "object/state": state,
            "object_2/state": state,
            "light/brightness": np.array([1.0, 0.5]),
            "light/color": np.ones((2, 3)),
            "room/seed": np.array([1, 2]),
        },
        factors_after={
            "object/state": moved * [[1], [0]],
            "object_2/state": moved * [[0], [1]],
            "action/object": np.array([0, 2]),
            "light/brightness": np.array([1.0, 0.5]),
            "light/color": np.ones((2, 3)),
        },
    )
    found = from_dataset(dataset, size=4, crop="multi")
    assert found.masks.all()
    colours = {f"light/color/{letter}" for letter in "rgb"}
    assert set(found.factors) == {"open", "on", "dirty", "broken", "light/brightness", *colours}
    assert found.factors["open"].tolist() == [[0.0, 0.8], [0.0, 0.0]]
    assert found.factors["dirty"].tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_bad_pairs_are_refused(pairs):
    some = pairs.take(np.arange(4))
    with pytest.raises(InvalidValueError, match="images are"):
        replace(some, images=some.images.float())
    with pytest.raises(InvalidValueError, match="masks are"):
        replace(some, masks=some.masks[..., :-1])
    with pytest.raises(InvalidValueError, match="verb of pair 2 is 9"):
        replace(some, verb=torch.tensor([0, 1, 9, 0]))
    with pytest.raises(InvalidValueError, match="factor 'open'"):
        replace(some, factors={"open": np.zeros(4)})


def test_bad_files_are_refused(tmp_path, pairs):
    (tmp_path / "no.npz").write_bytes(b"not a zip")
    with pytest.raises(FileFormatError, match=r"no\.npz"):
        load(tmp_path / "no.npz")
    np.savez(tmp_path / "few.npz", before=np.zeros(3))
    with pytest.raises(FileFormatError, match="lacks after"):
        load(tmp_path / "few.npz")
    save(pairs.take(np.arange(3)), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as file:
        held = dict(file)
    np.savez(tmp_path / "b.npz", **held | {"noun": np.array([0, 99, 0])})
    with pytest.raises(FileFormatError, match="noun of pair 1 is 99"):
        load(tmp_path / "b.npz")
