"""Augmentations of batches of stacked frames, by name.

A batch is (N, 3k, H, W): k frames of three colours each, pixels on 0..255, uint8 or floating. The
random parameters of sample n are drawn once per update, from a generator, and shared by all its
frames and by every batch of one call (an observation and its successor). `rule="paper"` follows
the text of the DMCR paper; `rule="code"` does what its released code does where the two differ.
"""

from __future__ import annotations

import functools
import logging
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

from interverse.agents.pixel import AUGMENTATIONS
from interverse.core.errors import InvalidValueError, check_name, explain, missing_extra

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise missing_extra("torch", "torch") from error

Rule = Literal["paper", "code"]
RULES: tuple[Rule, ...] = ("paper", "code")
Drawn: TypeAlias = tuple[Tensor, ...]
FULL_SIZE = 84  # the picture that lengths in the paper refer to; others are scaled

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Augmentation(ABC):
    """Changes pictures at random; subclasses are final and say what is drawn and what is done.

    What only moves or covers pixels keeps their dtype. Noise, resizing, colours give float32.
    """

    rule: Rule = "paper"

    def __post_init__(self) -> None:
        check_name("rule", self.rule, RULES)

    @property
    def noisy(self) -> bool:
        """Whether every pixel gets noise of its own, which no two batches share."""
        return False

    def numbers(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Returns the chance behind the parameters: `draws` numbers in [0, 1) for each sample."""
        return uniform((self.draws(shape), shape[0]), generator)

    def draws(self, shape: torch.Size) -> int:
        """Returns how many numbers a sample needs."""
        return 0

    @abstractmethod
    def parameters(self, numbers: Tensor, shape: torch.Size) -> Drawn:
        """Returns the parameters of N samples: a pure function, so it can be fused."""

    def draw(self, shape: torch.Size, generator: torch.Generator) -> Drawn:
        """Returns the parameters of N samples, on the generator's device."""
        return self.parameters(self.numbers(shape, generator), shape)

    @abstractmethod
    def alter(self, pictures: Tensor, drawn: Drawn, noise: Tensor | None) -> Tensor:
        """Returns the pictures changed by the parameters: a pure function, so it can be fused."""

    def __call__(self, *batches: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Returns the batches, all changed by the same parameters."""
        shape = check_pictures(*batches)
        # One call for all that is drawn: on a GPU every small operation costs a launch.
        numbers = self.numbers(shape, generator).to(batches[0].device)
        return tuple(self.apply(batch, numbers, generator) for batch in batches)

    def apply(self, pictures: Tensor, numbers: Tensor, generator: torch.Generator) -> Tensor:
        """Returns pictures changed by numbers already drawn."""
        noise = normal(pictures.shape, generator).to(pictures.device) if self.noisy else None
        whole = _fused(self) if pictures.is_cuda else self.whole
        return whole(pictures, numbers, noise)

    def whole(self, pictures: Tensor, numbers: Tensor, noise: Tensor | None) -> Tensor:
        """Returns pictures changed by the parameters that the numbers stand for."""
        return self.alter(pictures, self.parameters(numbers, pictures.shape), noise)


@final
class Chain:
    """Augmentations one after another, such as colour jitter and then the crop."""

    def __init__(self, parts: tuple[Augmentation, ...]) -> None:
        self.parts = parts

    def __call__(self, *batches: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Returns the batches, all changed by the same parameters."""
        for part in self.parts:
            batches = part(*batches, generator=generator)
        return batches


def augmentation(name: str, rule: Rule = "paper") -> Chain:
    """Returns the augmentation of a name; `a+b` does a, then b.

    >>> import torch
    >>> pictures = torch.zeros(2, 9, 84, 84, dtype=torch.uint8)
    >>> now, then = augmentation("color_jitter+drq")(
    ...     pictures, pictures, generator=torch.Generator().manual_seed(0))
    >>> now.shape
    torch.Size([2, 9, 84, 84])
    """
    parts = []
    for word in name.split("+"):
        entry = AUGMENTATIONS[word]
        parts.append(entry.load()(rule=rule, **entry.options))
    return Chain(tuple(parts))


def check_pictures(*batches: Tensor) -> torch.Size:
    """Returns the shape that all batches have, or raises naming what is wrong."""
    shape = batches[0].shape if batches else torch.Size()
    if len(shape) != 4 or shape[1] % 3 or shape[2] != shape[3]:
        raise InvalidValueError(
            explain(
                f"pictures of shape {tuple(shape)}", allowed="(N, 3k, S, S): stacked RGB frames"
            )
        )
    for batch in batches:
        if batch.shape != shape:
            raise InvalidValueError(
                explain(
                    f"batches of shapes {tuple(shape)} and {tuple(batch.shape)}",
                    fix="Batches of one call share their parameters: give them one shape",
                )
            )
        if batch.dtype != torch.uint8 and not batch.is_floating_point():
            raise InvalidValueError(
                explain(f"pictures are {batch.dtype}", allowed="torch.uint8 or floating, 0..255")
            )
    return shape


def integers(low: int, high: int, numbers: Tensor) -> Tensor:
    """Returns whole numbers from low to high, both ends included, for numbers in [0, 1)."""
    return (low + numbers * (high + 1 - low)).floor().long()


def uniform(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Returns numbers in [0, 1)."""
    return torch.rand(shape, generator=generator, device=generator.device)


def normal(shape: torch.Size | tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Returns standard normal numbers."""
    return torch.randn(shape, generator=generator, device=generator.device)


@functools.cache
def _fused(augmentation: Augmentation) -> Callable[..., Tensor]:
    return fused(own_code(augmentation.whole))


def fused(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns a function as one kernel for a GPU; the plain one where nothing can compile it."""
    compiled = torch.compile(plain, dynamic=False)
    works = True

    def whole(*given: Any) -> Tensor:
        nonlocal works
        if works:
            try:
                return compiled(*given)
            except RuntimeError as error:  # no compiler here, or no support for this GPU
                works = False
                _log.warning("pictures are prepared unfused, several times slower: %s", error)
        return plain(*given)

    return whole


def own_code(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns a method with a code object of its own.

    Torch counts compilations by code object and gives up after eight; all augmentations share one.
    """
    held = method.__func__  # type: ignore[attr-defined]
    copied = types.FunctionType(held.__code__.replace(), held.__globals__, held.__name__)
    return types.MethodType(copied, method.__self__)  # type: ignore[attr-defined]
