"""Splits of pairs into training and test rows, for every shift of Causal Triplet.

`variant="reference"` gives the rows that the published code draws from the same seed: its order of
operations, its two random streams, its sizes. `variant="mended"` differs where that code fails its
own paper: the OOD rows are shuffled before they are cut, the OOD validation rows are disjoint from
the test, and the classes of the systematic shift are drawn anew for every seed.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError
from interverse.core.rng import check_seed
from interverse.core.type_checks import number, validated, whole

Key = TypeVar("Key", bound=Hashable)
OPPOSITES = {
    "open": "close",
    "close": "open",
    "turnon": "turnoff",
    "turnoff": "turnon",
    "dirty": "clean",
    "clean": "dirty",
}
"""The verb that undoes a verb; `break` has none."""
_HELD_CLASSES = 0.4  # share of nouns or verbs that are held out
_HELD_PAIRS = 0.3  # share of (verb, noun) pairs that are candidates
_HELD_ROWS, _LEAST_HELD = 0.1, 10  # without a shift: share and least number of rows
_LARGEST_SEED = 2**32 - 1
_CAP = 1.5  # a verb may have the mean number of rows divided by this
Rows = NDArray[np.int64]
SHIFTS = ("comp", "loca", "noun", "random", "verb")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """What a split depends on, one row a pair.

    Attributes:
        verb, noun: (N,) numbers. box: (N, 4) after-boxes, or None. verbs: names of the verbs.
        width, height: of the pictures, for `loca`.
        house: (N,) number of the house each pair was drawn in, or None.
    """

    verb: Rows
    noun: Rows
    verbs: tuple[str, ...]
    box: NDArray[np.int64] | None = None
    width: int = 672
    height: int = 672
    house: Rows | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class SplitConfig:
    """How to split."""

    shift: Literal["comp", "loca", "noun", "random", "verb"] = "comp"
    """comp: unseen (verb, noun) pairs. noun, verb: unseen classes. loca: left against right.
    random: no shift."""
    variant: Literal["reference", "mended"] = "reference"
    """As the published code does it, or with its defects mended."""
    train: Annotated[int, whole(10**12)] = 5000
    """The most rows to train on; the published Epic-Kitchens runs have 1000."""
    test: Annotated[int, whole(10**12)] = 5000
    """The most rows of each test set; half of the ID rows and the OOD rows bound it too."""
    valid: Annotated[int | None, whole(10**12, least=0)] = None
    """Rows of the validation set, all ID. None takes what training leaves over, a test set's size
    at most, and at least a tenth of what is left to train on in the mended variant. A number is
    taken from the rows left over first and then from the end of the training rows."""
    test_houses: Annotated[float, number(most=0.9)] = 0.0
    """Share of the houses whose pairs are for testing alone, 0 to 0.9; at 0 houses are shared, as
    in the published code."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Rows of a data set, by part. All parts but `valid_ood` are disjoint.

    Attributes:
        train, valid, test_id: in distribution. test_ood: out of it.
        valid_ood: the published OOD validation rows; in the reference variant they overlap the
            test when there are few OOD rows.
        held: the classes or (verb, noun) numbers that only OOD rows have.
    """

    train: Rows
    valid: Rows
    test_id: Rows
    test_ood: Rows
    valid_ood: Rows
    held: tuple[tuple[int, ...], ...]


class Shifted(NamedTuple):
    """Rows in and out of distribution, in the order the sizes cut them; what is held out."""

    id: Rows
    ood: Rows
    held: tuple[tuple[int, ...], ...] = ()


def split_pairs(
    labels: Labels, config: SplitConfig, seed: int = 0, where: str = "the data set"
) -> Split:
    """Returns the rows of each part. The same arguments give the same rows.

    Args:
        labels: one row a pair, in the order of the file.
        config: the shift, the variant and the sizes.
        seed: of the split; the published runs have 1 to 10.
        where: the data set's name, for messages.
    """
    if check_seed(seed) > _LARGEST_SEED:
        raise InvalidValueError(f"seed is {seed}", allowed=f"0 to {_LARGEST_SEED}")
    draw = random.Random(seed)
    # The published code shuffles the ID rows with NumPy's old global stream: this one.
    shuffle = np.random.RandomState(seed)
    kept = rebalance(labels.verb, draw)
    given = {name: getattr(labels, name) for name in ("verb", "noun", "box", "house")}
    part = replace(labels, **{name: v[kept] for name, v in given.items() if v is not None})
    if config.shift == "comp":
        shifted = compositional(part, draw)
    elif config.shift == "loca":
        shifted = location(part)
    elif config.shift == "random":
        shifted = unshifted(len(kept), draw)
    else:
        classes, covered = part.noun, part.verb
        if config.shift == "verb":
            classes, covered = covered, classes
        mended = config.variant == "mended"
        shifted = systematic_drawn(classes, covered, draw) if mended else systematic(classes)
    if not len(shifted.ood) or not len(shifted.id):
        missing = "out-of-distribution" if len(shifted.id) else "in-distribution"
        raise InvalidValueError(
            f"{where}: shift {config.shift!r} with seed {seed} leaves no {missing} rows of"
            f" {len(labels.verb)} ({len(kept)} after rebalancing)",
            fix="Use more pairs, another seed or another shift",
        )
    if config.test_houses > 0:
        parts = _apart(shifted, part, config, shuffle)
    else:
        parts = _together(shifted, config, shuffle)
    return Split(**{name: kept[rows] for name, rows in parts.items()}, held=shifted.held)


def rebalance(verb: Rows, draw: random.Random) -> Rows:
    """Returns the rows to keep, ascending: a verb with many rows is thinned to the cap."""
    groups = _by_first_appearance(verb.tolist())
    cap = int(len(verb) / len(groups) / _CAP) if groups else 0
    kept: list[int] = []
    for rows in groups.values():
        kept += draw.sample(rows, cap) if len(rows) > cap else rows
    return np.sort(np.asarray(kept, dtype=np.int64))


# --------------------------------------------------------------------------- shifts


def systematic(classes: Rows) -> Shifted:
    """Returns the split that holds out the classes in the middle of the order by frequency.

    >>> systematic(np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])).held
    ((0,), (1,))
    """
    ordered = _by_frequency(classes.tolist())
    half = _held_classes(len(ordered)) // 2
    middle = len(ordered) // 2
    return _hold_out(classes, ordered[middle - half : middle + half])


def systematic_drawn(classes: Rows, covered: Rows, draw: random.Random) -> Shifted:
    """Returns the split that holds out as many classes, drawn at random.

    A class is passed over when something of `covered` (the verbs, where nouns are held out) would
    be left without a row to train on.
    """
    ordered = _by_frequency(classes.tolist())
    wanted = _held_classes(len(ordered)) // 2 * 2
    draw.shuffle(ordered)
    present = set(covered.tolist())
    held: list[int] = []
    for name in ordered:
        if len(held) == wanted:
            break
        left = ~np.isin(classes, [*held, name])
        if present == set(covered[left].tolist()):
            held.append(name)
    return _hold_out(classes, held)


def compositional(labels: Labels, draw: random.Random) -> Shifted:
    """Returns the split that holds out (verb, noun) pairs whose opposite is trained on."""
    both = list(zip(labels.verb.tolist(), labels.noun.tolist(), strict=True))
    ordered = _by_frequency(both)
    draw.shuffle(ordered)
    count = int(len(ordered) * _HELD_PAIRS)
    number = {name: verb for verb, name in enumerate(labels.verbs)}
    opposite = {number[a]: number[b] for a, b in OPPOSITES.items() if a in number and b in number}
    seen = set(ordered[count:])
    verbs, nouns = {verb for verb, _ in seen}, {noun for _, noun in seen}
    held: set[tuple[int, int]] = set()
    for verb, noun in ordered[:count]:
        known = verb in verbs and noun in nouns
        if known and verb in opposite and (opposite[verb], noun) in seen:
            held.add((verb, noun))
        else:  # one that may not be held out joins the trained pairs at once
            seen.add((verb, noun))
            verbs.add(verb)
            nouns.add(noun)
    out = np.array([pair in held for pair in both], dtype=bool)
    return Shifted(np.flatnonzero(~out), np.flatnonzero(out), tuple(sorted(held)))


def location(labels: Labels) -> Shifted:
    """Returns boxes in a right quarter of the picture (ID) and in a left one (OOD); others drop."""
    if labels.box is None:
        raise InvalidValueError(
            "shift 'loca' needs boxes, and the data set has none", fix="Use another shift"
        )
    xmin, ymin, xmax, ymax = (2 * labels.box).T
    level = (ymax < labels.height) | (ymin > labels.height)
    right, left = (
        np.flatnonzero(side & level) for side in (xmin > labels.width, xmax < labels.width)
    )
    if not len(right) or not len(left):
        raise InvalidValueError(
            f"shift 'loca': of {len(level)} boxes {len(right)} lie in a right quarter of the"
            f" picture and {len(left)} in a left one",
            fix="Use pairs of rooms/multi-v1; single objects are in the middle of theirs",
        )
    return Shifted(right, left)


def unshifted(count: int, draw: random.Random) -> Shifted:
    """Returns a tenth of the rows, in the order drawn, and the others."""
    ood = draw.sample(range(count), min(count, max(_LEAST_HELD, int(_HELD_ROWS * count))))
    left = np.setdiff1d(np.arange(count), ood)
    return Shifted(left, np.asarray(ood, dtype=np.int64))


# --------------------------------------------------------------------------- rows


def _hold_out(classes: Rows, held: Sequence[int]) -> Shifted:
    out = np.isin(classes, held)
    names = tuple((name,) for name in sorted(held))
    return Shifted(np.flatnonzero(~out), np.flatnonzero(out), names)


def _held_classes(count: int) -> int:
    return max(int(_HELD_CLASSES * count), 2)


def _by_first_appearance(keys: Sequence[Key]) -> dict[Key, list[int]]:
    groups: dict[Key, list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    return groups


def _by_frequency(keys: Sequence[Key]) -> list[Key]:
    """Returns the different keys, the most frequent first, equals by first appearance."""
    groups = _by_first_appearance(keys)
    return sorted(groups, key=lambda key: len(groups[key]), reverse=True)


# --------------------------------------------------------------------------- sizes


def _together(
    shifted: Shifted, config: SplitConfig, shuffle: np.random.RandomState
) -> dict[str, Rows]:
    """Returns the parts as the published code cuts them: every house may be in every part."""
    most = min(config.test, int(0.5 * len(shifted.id)))
    count = max(min(len(shifted.ood), most), 1)
    inside = shifted.id[shuffle.permutation(len(shifted.id))]
    test_id, rest = inside[:count], inside[count:]
    outside = shifted.ood
    if config.variant == "mended":
        outside = outside[shuffle.permutation(len(outside))]
        valid_ood = outside[count : 2 * count]
    else:
        valid_ood = outside[-count:]
    train, valid = _train_and_valid(rest, config, count)
    found = {"train": train, "valid": valid, "test_id": test_id}
    return found | {"test_ood": outside[:count], "valid_ood": valid_ood}


def _apart(
    shifted: Shifted, labels: Labels, config: SplitConfig, shuffle: np.random.RandomState
) -> dict[str, Rows]:
    """Returns parts of which the tests have houses of their own."""
    if labels.house is None:
        raise InvalidValueError(
            "test_houses needs the house of every pair, and the data set has none",
            fix="Use test_houses=0",
        )
    inside = shifted.id[shuffle.permutation(len(shifted.id))]
    outside = shifted.ood[shuffle.permutation(len(shifted.ood))]
    houses = np.unique(labels.house)
    count = max(1, round(config.test_houses * len(houses)))
    kept_apart = houses[shuffle.permutation(len(houses))[:count]]
    held = [np.isin(labels.house[rows], kept_apart) for rows in (inside, outside)]
    test_id, rest = inside[held[0]], inside[~held[0]]
    test_ood, valid_ood = outside[held[1]], outside[~held[1]]
    if not min(len(test_id), len(test_ood), len(rest)):
        raise InvalidValueError(
            f"{count} test houses of {len(houses)} leave {len(rest)} rows to train on,"
            f" {len(test_id)} ID and {len(test_ood)} OOD rows to test",
            fix="Collect more houses, or choose another test_houses or seed",
        )
    train, valid = _train_and_valid(rest, config, len(test_id))
    found = {"train": train, "valid": valid, "valid_ood": valid_ood}
    return found | {"test_id": test_id[: config.test], "test_ood": test_ood[: config.test]}


def _train_and_valid(rest: Rows, config: SplitConfig, count: int) -> tuple[Rows, Rows]:
    left_over = max(len(rest) - config.train, 0)
    wanted = config.valid
    if wanted is None:
        wanted = min(left_over, count)
        if config.variant == "mended":
            wanted = max(wanted, -(-min(len(rest), config.train) // 10))
    if wanted and wanted >= len(rest):
        raise InvalidValueError(
            f"valid is {wanted}, but {len(rest)} rows are left to train on",
            allowed=f"0 to {len(rest) - 1}",
        )
    start = min(config.train, len(rest) - wanted)
    return rest[:start], rest[start : start + wanted]
