"""Sizes of a split: rows in and out of distribution, cut into training, validation and test."""

from __future__ import annotations

import numpy as np

from interverse.core.errors import InvalidValueError, explain
from interverse.data.pairs.split_config import Labels, PairSplit, Rows, Shifted, SplitConfig


def cut(
    shifted: Shifted,
    kept: Rows,
    labels: Labels,
    config: SplitConfig,
    shuffle: np.random.RandomState,
) -> PairSplit:
    """Returns the parts of a split.

    Args:
        shifted: rows in and out of distribution, numbers into `kept`.
        kept: rows of the data set that rebalancing left.
        labels: of the kept rows.
        config: the sizes.
        shuffle: draws the order of the rows, then the test houses.
    """
    if config.test_houses > 0:
        parts = _apart(shifted, labels, config, shuffle)
    else:
        parts = _together(shifted, config, shuffle)
    return PairSplit(**{name: kept[rows] for name, rows in parts.items()}, held=shifted.held)


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
            explain(
                "test_houses needs the house of every pair, and the data set has none",
                fix="Use test_houses=0",
            )
        )
    inside = shifted.id[shuffle.permutation(len(shifted.id))]
    outside = shifted.ood[shuffle.permutation(len(shifted.ood))]
    houses = np.unique(labels.house)
    count = max(1, round(config.test_houses * len(houses)))
    kept_apart = houses[shuffle.permutation(len(houses))[:count]]
    test_id, rest = _by_house(inside, labels.house, kept_apart)
    test_ood, valid_ood = _by_house(outside, labels.house, kept_apart)
    if not min(len(test_id), len(test_ood), len(rest)):
        raise InvalidValueError(
            explain(
                f"{count} test houses of {len(houses)} leave {len(rest)} rows to train on,"
                f" {len(test_id)} ID and {len(test_ood)} OOD rows to test",
                fix="Collect more houses, or choose another test_houses or seed",
            )
        )
    train, valid = _train_and_valid(rest, config, len(test_id))
    found = {"train": train, "valid": valid, "valid_ood": valid_ood}
    return found | {"test_id": test_id[: config.test], "test_ood": test_ood[: config.test]}


def _by_house(rows: Rows, house: Rows, chosen: Rows) -> tuple[Rows, Rows]:
    """Returns the rows in the chosen houses, and the others."""
    inside = np.isin(house[rows], chosen)
    return rows[inside], rows[~inside]


def _train_and_valid(rest: Rows, config: SplitConfig, count: int) -> tuple[Rows, Rows]:
    left_over = max(len(rest) - config.train, 0)
    wanted = config.valid
    if wanted is None:
        wanted = min(left_over, count)
        if config.variant == "mended":
            wanted = max(wanted, -(-min(len(rest), config.train) // 10))
    if wanted and wanted >= len(rest):
        raise InvalidValueError(
            explain(
                f"valid is {wanted}, but {len(rest)} rows are left to train on",
                allowed=f"0 to {len(rest) - 1}",
            )
        )
    start = min(config.train, len(rest) - wanted)
    return rest[:start], rest[start : start + wanted]
