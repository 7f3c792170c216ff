"""`interverse train` on pairs: what is asked for is what is trained on, or it is refused."""

from __future__ import annotations

import pytest

from interverse.core.errors import InvalidValueError
from interverse.data.pairs import CollectPairs, collect_pairs
from interverse.models.pairs.config import PairModelConfig
from interverse.models.pairs.tensors import save
from interverse.models.pairs.toy import toy_pairs
from interverse.models.pairs.train import TrainPairs, load_pairs


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
