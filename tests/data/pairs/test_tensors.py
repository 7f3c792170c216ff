"""Training arrays: what Pillow alone would give, cached by content, refused with file and row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from interverse.core.errors import FileFormatError, InvalidValueError, UnknownNameError
from interverse.data.pairs import CollectPairs, PairDataset, collect_pairs, open_pairs
from tests.data.pairs.factory import SIZE, Source


@pytest.fixture
def data(tmp_path: Path) -> PairDataset:
    config = CollectPairs(id="rooms/multi-v1", out=tmp_path / "pairs", pairs=11)
    return open_pairs(collect_pairs(config, Source()))


def files(data: PairDataset) -> dict[str, int]:
    return {p.name: p.stat().st_mtime_ns for p in (data.path / ".tensors").glob("*.npy")}


def expected(data: PairDataset, kind: str, row: int, size: int, crop: str) -> np.ndarray:
    (array,) = data.images(kind, row)
    picture = Image.fromarray(array if array.ndim == 3 else array.astype(np.uint8) * 255)
    if crop == "single":
        picture = picture.crop(data.box_after[row].tolist())
    return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR))


@pytest.mark.parametrize("crop", ["multi", "single"])
@pytest.mark.parametrize("size", [7, SIZE, 40])
def test_arrays_are_cropped_and_resized_pictures(data, crop, size):
    before, after, masks = data.tensors(size, crop, mask_size=7)
    assert before.shape == after.shape == (11, 3, size, size)
    assert masks.shape == (11, 2, 7, 7)
    assert before.dtype == after.dtype == masks.dtype == np.uint8
    for row in range(11):
        for name, array in (("before", before), ("after", after)):
            shown = expected(data, name, row, size, crop)
            np.testing.assert_array_equal(array[row], np.moveaxis(shown, -1, 0))
            np.testing.assert_array_equal(
                masks[row, int(name == "after")], expected(data, f"mask_{name}", row, 7, crop)
            )


def test_the_second_call_reads_and_another_question_decodes(data):
    first = data.tensors(16)
    made = files(data)
    assert len(made) == 3
    for one, two in zip(first, data.tensors(16), strict=True):
        np.testing.assert_array_equal(one, two)
    assert files(data) == made
    data.tensors(16, "single")
    data.tensors(17)
    data.take(slice(0, 4)).tensors(16)
    assert len(files(data)) == 12


def test_changed_data_is_not_taken_from_the_cache(data, tmp_path):
    old = data.tensors(16).before
    config = CollectPairs(id="rooms/multi-v1", out=data.path, pairs=11, seed=1, overwrite=True)
    new = open_pairs(collect_pairs(config, Source(seed=1))).tensors(16).before
    assert not np.array_equal(old, new)


def test_boxes_are_part_of_the_key_where_they_matter(data):
    moved = replace(data, box_after=data.box_after + 1)
    assert not np.array_equal(data.tensors(16, "single").after, moved.tensors(16, "single").after)
    data.tensors(16)
    count = len(files(data))
    moved.tensors(16)
    assert len(files(data)) == count


def test_rows_come_in_the_order_taken(data):
    whole = data.tensors(16)
    part = data.take([10, 2, 3, 2])
    np.testing.assert_array_equal(part.tensors(16).after, whole.after[[10, 2, 3, 2]])
    np.testing.assert_array_equal(part.verb, data.verb[[10, 2, 3, 2]])
    mask = data.verb == data.verb[0]
    np.testing.assert_array_equal(data.take(mask).tensors(16).after, whole.after[mask])
    assert part.verb_names[1] == data.verbs[data.verb[2]]
    assert part.noun_names[1] == data.nouns[data.noun[2]]


def test_no_pairs_no_masks_arrays_of_ones_own_and_another_cache(data, tmp_path):
    before, _, masks = data.take([]).tensors(16)
    assert (before.shape, masks.shape) == ((0, 3, 16, 16), (0, 2, 16, 16))
    data.tensors(16, cache=tmp_path / "kept")
    assert not files(data)
    assert len(list((tmp_path / "kept").glob("*.npy"))) == 3
    assert data.tensors(16, mask_size=0).masks is None
    data.tensors(16).before[0] = 0
    assert data.tensors(16).before[0].any(), "what was read is writable, and not the cache"


def test_a_cache_that_cannot_be_written(data, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidValueError, match=r"cannot be kept in .*file.*cache=FOLDER"):
        data.tensors(16, cache=tmp_path / "file")


def test_nothing_is_left_of_a_failed_decode(data):
    bad = data.box_after.copy()
    bad[6] = (5, 5, 5, 9)
    with pytest.raises(FileFormatError, match=r"house_00002\.h5 after row 0: box \(5, 5, 5, 9\)"):
        replace(data, box_after=bad).tensors(16, "single")
    assert not list((data.path / ".tensors").iterdir())


def test_questions_are_checked(data):
    with pytest.raises(UnknownNameError, match=r"unknown crop 'singl'\. Did you mean 'single'"):
        data.tensors(16, "singl")
    with pytest.raises(InvalidValueError, match="size is 0"):
        data.tensors(0)
    with pytest.raises(InvalidValueError, match="needs boxes"):
        replace(data, box_after=None).tensors(16, "single")
    with pytest.raises(UnknownNameError, match="unknown picture 'depth_before'"):
        data.images("depth_before")
    with pytest.raises(InvalidValueError, match="rows is 11"):
        data.images("before", 11)
