"""`interverse train` on pairs: what is asked for is what is trained on; answers without looking."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from interverse.core.errors import InvalidValueError
from interverse.data.pairs import CollectPairs, collect_pairs
from interverse.models.pairs.config import PairModelConfig
from interverse.models.pairs.tensors import from_arrays, save
from interverse.models.pairs.toy import toy_pairs
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
