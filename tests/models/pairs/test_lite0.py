"""EfficientNet-Lite0: the published network's numbers, safe weights, features kept once."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from interverse.core.errors import FileFormatError
from interverse.models.pairs import encoders, train
from interverse.models.pairs import fit as fitting
from interverse.models.pairs.config import EncoderConfig, recipe
from interverse.models.pairs.fit import PairWork, fit_pairs
from interverse.models.pairs.toy import toy_pairs

pytest.importorskip(encoders.PACKAGE)


@pytest.mark.parametrize("size", [96, 128])
def test_the_network_is_the_published_one(size):
    theirs = pytest.importorskip("efficientnet_lite_pytorch")
    their_model = theirs.EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=str(encoders.weights_file()), image_size=size
    ).eval()
    own = encoders.Lite0Tokens(EncoderConfig(name="lite0")).eval()
    pictures = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        known = their_model.extract_features(own.normalise(pictures))
        found = own(pictures)
    assert torch.allclose(found, known.flatten(2).transpose(1, 2), atol=1e-4)
    assert found.shape[1] == own.grid(size) ** 2


@pytest.mark.parametrize("model", ["lite0", "slot-avg"])
def test_wrong_weights_are_refused_before_a_pair_is_drawn(tmp_path, monkeypatch, model):
    monkeypatch.setattr(train, "load_pairs", lambda _: pytest.fail("drawn"))
    config = train.TrainPairs(
        task="rooms/single-v1", model=model, weights="nonsense/none", out=tmp_path
    )
    with pytest.raises((FileFormatError, FileNotFoundError), match="nonsense"):
        train.train_pairs(config)


def test_a_shift_that_leaves_few_pairs_leaves_some_to_train_and_to_validate_on(tmp_path):
    """Of scenes, few objects lie in the quarters that the shift of places takes."""
    pairs = toy_pairs(120, size=16)
    boxes = np.tile([80, 80, 144, 144], (120, 1))
    boxes[:12], boxes[12:24] = [130, 10, 170, 60], [10, 10, 60, 60]
    extra = {**pairs.extra, "boxes": boxes, "edges": np.tile([224, 224], (120, 1))}
    config = train.TrainPairs(task="rooms/multi-v1", model="lite0", shift="loca", out=tmp_path)
    split = train.split_of(config, replace(pairs, extra=extra))
    assert len(split.train) > len(split.valid) >= 1
    assert len(split.test_id) == len(split.test_ood) > 0


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "other.pth"
    torch.save({"a": torch.zeros(1)}, file)
    with pytest.raises(FileFormatError, match="EfficientNet-Lite0"):
        encoders.Lite0Tokens(EncoderConfig(name="lite0", weights=str(file)))


def test_features_are_computed_once_for_all_seeds(tmp_path, pairs, split, monkeypatch):
    found = recipe("lite0")
    fit = replace(found.fit, epochs=1, features=tmp_path)
    first = fit_pairs(found.model, pairs, split, fit=fit, seed=1)
    assert first.weights == encoders.SOURCE
    assert len(list(tmp_path.glob("*.safetensors"))) == 1
    fitting._held.clear()  # the file alone is left

    def never(self):
        raise AssertionError("computed again")

    monkeypatch.setattr(PairWork, "_all_features", never)
    second = fit_pairs(found.model, pairs, split, fit=fit, seed=2)
    assert torch.equal(first.work.kept, second.work.kept)
    sms = recipe("lite0-sms").model
    assert torch.equal(fit_pairs(sms, pairs, split, fit=fit, seed=1).work.kept, first.work.kept)


def test_the_shipped_encoder_tells_rooms_apart_without_the_package():
    own = encoders.Lite0Tokens(EncoderConfig(name="rooms")).eval()
    pictures = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        tokens = own(pictures)
    assert tokens.shape == (2, 4, own.width)
    assert "self-supervised" in own.source
    assert not torch.allclose(tokens[0], tokens[1], atol=1e-2)
