"""Splits: worked by hand on a small table, and laws that hold for every seed."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.data.pairs.splits import (
    OPPOSITES,
    Labels,
    SplitConfig,
    compositional,
    location,
    rebalance,
    split_pairs,
    systematic,
    systematic_drawn,
    unshifted,
)
from tests.data.pairs.factory import VERBS

PARTS = ("train", "valid", "test_id", "test_ood")
# 59 of 7 verbs and 24 classes: 12 that open, 8 that switch, 6 that get dirty, 7 that break.
NOUNS_OF = {0: range(12), 2: range(10, 18), 4: range(18, 24), 6: (8, 9, 10, 16, 17, 18, 23)}
ALL_PAIRS = [
    (verb + undone, noun)
    for verb, nouns in NOUNS_OF.items()
    for undone in ((0,) if verb == 6 else (0, 1))
    for noun in nouns
]


def labels(pairs: list[tuple[int, int]], **more) -> Labels:
    verb, noun = np.array(pairs, dtype=np.int64).T
    return Labels(verb=verb, noun=noun, verbs=VERBS, **more)


def table(rows: int = 3000, seed: int = 0) -> Labels:
    """Pairs of uneven frequency, with boxes, in random order."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(len(ALL_PAIRS), 3.0))
    chosen = rng.choice(len(ALL_PAIRS), size=rows, p=share)
    low = rng.integers(0, 560, (rows, 2))
    box = np.concatenate([low, low + rng.integers(60, 112, (rows, 2))], axis=1)
    return labels([ALL_PAIRS[i] for i in chosen], box=box)


class Arranged(random.Random):
    """A stream whose shuffle gives the order it was told."""

    def __init__(self, order: list) -> None:
        super().__init__(0)
        self.order = order

    def shuffle(self, items: list) -> None:
        assert sorted(items) == sorted(self.order)
        items[:] = self.order


# --------------------------------------------------------------------------- by hand


def test_rebalance_thins_the_frequent_verbs_to_the_cap():
    # 12 rows of 3 verbs: the cap is int(12 / 3 / 1.5) = 2, and verb 1 (first seen) goes first.
    verb = np.array([1, 0, 1, 1, 0, 2, 1, 1, 0, 0, 1, 2])
    kept = rebalance(verb, random.Random(5))
    draw = random.Random(5)
    ones = draw.sample([0, 2, 3, 6, 7, 10], 2)
    zeros = draw.sample([1, 4, 8, 9], 2)
    assert kept.tolist() == sorted([*ones, *zeros, 5, 11])


def test_systematic_holds_out_the_middle_of_the_order():
    # By count: 5 (6 rows), 3 (5), 0 (4), 4 (3), 1 and 2 (2 each, 2 seen first), 6 (1).
    # C = 7: k = max(int(2.8), 2) = 2, ranks 3 - 1 to 3 + 1 - 1, so 0 and 4.
    classes = np.array([5] * 6 + [3] * 5 + [0] * 4 + [4] * 3 + [2] * 2 + [1] * 2 + [6])
    split = systematic(classes)
    assert split.held == ((0,), (4,))
    assert split.ood.tolist() == list(range(11, 18))
    assert split.id.tolist() == [*range(11), *range(18, 23)]
    # Equal counts are ordered by first appearance. C = 5: k = 2, ranks 1 and 2.
    assert systematic(np.array([9, 4, 7, 1, 3])).held == ((4,), (7,))
    classes = np.repeat(np.arange(24), np.arange(24, 0, -1))
    assert systematic(classes).held == tuple((rank,) for rank in range(8, 16))


def test_compositional_candidates_are_taken_in_order():
    # Ten pairs, so three candidates: (open, 0), (close, 0), (break, 1).
    order = [(0, 0), (1, 0), (6, 1), (0, 1), (1, 1), (6, 0), (2, 2), (3, 2), (0, 3), (1, 3)]
    split = compositional(labels(order), Arranged(order))
    # The opposite of (open, 0) is a candidate, not ID: it joins ID. Then (close, 0) has its
    # opposite in ID: held out. Nothing undoes `break`.
    assert split.held == ((1, 0),)
    assert split.ood.tolist() == [1]
    assert split.id.tolist() == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_candidate_whose_noun_is_new_joins_id():
    order = [(0, 0), (4, 5), (5, 5), (1, 0), (2, 1), (3, 1), (2, 2), (3, 2), (0, 3), (1, 3)]
    # (open, 0): close is in ID with 0, held. (dirty, 5): neither is known, joins ID.
    # (clean, 5): verb clean is not in ID, joins ID though its opposite is there now.
    assert compositional(labels(order), Arranged(order)).held == ((0, 0),)


def test_location_is_left_and_right_quarters():
    box = np.array(
        [
            [10, 10, 300, 300],  # left, upper
            [10, 400, 335, 600],  # left, lower
            [10, 10, 336, 300],  # touches the middle
            [10, 300, 300, 400],  # left, but across the middle in height
            [400, 10, 600, 300],  # right, upper
            [337, 337, 600, 600],  # right, lower
            [336, 400, 600, 600],  # touches the middle
        ]
    )
    split = location(labels([(0, 0)] * 7, box=box))
    assert (split.id.tolist(), split.ood.tolist()) == ([4, 5], [0, 1])
    small = location(labels([(0, 0)] * 7, box=box // 3, width=224, height=224))
    assert (small.id.tolist(), small.ood.tolist()) == ([4], [0, 1])


def test_random_takes_a_tenth_in_the_order_drawn():
    split = unshifted(200, random.Random(3))
    assert split.ood.tolist() == random.Random(3).sample(range(200), 20)
    assert sorted([*split.id, *split.ood]) == list(range(200))
    assert len(unshifted(50, random.Random(0)).ood) == 10


@pytest.mark.parametrize("seed", [1, 2, 2022])
def test_sizes_and_order_as_the_published_code(seed):
    data = table()
    split = split_pairs(data, SplitConfig(shift="noun", train=500, test=400), seed)
    draw = random.Random(seed)
    kept = rebalance(data.verb, draw)
    shifted = systematic(data.noun[kept])
    inside, outside = kept[shifted.id], kept[shifted.ood]
    count = min(len(outside), 400, len(inside) // 2)
    # pandas shuffles as the published code did.
    state = np.random.RandomState(seed)
    mixed = pd.Series(inside).sample(frac=1, random_state=state).to_numpy()
    np.testing.assert_array_equal(split.test_id, mixed[:count])
    np.testing.assert_array_equal(split.train, mixed[count : count + 500])
    np.testing.assert_array_equal(split.valid, mixed[count + 500 :][:count])
    np.testing.assert_array_equal(split.test_ood, outside[:count])
    np.testing.assert_array_equal(split.valid_ood, outside[-count:])


def test_test_sets_are_bounded_by_half_of_id_and_by_ood():
    data = table(600)
    for shift in ("comp", "noun"):
        split = split_pairs(data, SplitConfig(shift=shift), 1)
        kept = rebalance(data.verb, random.Random(1))
        held = set(split.held)
        keys = data.noun[kept][:, None].tolist()
        if shift == "comp":
            keys = np.stack([data.verb, data.noun], axis=1)[kept].tolist()
        ood = sum(tuple(key) in held for key in keys)
        count = min(ood, int(0.5 * (len(kept) - ood)))
        assert len(split.test_id) == len(split.test_ood) == count
        assert len(split.train) == len(kept) - ood - count
        assert not len(split.valid)  # nothing is left over, and the reference cuts none


# --------------------------------------------------------------------------- laws

SEEDS = st.integers(0, 2**32 - 1)
VARIANTS = st.sampled_from(["reference", "mended"])
DATA = table()


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, variant=VARIANTS)
def test_held_out_pairs_never_occur_in_training(seed, variant):
    split = split_pairs(DATA, SplitConfig(shift="comp", variant=variant), seed)
    both = np.stack([DATA.verb, DATA.noun], axis=1)
    inside = {tuple(p) for part in PARTS[:3] for p in both[getattr(split, part)].tolist()}
    outside = {tuple(pair) for pair in both[split.test_ood].tolist()}
    assert outside <= set(split.held)
    assert not inside & set(split.held)
    for verb, noun in split.held:
        assert VERBS[verb] != "break"
        assert (VERBS.index(OPPOSITES[VERBS[verb]]), noun) in inside  # where rare, perhaps in valid


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, variant=VARIANTS, shift=st.sampled_from(["noun", "verb"]))
def test_systematic_classes_are_disjoint(seed, variant, shift):
    split = split_pairs(DATA, SplitConfig(shift=shift, variant=variant), seed)
    classes = getattr(DATA, shift)
    inside = {c for part in PARTS[:3] for c in classes[getattr(split, part)].tolist()}
    assert not inside & set(classes[split.test_ood].tolist())
    assert len(split.held) == (8 if shift == "noun" else 2)


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS,
    variant=VARIANTS,
    shift=st.sampled_from(["comp", "loca", "noun", "random", "verb"]),
    valid=st.sampled_from([None, 0, 7, 50]),
)
def test_parts_do_not_meet_and_depend_on_the_seed_alone(seed, variant, shift, valid):
    config = SplitConfig(shift=shift, variant=variant, train=300, test=100, valid=valid)
    split, again = split_pairs(DATA, config, seed), split_pairs(DATA, config, seed)
    rows = np.concatenate([getattr(split, part) for part in PARTS])
    assert len(np.unique(rows)) == len(rows)
    assert len(split.train) <= 300
    assert len(split.test_id) == len(split.test_ood) <= 100
    if valid is not None:
        assert len(split.valid) == valid
    for part in (*PARTS, "valid_ood"):
        np.testing.assert_array_equal(getattr(split, part), getattr(again, part))
    if variant == "mended":
        assert len(split.valid) or valid == 0
        assert not set(split.valid_ood.tolist()) & set(split.test_ood.tolist())


def test_compositional_holds_out_10_to_17_of_59_pairs():
    # As in the published data, where only three classes (with screens) break.
    undone = [(verb, noun) for noun in range(28) for verb in ((0, 1), (2, 3), (4, 5))[noun % 3]]
    pairs = labels([*undone, (6, 1), (6, 4), (6, 7)])
    assert len(pairs.verb) == 59
    counts = [len(compositional(pairs, random.Random(seed)).held) for seed in range(1000)]
    assert (min(counts), max(counts)) == (10, 17)
    assert np.mean(counts) / 59 == pytest.approx(0.24, abs=0.01)


def test_mended_classes_vary_with_the_seed_and_the_reference_hardly():
    def sets(variant: str) -> set:
        config = SplitConfig(shift="noun", variant=variant)
        return {split_pairs(DATA, config, seed).held for seed in range(10)}

    assert len(sets("mended")) == 10
    middle = [set(held) for held in sets("reference")]
    assert len(set.intersection(*middle)) >= 4


def test_mended_classes_leave_every_verb_to_train_on():
    rows = [(0, 0), (1, 0), (0, 1), (1, 1), (6, 2), (6, 2), (0, 3), (1, 4)] * 5
    data = labels(rows)
    for seed in range(20):
        split = systematic_drawn(data.noun, data.verb, random.Random(seed))
        assert set(data.verb[split.id].tolist()) == {0, 1, 6}
        assert (2,) not in split.held


def test_mended_ood_rows_are_not_the_first_of_the_file():
    data = table(6000)
    config = dict(shift="noun", test=200)
    first = split_pairs(data, SplitConfig(**config), 1).test_ood
    mended = split_pairs(data, SplitConfig(**config, variant="mended"), 1).test_ood
    assert np.all(np.diff(first) > 0)
    assert first.max() < 3000 < mended.max()


# --------------------------------------------------------------------------- refusals


def test_an_empty_ood_split_names_the_data_set():
    rows = labels([(6, 0), (6, 1), (6, 2)] * 5)
    with pytest.raises(InvalidValueError, match=r"^my/folder: shift 'comp' with seed 1 leaves no"):
        split_pairs(rows, SplitConfig(shift="comp"), 1, "my/folder")


NONE = np.zeros(0, dtype=np.int64)
MIDDLE = {"box": np.array([[60, 60, 160, 160]] * 30), "width": 224, "height": 224}


@pytest.mark.parametrize(
    ("given", "shift", "said"),
    [
        (Labels(verb=NONE, noun=NONE, verbs=VERBS), "random", "no in-distribution rows of 0"),
        (labels([(0, 0)] * 30, **MIDDLE), "loca", r"0 lie in a right quarter.*rooms/multi-v1"),
        (labels([(0, 0)] * 30), "loca", "'loca' needs boxes"),
    ],
)
def test_rows_that_a_shift_cannot_part_are_refused(given, shift, said):
    with pytest.raises(InvalidValueError, match=said):
        split_pairs(given, SplitConfig(shift=shift))


def test_names_and_sizes_are_checked():
    with pytest.raises(UnknownNameError, match=r"unknown shift .nouns.\. Did you mean .noun."):
        SplitConfig(shift="nouns")
    with pytest.raises(UnknownNameError, match="unknown variant"):
        SplitConfig(variant="fixed")
    with pytest.raises(InvalidValueError, match="train is 0"):
        SplitConfig(train=0)
    with pytest.raises(InvalidValueError, match="valid is 5000, but"):
        split_pairs(DATA, SplitConfig(valid=5000))
    with pytest.raises(InvalidValueError, match="seed is 4294967296"):
        split_pairs(DATA, SplitConfig(), 2**32)
