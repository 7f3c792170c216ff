"""Noise with an address: (seed, variable, episode, step) names every random number.

A draw is a pure function of its address (Philox-4x32-10, a counter-based generator), so an
intervention on one variable can never shift another's noise, thousands of worlds are drawn in one
call, and a batch draw equals the single draws bit for bit. The same code runs on NumPy and Torch.
This is the only module that turns seeds into randomness.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from interverse.core.arrays import Array, device, namespace
from interverse.core.errors import InvalidValueError, check_name, check_whole

_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LARGEST_SEED = 2**63 - 1
# First seed of what a purpose plays. An episode is addressed by (seed, episode), so two purposes
# share none: a policy that was trained meets each test for the first time. People name seeds in the
# first region, for `reset`, `evaluate` and `rollout`, and the published splits lie there. Data are
# collected from the second on, unless a seed is named.
SEED_REGIONS = {
    "named": 0,
    "collecting": 1 << 60,
    "demonstrations": 1 << 61,
    "scoring": 3 << 60,
    "training": 1 << 62,
}
SEEDS_OF_A_RUN = 1 << 20  # worlds, or starts, that each seed has to itself beyond the first region
_MOST_RUNS = 1 << 40
_APART = 1_000_003  # steps between the addresses of two draws: longer than any episode


def philox(counter: Sequence[Array], key: Sequence[Array]) -> tuple[Array, Array, Array, Array]:
    """Returns four arrays of 32-bit words (held in int64) for a counter of four and a key of two.

    The words of the broadcast counters and keys; Random123's Philox-4x32 with ten rounds.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        # int64 products wrap; shifting and masking still gives the exact high and low words.
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            ((p1 >> 32) & _MASK) ^ c1 ^ k0,
            p1 & _MASK,
            ((p0 >> 32) & _MASK) ^ c3 ^ k1,
            p0 & _MASK,
        )
        k0, k1 = (k0 + _WEYL[0]) & _MASK, (k1 + _WEYL[1]) & _MASK
    return c0, c1, c2, c3


@functools.cache
def name_word(name: str) -> int:
    """Returns the 32-bit word that stands for a variable's name in an address."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "little")


@functools.lru_cache(maxsize=1024)
def _name_words(names: tuple[str, ...], xp: Any, where: Any) -> Array:
    """Returns the words of names, kept: on a GPU each upload would hold up the step."""
    return xp.asarray([name_word(name) for name in names], dtype=xp.int64, device=where)


def check_seed(seed: object, *, name: str = "seed") -> int:
    """Returns the seed as an int, or raises for anything but a whole number in [0, 2**63)."""
    whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if not whole or not 0 <= int(seed) <= _LARGEST_SEED:  # type: ignore[call-overload]
        raise InvalidValueError(
            f"{name} must be a whole number, got {seed!r}",
            allowed=f"0 to {_LARGEST_SEED}",
            fix=f"Pass {name}=0, for instance",
        )
    return int(seed)  # type: ignore[call-overload]


def region_seed(purpose: str, seed: int) -> int:
    """Returns the seed of the first world that a run with a seed plays for a purpose.

    >>> region_seed("named", 3), region_seed("training", 3) - region_seed("training", 2)
    (3, 1048576)
    """
    check_name("purpose", purpose, SEED_REGIONS)
    if purpose == "named":
        return check_seed(seed)
    check_whole(seed, "seed", _MOST_RUNS - 1, least=0)
    return SEED_REGIONS[purpose] + seed * SEEDS_OF_A_RUN


def fresh_seed() -> int:
    """Returns a seed from the operating system, for a reset without one; it is recorded."""
    return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])


@final
@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of N worlds at one moment: their seeds, episodes and steps, each (N,) int64."""

    seeds: Array
    episodes: Array
    steps: Array

    @classmethod
    def single(cls, *, seed: int, episode: int = 0, step: int = 0) -> Noise:
        """Returns the noise of one world."""
        return cls(*(np.array([v], dtype=np.int64) for v in (seed, episode, step)))

    def __len__(self) -> int:
        return int(self.seeds.shape[0])

    def take(self, worlds: Array) -> Noise:
        """Returns the noise of some of the worlds."""
        return Noise(self.seeds[worlds], self.episodes[worlds], self.steps[worlds])

    def at(self, step: int) -> Noise:
        """Returns the noise of the same worlds and episodes at another step."""
        return replace(self, steps=self.steps * 0 + step)

    def again(self, number: int) -> Noise:
        """Returns the noise of a further draw at the same moment; number 0 is this noise."""
        return replace(self, steps=self.steps + _APART * (number & _MASK))

    def words(self, names: Sequence[str], count: int) -> Array:
        """Returns (N, len(names), count) words in [0, 2**32) held in int64."""
        xp = namespace(self.seeds)
        where = device(self.seeds)
        blocks = xp.arange(-(-count // 4), dtype=xp.int64, device=where)
        tags = _name_words(tuple(names), xp, where)
        column = (slice(None), None, None)
        out = philox(
            (
                blocks[None, None, :],
                (self.steps & _MASK)[column],
                (self.episodes & _MASK)[column],
                tags[None, :, None],
            ),
            ((self.seeds & _MASK)[column], ((self.seeds >> 32) & _MASK)[column]),
        )
        stacked = xp.stack(out, axis=-1)
        return xp.reshape(stacked, (len(self), len(names), -1))[:, :, :count]

    def uniforms(self, names: Sequence[str], count: int = 1) -> Array:
        """Returns (N, len(names), count) float64 in [0, 1), one address per name."""
        words = self.words(names, 2 * count)
        xp = namespace(words)
        high, low = words[:, :, 0::2] >> 5, words[:, :, 1::2] >> 6
        return xp.astype(high * 2**26 + low, xp.float64) * 2.0**-53

    def uniform(self, name: str, shape: tuple[int, ...] = ()) -> Array:
        """Returns (N, *shape) float64 in [0, 1).

        >>> Noise.single(seed=0).uniform("block/mass").shape
        (1,)
        """
        flat = self.uniforms([name], math.prod(shape))[:, 0, :]
        return namespace(flat).reshape(flat, (len(self), *shape))

    def integers(self, name: str, high: int, shape: tuple[int, ...] = ()) -> Array:
        """Returns (N, *shape) int64 in [0, high)."""
        u = self.uniform(name, shape)
        xp = namespace(u)
        return xp.astype(xp.floor(u * high), xp.int64)

    def normal(self, name: str, shape: tuple[int, ...] = ()) -> Array:
        """Returns (N, *shape) standard normal numbers (Box-Muller)."""
        u = self.uniform(name, (*shape, 2))
        xp = namespace(u)
        radius = xp.sqrt(-2.0 * xp.log(1.0 - u[..., 0]))
        return radius * xp.cos(2.0 * math.pi * u[..., 1])

    def generator(self, name: str, world: int = 0) -> np.random.Generator:
        """Returns one world's NumPy generator for this address, for draws of unknown length."""
        address = [int(v[world]) for v in (self.seeds, self.episodes, self.steps)]
        return generator(seed=address[0], name=name, episode=address[1], step=address[2])


def generator(*, seed: int, name: str, episode: int = 0, step: int = 0) -> np.random.Generator:
    """Returns the NumPy generator that stands at an address.

    >>> a, b = generator(seed=1, name="goal"), generator(seed=1, name="goal")
    >>> bool(a.random() == b.random())
    True
    """
    return np.random.Generator(
        np.random.Philox(np.random.SeedSequence([seed, name_word(name), episode, step]))
    )
