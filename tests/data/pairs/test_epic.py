"""EPIC-KITCHENS-100: its annotation files and frame names, written small by the test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.data.pairs.epic import EpicFilter, load_epic

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
