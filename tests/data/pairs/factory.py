"""Pairs that no renderer drew: small textured pictures whose every array is known by address."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from interverse.worlds.rooms.pair import Address, Pair, Rejection

VERBS = ("open", "close", "turnon", "turnoff", "dirty", "clean", "break")
NOUNS = ("Book", "Box", "Fridge", "Laptop", "Mug", "Vase")
SIZE = 32


def make_pair(
    address: Address, *, verb: int = 0, cls: int = 0, size: int = SIZE, depth: bool = False
) -> Pair:
    """Returns a pair that depends on its address alone."""
    rng = np.random.default_rng(tuple(address))
    before = rng.integers(0, 255, (size, size, 3), dtype=np.uint8)
    left, top = rng.integers(1, size // 2, 2).tolist()
    box = (left, top, left + size // 3, top + size // 4)
    mask = np.zeros((size, size), dtype=bool)
    mask[box[1] : box[3], box[0] : box[2]] = True
    after = np.where(mask[..., None], 255 - before, before)
    instances = np.where(mask, 300, -1).astype(np.int16)
    state = rng.random(4)
    values = {"room/seed": np.array(7 * address.house), "object/state": state}
    changed = {**values, "object/state": 1 - state}
    near = rng.random((size, size)).astype(np.float16)
    return Pair(
        before=before,
        after=after,
        mask_before=mask,
        mask_after=mask,
        instances_before=instances,
        instances_after=instances,
        box_before=box,
        box_after=box,
        verb=verb,
        cls=cls,
        factors_before=values,
        factors_after=changed,
        nuisance=("room/seed",) if address.index == 1 else (),
        address=address,
        depth_before=near if depth else None,
        depth_after=near if depth else None,
    )


@dataclass(frozen=True)
class Source:
    """Three pairs a house, none in houses 4, 9, 14, ...; a rejection before each."""

    seed: int = 0
    depth: bool = False
    die_in: int | None = None
    slow: float = 0.0
    verbs: tuple[str, ...] = VERBS
    nouns: tuple[str, ...] = NOUNS
    graph: str = "{}"

    def __call__(self, house: int) -> Iterator[Pair | Rejection]:
        for index in range(0 if house % 5 == 4 else 3):
            time.sleep(self.slow)
            yield Rejection(reason="small" if index else "hidden")
            if house == self.die_in and index == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            rng = np.random.default_rng([house, index])
            yield make_pair(
                Address(self.seed, house, 0, index),
                verb=int(rng.integers(7)),
                cls=int(rng.integers(6)),
                depth=self.depth,
            )


@dataclass(frozen=True)
class Nothing:
    """Accepts nothing."""

    verbs: tuple[str, ...] = VERBS
    nouns: tuple[str, ...] = NOUNS
    graph: str = "{}"

    def __call__(self, house: int) -> Iterator[Pair | Rejection]:
        yield Rejection(reason="hidden")
