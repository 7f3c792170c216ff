"""Saved policies: where they lie, and checks of what they say about themselves."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from interverse.core.code import files_hash
from interverse.core.errors import FileFormatError, explain
from interverse.core.files.atomic import write_json
from interverse.core.files.json_text import read_json_object
from interverse.rollouts.shipped import shipped_path

NAMES = ("random", "scripted")  # of policies that every world, or some, bring along
PolicyLike = Any  # a callable, "random", "scripted", a path, an SB3 model, a Torch module
WEIGHTS, CARD = "policy.safetensors", "policy.json"
POLICY_FOLDER = "policy"  # of a training run
_HASH = "weights_hash"  # of the tensors' file, in the card
_MOST_LAYERS = 256
_MOST_ACTIONS = 100_000


Saved = TypeVar("Saved")


def is_path(given: str) -> bool:
    """Returns whether a policy given as text is a path, not a name."""
    return given not in NAMES and Path(given).exists()


def policy_path(given: PolicyLike) -> Path | None:
    """Returns where a policy given as a path lies: a training run has one; None for others.

    A policy of the package may be given by name.
    """
    given = shipped_path(given) if isinstance(given, str) else given
    if not (isinstance(given, os.PathLike) or (isinstance(given, str) and is_path(given))):
        return None
    of_run = Path(given) / POLICY_FOLDER
    return of_run if (of_run / CARD).is_file() else Path(given)


def write_policy(folder: str | os.PathLike[str], card: Any, weights: Mapping[str, Any]) -> Path:
    """Writes a policy's two files into a folder, each whole or not at all; returns the folder.

    Args:
        folder: where they go.
        card: a dataclass that says what the weights are.
        weights: tensors by name.
    """
    from interverse.core.files.tensor_files import write_safetensors  # loads Torch

    target = Path(folder)
    write_safetensors(target / WEIGHTS, weights)
    write_json(target / CARD, {**asdict(card), _HASH: files_hash(target / WEIGHTS)})
    return target


def read_policy(
    folder: str | os.PathLike[str],
    make: Callable[[dict[str, Any], dict[str, Any]], Saved],
    *,
    what: str,
    format: str,
) -> Saved:
    """Returns the policy in a folder; a torn, damaged or foreign one raises FileFormatError.

    Args:
        folder: where its two files lie.
        make: makes it of the card and the tensors, or raises ValueError or TypeError.
        what: it is, for the message.
        format: of its card, for the message.
    """
    from interverse.core.files.tensor_files import read_safetensors  # loads Torch

    source = Path(folder)
    absent = [name for name in (CARD, WEIGHTS) if not (source / name).is_file()]
    if absent:
        raise FileFormatError(explain(f"{source} holds no {what}: {absent[0]} is missing"))
    try:
        card = read_json_object(source / CARD)
        known = card.pop(_HASH, None)  # older cards have none
        if known not in (None, files_hash(source / WEIGHTS)):
            raise ValueError(f"{WEIGHTS} is not what was saved: it was damaged or exchanged")
        return make(card, read_safetensors(source / WEIGHTS))
    except (ValueError, TypeError, OSError) as error:
        raise FileFormatError(
            explain(
                f"{source} holds no {what}: {error}",
                allowed=f"{WEIGHTS} and {CARD} of format {format}",
                fix="Export it with `interverse train`",
            )
        ) from error


def check_layers(name: str, count: Any) -> None:
    """Raises unless a number of layers is one that a network can have."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MOST_LAYERS:
        raise FileFormatError(explain(f"{name} is {count!r}", allowed=f"1 to {_MOST_LAYERS}"))


def check_bounds(low: Any, high: Any) -> None:
    """Raises unless two lists of finite numbers are the bounds of an action."""
    for name, ends in (("low", low), ("high", high)):
        if not isinstance(ends, list) or not 1 <= len(ends) <= _MOST_ACTIONS:
            raise FileFormatError(explain(f"{name} is no list of numbers", allowed="one an action"))
        if not all(_is_finite(number) for number in ends):
            raise FileFormatError(explain(f"{name} holds something else than finite numbers"))
    if len(low) != len(high) or any(a > b for a, b in zip(low, high, strict=True)):
        raise FileFormatError(explain("low and high are no bounds of an action"))


def check_chain(weights: Mapping[str, Any], names: list[str], first: int, last: int) -> None:
    """Raises unless linear layers fit together.

    Args:
        weights: tensors by name.
        names: of the layers, in order; each has a `.weight` (out, in) and a `.bias` (out,).
        first: how many numbers the first layer sees.
        last: how many the last one gives.
    """
    width = first
    for name in names:
        weight, bias = weights.get(f"{name}.weight"), weights.get(f"{name}.bias")
        if weight is None or bias is None:
            raise FileFormatError(explain(f"no {name}.weight with its bias"))
        shape = tuple(weight.shape)
        if len(shape) != 2 or shape[1] != width or tuple(bias.shape) != (shape[0],):
            raise FileFormatError(explain(f"{name}.weight is {shape}", allowed=f"(out, {width})"))
        width = shape[0]
    if width != last:
        raise FileFormatError(explain(f"the last layer gives {width} numbers", allowed=f"{last}"))


def check_seen(shape: tuple[int, ...], wanted: int) -> None:
    """Raises unless batched observations are flat ones that the policy was trained on."""
    if len(shape) != 2 or shape[1] != wanted:
        raise FileFormatError(
            explain(
                f"the saved policy cannot see observations of shape {shape[1:]}",
                allowed=f"flat observations of {wanted} numbers",
                fix="Make the world with the id and the options the policy was trained with",
            )
        )


def _is_finite(number: Any) -> bool:
    return isinstance(number, int | float) and math.isfinite(number)


def printed_numbers(text: Any) -> NDArray[np.float32]:
    """Returns the numbers that NumPy printed: Stable-Baselines keeps bounds as text.

    >>> printed_numbers("[-1.  0.5]").tolist()
    [-1.0, 0.5]
    """
    if not isinstance(text, str):
        raise ValueError(f"bounds are a {type(text).__name__}")
    return np.array([float(word) for word in text.strip("[]").split()], dtype=np.float32)
