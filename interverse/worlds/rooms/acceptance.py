"""Acceptance tests of pairs: which objects are large enough, and what may have changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.rooms.drawing import Frame

Box = tuple[int, int, int, int]
_PUBLISHED = 672  # pixels a side of the pictures that the limits below are for
_SMALLEST, _BORDER, _LARGE, _INSIDE = 60, 20, 100, 1000
_OUTSIDE = 20


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """Acceptance limits for pictures of a size, those of the original scaled with it."""

    smallest: float
    border: float
    large: float
    inside: float
    outside: int

    @classmethod
    def of(cls, size: int) -> Limits:
        """Returns the limits for pictures of so many pixels a side."""
        by = size / _PUBLISHED
        return cls(_SMALLEST * by, _BORDER * by, _LARGE * by, _INSIDE * by * by, _OUTSIDE)

    def fits(self, box: Box, size: int) -> bool:
        """Returns whether a box is large enough, and away from the border or larger still."""
        width, height = box[2] - box[0], box[3] - box[1]
        if min(width, height) < self.smallest:
            return False
        near = min(box[0], box[1], size - box[2], size - box[3]) <= self.border
        return not near or min(width, height) > self.large


def refusal(before: Frame, after: Frame, item: int, limits: Limits, *, spills: bool) -> str | None:
    """Returns why two pictures that differ by an action make no pair, or None."""
    assert before.items is not None  # asked for
    assert after.items is not None
    assert before.rgb is not None
    assert after.rgb is not None
    boxes = [box_of(items == item) for items in (before.items, after.items)]
    if boxes[0] is None or boxes[1] is None:
        return "lost"
    differs = np.any(before.rgb != after.rgb, axis=-1)
    both = np.logical_and(*(_filled(box, len(differs)) for box in boxes))
    either = np.logical_or(*(_filled(box, len(differs)) for box in boxes))
    if int(np.sum(differs & both)) <= limits.inside:
        return "little changed"
    if not spills and int(np.sum(differs & ~either)) >= limits.outside:
        return "changed outside"
    return None


def box_of(mask: NDArray[np.bool_]) -> Box | None:
    """Returns xmin, ymin, xmax, ymax of a mask and the pixel around it, None for an empty one.

    The pixel around belongs to it: edges are drawn soft, and a mask has the pixels' centres only.

    >>> box_of(np.eye(8, dtype=bool)[2:5])
    (1, 0, 6, 3)
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if len(rows) == 0:
        return None
    height, width = mask.shape
    return (
        max(int(columns[0]) - 1, 0),
        max(int(rows[0]) - 1, 0),
        min(int(columns[-1]) + 2, width),
        min(int(rows[-1]) + 2, height),
    )


def _filled(box: Box | None, size: int) -> NDArray[np.bool_]:
    found = np.zeros((size, size), dtype=bool)
    if box is not None:
        found[box[1] : box[3], box[0] : box[2]] = True
    return found
