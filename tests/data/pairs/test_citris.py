"""Layouts of others: CITRIS's steps and EPIC's crops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.data.pairs.citris import load_citris
from interverse.data.pairs.epic import EpicFilter, load_epic

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


HEADER = (
    "narration_id,participant_id,video_id,narration_timestamp,start_timestamp,stop_timestamp,"
    "start_frame,stop_frame,narration,verb,verb_class,noun,noun_class,all_nouns,all_noun_classes"
)
TRAIN = [
    "P02_01_0,P02,P02_01,0:01,0:00,0:02,8,202,open door,open,3,door,3,\"['door']\",[3]",
    "P01_01_1,P01,P01_01,0:01,0:00,0:02,262,370,cut onion,cut,7,onion,16,\"['onion']\",[16]",
]
VALID = ["P01_01_0,P01,P01_01,0:01,0:00,0:02,8,202,close tap,close,4,tap,0,\"['tap']\",[0]"]
FRAMES = ["P02/P02_01/8", "P02/P02_01/202", "P01/P01_01/262", "P01/P01_01/370"]
FRAMES += ["P01/P01_01/8", "P01/P01_01/202"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    notes, frames = tmp_path / "notes", tmp_path / "frames"
    notes.mkdir()
    (notes / "EPIC_100_train.csv").write_text("\n".join([HEADER, *TRAIN]) + "\n")
    (notes / "EPIC_100_validation.csv").write_text("\n".join([HEADER, *VALID]) + "\n")
    (notes / "EPIC_100_verb_classes.csv").write_text(
        'id,key,instances,category\n3,open,"[\'open\']",access\n4,close,"[]",access\n7,cut,"[]",x\n'
    )
    (notes / "EPIC_100_noun_classes.csv").write_text(
        "id,key,instances,category\n0,tap,[],a\n3,cupboard,[],b\n16,onion,[],c\n"
    )
    for number, name in enumerate(FRAMES):
        person, video, frame = name.split("/")
        path = frames / person / "rgb_frames" / video / f"frame_{int(frame):010d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (24, 16), (40 * number, 0, 0)).save(path)
    return notes, frames


def test_pairs_sorted_by_narration_named_by_class(files):
    data = load_epic(*files)
    assert data.verbs == ("close", "cut", "open")
    assert data.nouns == ("tap", "onion", "cupboard")
    assert data.verb.tolist() == data.noun.tolist() == [0, 1, 2]
    assert data.scene.tolist() == ["P01_01", "P01_01", "P02_01"]
    assert data.box_after is None
    before, after, masks = data.tensors(8)
    assert masks is None
    np.testing.assert_allclose(before.mean((2, 3))[:, 0], [160, 80, 0], atol=3)
    np.testing.assert_allclose(after.mean((2, 3))[:, 0], [200, 120, 40], atol=3)


def test_scores_above_the_threshold_pass(files, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("narration_id,start_score,stop_score\nP01_01_0,0.9,0.45\nP01_01_1,0.9,0.8\n")
    assert load_epic(*files, EpicFilter(scores=scores)).verbs == ("cut",)
    assert load_epic(*files, EpicFilter(scores=scores, threshold=0.4)).verbs == ("close", "cut")
    with pytest.raises(FileFormatError, match="no action that the filter keeps"):
        load_epic(*files, EpicFilter(scores=scores, threshold=0.95))


def test_verbs_can_be_chosen(files):
    assert load_epic(*files, EpicFilter(verbs=("open", "close"))).verbs == ("close", "open")
    with pytest.raises(FileFormatError, match=r"unknown verb 'opne'\. Did you mean 'open'"):
        load_epic(*files, EpicFilter(verbs=("opne",)))


def test_a_missing_frame(files):
    (files[1] / "P01/rgb_frames/P01_01/frame_0000000370.jpg").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"EPIC_100_train\.csv row 3: there is no picture .*0000000370\.jpg"
    ):
        load_epic(*files)
    assert load_epic(*files, EpicFilter(present_only=True)).verbs == ("close", "open")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ([HEADER.replace("stop_frame", "end")], r"train\.csv row 1 has no column 'stop_frame'"),
        (
            [HEADER, TRAIN[0].replace(",open,3,", ",open,99,")],
            r"train\.csv row 2: verb_class is 99",
        ),
    ],
)
def test_a_wrong_column_and_an_unknown_class(files, text, said):
    (files[0] / "EPIC_100_train.csv").write_text("\n".join(text) + "\n")
    with pytest.raises(FileFormatError, match=said):
        load_epic(*files)
    with pytest.raises(FileNotFoundError, match=r"EPIC_100_verb_classes\.csv"):
        load_epic(files[1], files[1])


def test_a_single_crop_needs_boxes(files):
    with pytest.raises(InvalidValueError, match="needs boxes"):
        load_epic(*files).tensors(8, "single")
