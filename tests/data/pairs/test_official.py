"""The official layout: written by us, read by us and by pandas, refused with file and row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.data.pairs import CollectPairs, PairDataset, collect_pairs, open_pairs
from interverse.data.pairs.official import COLUMNS, export_official, load_official
from tests.data.pairs.factory import Source

# Two houses as the release has them: written by hand, not by `export_official`.
ANNOTATIONS = {
    "proc_00003": [
        (1, "first", "Vase", "none", 2, 2, 10, 9),
        (1, "second_Vase_break", "Vase", "break", 1, 2, 12, 9),
        (2, "first", "Fridge", "none", 3, 3, 9, 9),
        (2, "second_Fridge_open", "Fridge", "open", 3, 3, 14, 9),
    ],
    "proc_00001": [
        (1, "first", "Egg", "none", 2, 2, 10, 9),
        (1, "second_Egg_cook", "Egg", "cook", 2, 2, 10, 9),
        (2, "first", "Laptop", "none", 0, 0, 8, 8),
        (2, "second_Laptop_open", "Laptop", "open", 0, 0, 8, 16),
    ],
}
HEADER = ",".join(COLUMNS)


def lines(scene: str) -> list[str]:
    rows = ANNOTATIONS[scene]
    return [",".join(map(str, (scene, i, f"{i:05d}_{name}", *r))) for i, name, *r in rows]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for scene, rows in ANNOTATIONS.items():
        for folder in ("color", "mask", "bbox"):
            (tmp_path / scene / folder).mkdir(parents=True)
        for index, name, *_ in rows:
            file = f"{index:05d}_{name}.png"
            colour = rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(colour).save(tmp_path / scene / "color" / file)
            mask = np.where(rng.random((16, 16)) < 0.5, 255, 0).astype(np.uint8)
            Image.fromarray(mask).save(tmp_path / scene / "mask" / file)
        (tmp_path / scene / "annotations.csv").write_text("\n".join(lines(scene)) + "\n")
    return tmp_path


def rewrite(file: Path, row: int, text: str) -> None:
    """Replaces a row, counted from 1."""
    content = file.read_text().splitlines()
    content[row - 1] = text
    file.write_text("\n".join(content) + "\n")


def test_rows_names_and_boxes(root):
    data = load_official(root)
    # Scenes sorted, `none` and `cook` dropped, numbers by first appearance.
    assert data.scene.tolist() == ["proc_00001", "proc_00003", "proc_00003"]
    assert (data.verbs, data.verb.tolist()) == (("open", "break"), [0, 1, 0])
    assert (data.nouns, data.noun.tolist()) == (("Laptop", "Vase", "Fridge"), [0, 1, 2])
    assert data.box_after.tolist() == [[0, 0, 8, 16], [1, 2, 12, 9], [3, 3, 14, 9]]
    assert data.box_before.tolist() == [[0, 0, 8, 8], [2, 2, 10, 9], [3, 3, 9, 9]]
    assert (data.width, data.height) == (16, 16)


def test_pictures_are_found_by_name(root):
    data = load_official(root)
    for kind, folder, name in (
        ("before", "color", "00001_first"),
        ("after", "color", "00001_second_Vase_break"),
        ("mask_before", "mask", "00001_first"),
        ("mask_after", "mask", "00001_second_Vase_break"),
    ):
        stored = np.asarray(Image.open(root / "proc_00003" / folder / f"{name}.png"))
        (found,) = data.images(kind, 1)
        np.testing.assert_array_equal(found, stored > 0 if folder == "mask" else stored)
    arrays = data.tensors(8, "single")
    assert arrays.before.shape == (3, 3, 8, 8)
    assert arrays.masks.shape == (3, 2, 8, 8)


def test_the_merged_table_is_read_in_its_order(root):
    merged = [HEADER, *lines("proc_00003"), *lines("proc_00001")]
    (root / "annotations.csv").write_text("\n".join(merged) + "\n")
    data = load_official(root)
    assert data.scene.tolist() == ["proc_00003", "proc_00003", "proc_00001"]
    assert data.verbs == ("break", "open")


def test_masks_are_optional(root):
    for file in root.glob("proc_*/mask/*.png"):
        file.unlink()
    for folder in root.glob("proc_*/mask"):
        folder.rmdir()
    data = load_official(root)
    assert data.pictures.kinds == {"before", "after"}
    assert data.tensors(8).masks is None


def test_a_changed_picture_is_decoded_again(root):
    old = load_official(root).tensors(8).after
    Image.new("RGB", (16, 16)).save(root / "proc_00001/color/00002_second_Laptop_open.png")
    new = load_official(root).tensors(8).after
    assert old[0].any()
    assert not new[0].any()
    np.testing.assert_array_equal(new[1:], old[1:])


# --------------------------------------------------------------------------- refusals


def without(name: str):
    return lambda root: (root / name).unlink()


def row(number: int, text: str):
    return lambda root: rewrite(root / "proc_00001/annotations.csv", number, text)


def second(verb: str, *box: object):
    return row(4, ",".join(map(str, ("proc_00001", 2, f"00002_second_Laptop_{verb}", *box))))


def merged(root: Path) -> None:
    text = HEADER.replace("verb_class", "verb")
    (root / "annotations.csv").write_text("\n".join([text, *lines("proc_00003")]) + "\n")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            without("proc_00003/color/00002_first.png"),
            r"proc_00003/annotations\.csv row 4: there is no picture .*color/00002_first\.png",
        ),
        (
            without("proc_00003/mask/00002_first.png"),
            r"row 4: there is no picture .*mask/00002_first",
        ),
        (merged, r"annotations\.csv row 1 has no column 'verb_class'"),
        (
            row(3, "proc_00001,2,00002_first,Laptop"),
            r"annotations\.csv row 3 has 4 columns. Allowed: 9",
        ),
        (second("open", "Laptop", "open", 0, "x", 8, 8), r"annotations\.csv row 4: ymin is 'x'"),
        (
            second("fold", "Laptop", "fold", 0, 0, 8, 8),
            r"csv row 4: unknown verb_class 'fold'.*turnoff",
        ),
        (
            row(4, "proc_00001,2,00002_Laptop_open,Laptop,open,0,0,8,8"),
            r"row 4: figure is '00002_Laptop_open'",
        ),
    ],
)
def test_what_is_wrong_with_a_table_is_told_with_file_and_row(root, spoil, said):
    spoil(root)
    with pytest.raises((FileFormatError, FileNotFoundError), match=said):
        load_official(root)
    if "fold" in said:
        assert len(load_official(root, drop=("cook", "fold"))) == 2


def half_a_mask(root: Path) -> None:
    Image.new("L", (16, 8)).save(root / "proc_00003/mask/00001_first.png")


def no_picture(root: Path) -> None:
    (root / "proc_00003/color/00001_first.png").write_bytes(b"no picture")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            without("proc_00003/color/00002_first.png"),
            r"00002_first\.png \(.*annotations\.csv row 4\)",
        ),
        (
            half_a_mask,
            r"mask/00001_first\.png \(.*csv row 2\) is 16 x 8, its picture 16 x 16",
        ),
        (no_picture, r"00001_first\.png \(.*csv row 2\) cannot be"),
    ],
)
def test_what_is_wrong_with_a_picture_is_told_with_file_and_row(root, spoil, said):
    data = load_official(root)
    spoil(root)
    with pytest.raises((FileFormatError, FileNotFoundError), match=said):
        data.tensors(8)
    if spoil is no_picture:
        with pytest.raises(FileFormatError, match=said):
            data.images("before")


def test_a_box_outside_of_its_picture(root):
    second("open", "Laptop", "open", 0, 0, 8, 17)(root)
    with pytest.raises(FileFormatError, match=r"row 4\): box \(0, 0, 8, 17\) does not lie in"):
        load_official(root).tensors(8, "single")


def test_an_empty_ood_split_names_the_folder(root):
    with pytest.raises(InvalidValueError, match=rf"^{root}: shift 'comp' .* no out-of-distrib"):
        load_official(root).split("comp")


def test_a_folder_without_annotations(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no annotations\.csv in"):
        load_official(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        load_official(tmp_path / "nowhere")


# --------------------------------------------------------------------------- writing


@pytest.fixture
def ours(tmp_path: Path) -> PairDataset:
    config = CollectPairs(id="rooms/multi-v1", out=tmp_path / "ours", pairs=8)
    return open_pairs(collect_pairs(config, Source()))


@pytest.mark.parametrize("merged", [False, True])
def test_exported_pairs_come_back(ours, tmp_path, merged):
    data = load_official(export_official(ours, tmp_path / "out", merged=merged))
    assert data.verb_names.tolist() == ours.verb_names.tolist()
    assert data.noun_names.tolist() == ours.noun_names.tolist()
    np.testing.assert_array_equal(data.box_before, ours.box_before)
    np.testing.assert_array_equal(data.box_after, ours.box_after)
    for kind in ("before", "after", "mask_before", "mask_after"):
        np.testing.assert_array_equal(data.images(kind), ours.images(kind))
    for one, two in zip(data.tensors(8, "single"), ours.tensors(8, "single"), strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_written_files_are_the_releases(ours, tmp_path):
    root = export_official(ours, tmp_path / "out", merged=True)
    noun, verb = ours.noun_names[0], ours.verb_names[0]
    assert (root / f"proc_00000/color/00001_second_{noun}_{verb}.png").exists()
    assert (root / "proc_00002/color/00002_first.png").exists()
    assert (root / "proc_00000/bbox").is_dir()
    mask = np.asarray(Image.open(root / "proc_00000/mask/00001_first.png"))
    assert (mask.dtype, sorted(set(mask.ravel().tolist()))) == (np.uint8, [0, 255])
    table = pd.read_csv(root / "proc_00001/annotations.csv", header=None, names=list(COLUMNS))
    assert table.verb_class.tolist()[::2] == ["none"] * 3
    assert table.idx.tolist() == [1, 1, 2, 2, 3, 3]
    assert list(pd.read_csv(root / "annotations.csv").columns) == list(COLUMNS)


def test_scenes_that_are_there_are_kept(ours, tmp_path):
    root = export_official(ours, tmp_path / "out")
    when = (root / "proc_00000/annotations.csv").stat().st_mtime_ns
    export_official(ours, root)
    assert (root / "proc_00000/annotations.csv").stat().st_mtime_ns == when
    assert not list(root.glob(".*"))
