"""A before/after pair: two pictures, the action between them, and every variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray


class Address(NamedTuple):
    """Where a pair comes from: the same address gives the same pair.

    Attributes:
        seed: of the data set. house: its room or house, from 0.
        round: how often the house was furnished anew before. index: of the pair in its house.
    """

    seed: int
    house: int
    round: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Origin:
    """The world that a pair was drawn in, so that it can be drawn again.

    Attributes:
        world_id: of the world. options: that it was made with.
        state: the world's saved state before the action; None where only the address is known.
        attempt: number of the try in its round, whose noise moves camera and light.
        afterwards: values that an intervention after the action set.
    """

    world_id: str
    options: Mapping[str, Any]
    state: Mapping[str, NDArray[Any]] | None = None
    attempt: int = 0
    afterwards: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """A scene before and after one action on one object. Pictures are S x S, row 0 at the top.

    Attributes:
        before, after: uint8 (S, S, 3).
        mask_before, mask_after: bool (S, S), where the object acted on is seen.
        instances_before, instances_after: int16 (S, S), what each pixel shows; -1 is no object.
        box_before, box_after: (xmin, ymin, xmax, ymax) of the masks, xmax and ymax one past the
            last pixel, so that `picture[ymin:ymax, xmin:xmax]` is the crop.
        verb: number of the action. cls: number of the object's class.
        factors_before, factors_after: every variable of the world, by name.
        nuisance: names of the variables that changed besides those the action changes.
        address: where it comes from.
        depth_before, depth_after: float16 (S, S) in metres, or None.
        origin: the world it was drawn in; None for pictures from elsewhere.
    """

    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    mask_before: NDArray[np.bool_]
    mask_after: NDArray[np.bool_]
    instances_before: NDArray[np.int16]
    instances_after: NDArray[np.int16]
    box_before: tuple[int, int, int, int]
    box_after: tuple[int, int, int, int]
    verb: int
    cls: int
    factors_before: Mapping[str, NDArray[Any]]
    factors_after: Mapping[str, NDArray[Any]]
    nuisance: tuple[str, ...]
    address: Address
    depth_before: NDArray[np.float16] | None = None
    depth_after: NDArray[np.float16] | None = None
    origin: Origin | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A try that gave no pair. `reason` is one of a few words, so that they can be counted."""

    reason: str
