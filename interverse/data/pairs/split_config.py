"""Labels, settings and rows of a split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, check_name, check_number, explain

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
class SplitConfig:
    """How to split."""

    shift: Literal["comp", "loca", "noun", "random", "verb"] = "comp"
    """comp: unseen (verb, noun) pairs. noun, verb: unseen classes. loca: left against right.
    random: no shift."""
    variant: Literal["reference", "mended"] = "reference"
    """As the published code does it, or with its defects mended."""
    train: int = 5000
    """The most rows to train on; the published Epic-Kitchens runs have 1000."""
    test: int = 5000
    """The most rows of each test set; half of the ID rows and the OOD rows bound it too."""
    valid: int | None = None
    """Rows of the validation set, all ID. None takes what training leaves over, a test set's size
    at most, and at least a tenth of what is left to train on in the mended variant. A number is
    taken from the rows left over first and then from the end of the training rows."""
    test_houses: float = 0.0
    """Share of the houses whose pairs are for testing alone, 0 to 0.9; at 0 houses are shared, as
    in the published code."""

    def __post_init__(self) -> None:
        check_name("shift", self.shift, SHIFTS)
        check_name("variant", self.variant, ("reference", "mended"))
        for name in ("train", "test", "valid"):
            value = getattr(self, name)
            if value is not None and value < (0 if name == "valid" else 1):
                raise InvalidValueError(
                    explain(f"{name} is {value}", allowed="a whole number of rows")
                )
        check_number(self.test_houses, "test_houses", most=0.9)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairSplit:
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
