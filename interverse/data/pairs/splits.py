"""Splits of pairs into training and test rows, for every shift of Causal Triplet.

`variant="reference"` gives the rows that the published code draws from the same seed: its order of
operations, its two random streams, its sizes. `variant="mended"` differs where that code fails its
own paper: the OOD rows are shuffled before they are cut, the OOD validation rows are disjoint from
the test, and the classes of the systematic shift are drawn anew for every seed.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import check_seed
from interverse.data.pairs.cuts import cut
from interverse.data.pairs.split_config import SHIFTS, Labels, PairSplit, Rows, Shifted, SplitConfig

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
__all__ = [
    "OPPOSITES",
    "SHIFTS",
    "Labels",
    "PairSplit",
    "Rows",
    "Shifted",
    "Split",
    "SplitConfig",
    "split_pairs",
]
Split = PairSplit  # its name for users
_LARGEST_SEED = 2**32 - 1
_CAP = 1.5  # a verb may have the mean number of rows divided by this


def split_pairs(
    labels: Labels, config: SplitConfig, seed: int = 0, where: str = "the data set"
) -> PairSplit:
    """Returns the rows of each part. The same arguments give the same rows.

    Args:
        labels: one row a pair, in the order of the file.
        config: the shift, the variant and the sizes.
        seed: of the split; the published runs have 1 to 10.
        where: the data set's name, for messages.
    """
    if check_seed(seed) > _LARGEST_SEED:
        raise InvalidValueError(explain(f"seed is {seed}", allowed=f"0 to {_LARGEST_SEED}"))
    draw = random.Random(seed)
    # The published code shuffles the ID rows with NumPy's old global stream: this one.
    shuffle = np.random.RandomState(seed)
    kept = rebalance(labels.verb, draw)
    part = _take(labels, kept)
    shifted = shift_rows(part, config, draw)
    if not len(shifted.ood) or not len(shifted.id):
        missing = "out-of-distribution" if len(shifted.id) else "in-distribution"
        raise InvalidValueError(
            explain(
                f"{where}: shift {config.shift!r} with seed {seed} leaves no {missing} rows of"
                f" {len(labels.verb)} ({len(kept)} after rebalancing)",
                fix="Use more pairs, another seed or another shift",
            )
        )
    return cut(shifted, kept, part, config, shuffle)


def rebalance(verb: Rows, draw: random.Random) -> Rows:
    """Returns the rows to keep, ascending: a verb with many rows is thinned to the cap."""
    groups = _by_first_appearance(verb.tolist())
    cap = int(len(verb) / len(groups) / _CAP) if groups else 0
    kept: list[int] = []
    for rows in groups.values():
        kept += draw.sample(rows, cap) if len(rows) > cap else rows
    return np.sort(np.asarray(kept, dtype=np.int64))


def shift_rows(labels: Labels, config: SplitConfig, draw: random.Random) -> Shifted:
    """Returns the rows in and out of distribution under a shift."""
    if config.shift == "comp":
        return compositional(labels, draw)
    if config.shift == "loca":
        return location(labels)
    if config.shift == "random":
        return unshifted(len(labels.verb), draw)
    classes = labels.noun if config.shift == "noun" else labels.verb
    if config.variant == "reference":
        return systematic(classes)
    covered = labels.verb if config.shift == "noun" else labels.noun
    return systematic_drawn(classes, covered, draw)


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
    held = _held_pairs(ordered[:count], ordered[count:], labels.verbs)
    out = np.array([pair in held for pair in both], dtype=bool)
    return Shifted(np.flatnonzero(~out), np.flatnonzero(out), tuple(sorted(held)))


def location(labels: Labels) -> Shifted:
    """Returns boxes in a right quarter of the picture (ID) and in a left one (OOD); others drop."""
    if labels.box is None:
        raise InvalidValueError(
            explain("shift 'loca' needs boxes, and the data set has none", fix="Use another shift")
        )
    xmin, ymin, xmax, ymax = (2 * labels.box).T
    level = (ymax < labels.height) | (ymin > labels.height)
    right, left = (
        np.flatnonzero(side & level) for side in (xmin > labels.width, xmax < labels.width)
    )
    if not len(right) or not len(left):
        raise InvalidValueError(
            explain(
                f"shift 'loca': of {len(level)} boxes {len(right)} lie in a right quarter of the"
                f" picture and {len(left)} in a left one",
                fix="Use pairs of rooms/multi-v1; single objects are in the middle of theirs",
            )
        )
    return Shifted(right, left)


def unshifted(count: int, draw: random.Random) -> Shifted:
    """Returns a tenth of the rows, in the order drawn, and the others."""
    ood = draw.sample(range(count), min(count, max(_LEAST_HELD, int(_HELD_ROWS * count))))
    left = np.setdiff1d(np.arange(count), ood)
    return Shifted(left, np.asarray(ood, dtype=np.int64))


def _held_pairs(
    candidates: Sequence[tuple[int, int]], trained: Sequence[tuple[int, int]], names: Sequence[str]
) -> set[tuple[int, int]]:
    """Returns the candidates to hold out; one that may not be joins the trained pairs at once."""
    number = {name: verb for verb, name in enumerate(names)}
    opposite = {number[a]: number[b] for a, b in OPPOSITES.items() if a in number and b in number}
    seen = set(trained)
    verbs, nouns = {verb for verb, _ in seen}, {noun for _, noun in seen}
    held: set[tuple[int, int]] = set()
    for verb, noun in candidates:
        known = verb in verbs and noun in nouns
        if known and verb in opposite and (opposite[verb], noun) in seen:
            held.add((verb, noun))
        else:
            seen.add((verb, noun))
            verbs.add(verb)
            nouns.add(noun)
    return held


# --------------------------------------------------------------------------- rows


def _take(labels: Labels, rows: Rows) -> Labels:
    return Labels(
        verb=labels.verb[rows],
        noun=labels.noun[rows],
        box=None if labels.box is None else labels.box[rows],
        verbs=labels.verbs,
        width=labels.width,
        height=labels.height,
        house=None if labels.house is None else labels.house[rows],
    )


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
