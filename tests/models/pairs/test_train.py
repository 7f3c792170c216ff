"""Pairs in memory, in `.npz` files and for `interverse train`: what does not fit is refused."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.data.pairs import CollectPairs, collect_pairs
from interverse.models.pairs.config import PairModelConfig
from interverse.models.pairs.tensors import from_arrays, from_dataset, load, save
from interverse.models.pairs.toy import VERBS, toy_pairs
from interverse.models.pairs.train import TrainPairs, load_pairs, split_of
from interverse.models.pairs.yardsticks import changed_crop, constant_answer, object_only


def test_pictures_of_another_size_or_task_than_asked_for_are_refused(tmp_path):
    file = tmp_path / "scenes.npz"
    save(toy_pairs(20, size=32, crop="multi"), file)
    assert load_pairs(TrainPairs(task="rooms/multi-v1", out=tmp_path, data=file)).size == 32
    with pytest.raises(InvalidValueError, match="Pass --size 32"):
        load_pairs(TrainPairs(task="rooms/multi-v1", out=tmp_path, data=file, size=64))
    with pytest.raises(InvalidValueError, match="Pass --task rooms/multi-v1"):
        load_pairs(TrainPairs(task="rooms/single-v1", out=tmp_path, data=file))


def test_objects_are_cut_from_scenes_but_pictures_of_one_object_are_no_scenes(tmp_path):
    made = {}
    for view in ("single", "multi"):
        asked = CollectPairs(
            id=f"rooms/{view}-v1", out=tmp_path / view, pairs=2, options={"image_size": 64}
        )
        made[view] = collect_pairs(asked)
    cut = TrainPairs(task="rooms/single-v1", out=tmp_path, data=made["multi"], size=32)
    assert load_pairs(cut).crop == "single"
    with pytest.raises(InvalidValueError, match="not of scenes"):
        load_pairs(TrainPairs(task="rooms/multi-v1", out=tmp_path, data=made["single"]))


def test_a_weight_outside_of_the_mask_needs_a_mask(tmp_path):
    asked = TrainPairs(task="rooms/single-v1", model="vanilla", min_mask=0.3, out=tmp_path)
    with pytest.raises(InvalidValueError, match="looks at no mask"):
        asked.configs()
    assert PairModelConfig(pairing="mask", min_mask=0.3).min_mask == 0.3


def test_the_original_scripts_flags_reach_model_and_split(tmp_path):
    asked = TrainPairs(
        task="rooms/single-v1",
        model="vanilla",
        encoder="resnet50",
        dim=32,
        linear=True,
        critic_state=0.1,
        translation=0.2,
        train_size=40,
        out=tmp_path,
        data=Path("toy"),
        pairs=300,
    )
    model, _ = asked.configs()
    found = model.encoder.name, model.width, model.action
    assert found == ("resnet50", 32, "linear")
    assert (model.state_independence, model.translation) == (0.1, 0.2)
    assert len(split_of(asked, load_pairs(asked)).train) <= 40
    assert replace(asked, linear=False).configs()[0].action == "mlp"
    with pytest.raises(InvalidValueError, match="Take a model with a ResNet"):
        replace(asked, model="lite0", translation=None).configs()


def test_records_of_models_without_these_flags_stay_as_they_were(tmp_path):
    held = TrainPairs(task="rooms/single-v1", model="icm", out=tmp_path).configs()[0].record()
    assert not {"state_independence", "translation"} & held.keys()


def small():
    before = np.zeros((6, 3, 16, 16), np.uint8)
    after = before.copy()
    after[:, :, 4:8, 10:13] = 200
    after[5] = 0  # nothing changed
    verb = ["open", "open", "open", "close", "close", "open"]
    noun = ["Box", "Box", "Safe", "Safe", "Safe", "Book"]
    return from_arrays(before, after, verb=verb, noun=noun, crop="single")


def test_answers_without_looking():
    split = SimpleNamespace(train=[0, 1, 3, 4, 2], test_id=[0, 3], test_ood=[2, 5])
    assert constant_answer(small(), split) == {"test_id": 0.5, "test_ood": 1.0}
    # Safe was closed more often than opened; Book was never seen, so it gets the commonest action.
    assert object_only(small(), split) == {"test_id": 1.0, "test_ood": 0.5}


def test_pictures_are_cut_to_what_changed():
    pairs = small()
    cut = changed_crop(pairs)
    assert cut.images.shape == pairs.images.shape
    assert (cut.images[0, 1] > 100).float().mean() > (pairs.images[0, 1] > 100).float().mean() * 3
    assert int(cut.images[0, 0].max()) == 0
    assert torch.equal(cut.images[5], pairs.images[5])


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
