"""A Torch module as a policy: it acts in eval mode, and is left as it was.

What a module draws in `forward` comes from Torch's generators, which are seeded for every call from
the address of the batch: the seed of its first row, and how many calls there were since the reset.
In an evaluation each episode has its own row of a batch of one size, so a row's draws are the same
whichever other episodes are played.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import mapped
from interverse.core.errors import InterverseError, InvalidValueError, missing_extra
from interverse.core.rng import generator

try:
    import torch
except ImportError as error:
    raise missing_extra("torch", "torch") from error

_SEEDS = 2**63
_FAILURES: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    torch.jit.Error,
)


@final
class ModulePolicy:
    """A module on float32 tensors, or on a dict of them where observations are a Dict."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._reset = getattr(module, "reset", None)
        self._seed = self._calls = 0

    def reset(self, mask: NDArray[np.bool_], seeds: NDArray[np.int64]) -> None:
        """Starts the draws afresh, and passes the call on to a module that has `reset`."""
        if mask[0]:
            self._seed, self._calls = int(seeds[0]), 0
        if callable(self._reset):
            self._reset(mask, seeds)

    def __call__(self, observations: Any) -> NDArray[Any]:
        """Returns one action per world."""
        held = next(self._module.parameters(), next(self._module.buffers(), None))
        as_seen: dict[str, Any] = {
            "dtype": torch.float32,
            "device": None if held is None else held.device,
        }
        seen = mapped(lambda part: torch.as_tensor(np.asarray(part), **as_seen), observations)
        try:
            with torch.no_grad(), eval_mode(self._module), self._own_draws():
                actions = self._module(seen)
        except InterverseError:
            raise
        except _FAILURES as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InvalidValueError(
                f"the Torch module failed on {_words(seen)}: {said}",
                fix="Pass a module that takes these observations as float32",
            ) from error
        if not isinstance(actions, torch.Tensor):
            raise InvalidValueError(
                f"the Torch module returned a {type(actions).__name__} for {_words(seen)}",
                allowed="a tensor, one action a row",
            )
        self._calls += 1
        plain = actions.detach().cpu()
        return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()

    @contextmanager
    def _own_draws(self) -> Iterator[None]:
        """Seeds Torch's generators by the address, and puts them back."""
        drawn = generator(seed=self._seed % _SEEDS, name="policy/torch", step=self._calls)
        cuda = torch.cuda.is_initialized()
        devices = range(torch.cuda.device_count()) if cuda else ()
        with torch.random.fork_rng(devices=list(devices)):
            seed = int(drawn.integers(_SEEDS))
            torch.default_generator.manual_seed(seed)
            if cuda:
                torch.cuda.manual_seed_all(seed)
            yield


@contextmanager
def eval_mode(module: Any) -> Iterator[None]:
    """Puts a module and all its parts into eval mode, and back into the modes they had."""
    modes = [(part, part.training) for part in module.modules() if hasattr(part, "training")]
    if not any(training for _, training in modes):
        yield
        return
    whole = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(whole)
        for part, training in modes:
            part.training = training


def _words(seen: Any) -> str:
    """Returns the shapes and types of what a module was given."""
    if isinstance(seen, Mapping):
        return "{" + ", ".join(f"{name}: {_words(part)}" for name, part in seen.items()) + "}"
    return f"{str(seen.dtype).removeprefix('torch.')} {tuple(seen.shape)}"
