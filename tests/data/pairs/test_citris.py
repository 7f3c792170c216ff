"""CITRIS files, written small by the test in the published layouts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.data.pairs.citris import load_citris

RNG = np.random.default_rng(0)
KEYS = ["ball-x", "ball-y", "score-left"]
PONG = {
    "images": RNG.integers(0, 255, (6, 8, 8, 3), dtype=np.uint8),
    "latents": RNG.random((6, 3)),
    "targets": np.eye(3, dtype=np.uint8)[[0, 1, 2, 0, 1]],
    "keys": np.array(KEYS),
}
TRIPLETS = {
    "images": RNG.integers(0, 255, (4, 3, 8, 8, 3), dtype=np.uint8),
    "latents": RNG.random((4, 3, 3)),
    "targets": np.zeros((4, 3)),
    "keys": np.array(KEYS),
}
CAUSAL3D = {
    "imgs": PONG["images"],
    "raw_latents": RNG.random((6, 10)),
    "shape_latents": np.arange(6) % 7,
    "interventions": np.zeros((6, 11)),
}


def write(file: Path, arrays: dict, **changes) -> Path:
    content = {name: array for name, array in {**arrays, **changes}.items() if array is not None}
    np.savez(file, **content)
    return file.parent


def test_steps_pair_each_frame_with_the_next_and_what_was_set_between(tmp_path):
    frames = load_citris(write(tmp_path / "train.npz", PONG))
    assert frames.names == tuple(KEYS)
    steps = frames.steps()
    assert steps.before.shape == (5, 8, 8, 3)
    np.testing.assert_array_equal(steps.after[2], PONG["images"][3])
    np.testing.assert_array_equal(steps.latents_after[2], PONG["latents"][3])
    np.testing.assert_array_equal(steps.targets[2], [0, 0, 1])


def test_validation_falls_back_to_test(tmp_path):
    write(tmp_path / "test.npz", PONG)
    assert load_citris(tmp_path, "val").path.name == "test.npz"
    write(tmp_path / "val.npz", PONG)
    assert load_citris(tmp_path, "val").path.name == "val.npz"


def test_triplets(tmp_path):
    frames = load_citris(write(tmp_path / "val_triplets.npz", TRIPLETS), "val", triplets=True)
    assert frames.triplets
    assert frames.latents.shape == (4, 3, 3)
    with pytest.raises(InvalidValueError, match=r"val_triplets\.npz holds triplets"):
        frames.steps()


def test_temporal_causal3dident(tmp_path):
    frames = load_citris(write(tmp_path / "train.npz", CAUSAL3D))
    assert frames.latents.shape == (6, 11)
    assert frames.names[0] == "pos-x"
    assert frames.names[-2:] == ("hue-back", "obj-shape")
    np.testing.assert_array_equal(frames.latents[:, -1], np.arange(6))
    assert len(frames.steps().targets) == 5


@pytest.mark.parametrize(
    ("arrays", "changes", "said"),
    [
        (PONG, {"images": None}, "lacks 'images'; it has keys, latents, targets"),
        (PONG, {"targets": None}, "lacks 'targets'"),
        (CAUSAL3D, {"interventions": None}, "lacks 'interventions'"),
        (PONG, {"images": PONG["images"] / 255}, r"images are float64 \(6, 8, 8, 3\)"),
        (PONG, {"latents": PONG["latents"][:4]}, r"latents are \(4, 3\), images"),
        (PONG, {"targets": PONG["targets"][:3]}, r"targets are \(3, 3\), images"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, arrays, changes, said):
    write(tmp_path / "train.npz", arrays, **changes)
    with pytest.raises(FileFormatError, match=rf"train\.npz:? {said}"):
        load_citris(tmp_path)


def test_missing_torn_and_unknown(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*train\.npz"):
        load_citris(tmp_path)
    (tmp_path / "train.npz").write_bytes(b"PK no zip")
    with pytest.raises(FileFormatError, match=r"train\.npz cannot be read"):
        load_citris(tmp_path)
    with pytest.raises(UnknownNameError, match="unknown split 'valid'"):
        load_citris(tmp_path, "valid")
