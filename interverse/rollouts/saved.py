"""Saved policies: where they lie, what their cards say, those of the package and of CausalWorld."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.code import files_hash
from interverse.core.errors import FileFormatError, check_name
from interverse.core.files.atomic import scratch_folder, write_json
from interverse.core.files.json_text import read_json_object

NAMES = ("random", "scripted")  # of policies that every world, or some, bring along
PolicyLike = Any  # a callable, "random", "scripted", a path, an SB3 model, a Torch module
WEIGHTS, CARD = "policy.safetensors", "policy.json"
POLICY_FOLDER = "policy"  # of a training run
_HASH = "weights_hash"  # of the tensors' file, in the card
_MOST_LAYERS = 256
_MOST_ACTIONS = 100_000


Saved = TypeVar("Saved")


def is_named(given: object) -> bool:
    """Returns whether a policy is one that worlds bring along: it has learned nothing."""
    return isinstance(given, str) and given in NAMES


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
    """Writes a policy's card and weights into a folder, each whole; returns the folder."""
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

    `make` makes it of the card and the tensors, or raises ValueError or TypeError.
    """
    from interverse.core.files.tensor_files import read_safetensors  # loads Torch

    source = Path(folder)
    absent = [name for name in (CARD, WEIGHTS) if not (source / name).is_file()]
    if absent:
        raise FileFormatError(f"{source} holds no {what}: {absent[0]} is missing")
    try:
        card = read_json_object(source / CARD)
        known = card.pop(_HASH, None)  # older cards have none
        if known not in (None, files_hash(source / WEIGHTS)):
            raise ValueError(f"{WEIGHTS} is not what was saved: it was damaged or exchanged")
        return make(card, read_safetensors(source / WEIGHTS))
    except (ValueError, TypeError, OSError) as error:
        raise FileFormatError(
            f"{source} holds no {what}: {error}",
            allowed=f"{WEIGHTS} and {CARD} of format {format}",
            fix="Export it with `interverse train`",
        ) from error


def check_layers(name: str, count: Any) -> None:
    """Raises unless a number of layers is one that a network can have."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MOST_LAYERS:
        raise FileFormatError(f"{name} is {count!r}", allowed=f"1 to {_MOST_LAYERS}")


def check_bounds(low: Any, high: Any) -> None:
    """Raises unless two lists of finite numbers are the bounds of an action."""
    for name, ends in (("low", low), ("high", high)):
        if not isinstance(ends, list) or not 1 <= len(ends) <= _MOST_ACTIONS:
            raise FileFormatError(f"{name} is no list of numbers", allowed="one an action")
        if not all(isinstance(n, int | float) and math.isfinite(n) for n in ends):
            raise FileFormatError(f"{name} holds something else than finite numbers")
    if len(low) != len(high) or any(a > b for a, b in zip(low, high, strict=True)):
        raise FileFormatError("low and high are no bounds of an action")


def check_chain(weights: Mapping[str, Any], names: list[str], first: int, last: int) -> None:
    """Raises unless the named layers fit together, from `first` numbers to `last`.

    Each has a `.weight` (out, in) and a `.bias` (out,).
    """
    width = first
    for name in names:
        weight, bias = weights.get(f"{name}.weight"), weights.get(f"{name}.bias")
        if weight is None or bias is None:
            raise FileFormatError(f"no {name}.weight with its bias")
        shape = tuple(weight.shape)
        if len(shape) != 2 or shape[1] != width or tuple(bias.shape) != (shape[0],):
            raise FileFormatError(f"{name}.weight is {shape}", allowed=f"(out, {width})")
        width = shape[0]
    if width != last:
        raise FileFormatError(f"the last layer gives {width} numbers", allowed=f"{last}")


def check_seen(shape: tuple[int, ...], wanted: int) -> None:
    """Raises unless batched observations are flat ones that the policy was trained on."""
    if len(shape) != 2 or shape[1] != wanted:
        raise FileFormatError(
            f"the saved policy cannot see observations of shape {shape[1:]}",
            allowed=f"flat observations of {wanted} numbers",
            fix="Make the world with the id and the options the policy was trained with",
        )


def printed_numbers(text: Any) -> NDArray[np.float32]:
    """Returns the numbers that NumPy printed: Stable-Baselines keeps bounds as text.

    >>> printed_numbers("[-1.  0.5]").tolist()
    [-1.0, 0.5]
    """
    if not isinstance(text, str):
        raise ValueError(f"bounds are a {type(text).__name__}")
    return np.array([float(word) for word in text.strip("[]").split()], dtype=np.float32)


TRAINED = ("pick_and_place_2", "picking_1", "picking_2", "pushing_1", "pushing_2", "reaching_1")
"""A task and CausalWorld's curriculum it was trained under; they act with skip_frame=3."""
TRAINED_PIXELS = (
    "cartpole_balance_paper",
    "cartpole_balance_small",
    "cartpole_balance_svea",
    "walker_walk_paper",
)
"""A control task, seen in the default look only, and the preset of its SAC+AUG, or its SVEA.

That SVEA had one random filter for a whole batch, as `policy.json` says. Walker Walk had a
fifth of the paper's length."""
SHIPPED = (*TRAINED, *TRAINED_PIXELS)


def trained_policy(name: str) -> Path:
    """Returns the folder of a trained policy, for `iv.evaluate` and every other taker.

    >>> trained_policy("pushing_2").name
    'pushing_2'
    """
    check_name("trained policy", name, SHIPPED)
    return Path(str(files("interverse") / "agents" / "policies")) / name


def shipped_path(given: str) -> str:
    """Returns the folder of a policy of the package, given by name; all else as it is."""
    if given not in SHIPPED or Path(given).exists():
        return given
    return str(trained_policy(given))


_PAPER_WORLD = {"skip_frame": 3}  # 83 Hz, so that ten seconds are 834 steps
# The worlds of the paper's runs, with the weights of their rewards.
PAPER_WORLDS: Mapping[str, Mapping[str, Any]] = {
    f"trifinger/{task}-v1": {
        **_PAPER_WORLD,
        "dense_reward_weights": weights,
        "fractional_reward_weight": 1.0,
    }
    for task, weights in {
        "pushing": (750.0, 250.0, 0.0),
        "picking": (250.0, 0.0, 125.0, 0.0, 750.0, 0.0, 0.0, 0.005),
        "pick_and_place": (750.0, 50.0, 250.0, 0.0, 0.005),
        "stacking2": (750.0, 250.0, 250.0, 125.0, 0.005),
    }.items()
}


@final
class Released(NamedTuple):
    """A policy that the original released: its task's name, and its curriculum."""

    task: str
    curriculum: int


RELEASED: Mapping[str, Released] = {  # by SHA-256 of the zip
    # causal_world/assets/baseline_actors
    "c33f081f154b9ae969e785e2add0ed169cc8267d5b5814099916dabddc875eb6": Released(
        "pick_and_place", 0
    ),
    "4890f867b9b71fae70e9618c123c2a63fef11d740cb8d07665e029918343c737": Released("picking", 1),
    "ab42f124171c276ad5c709060983edd7cea3451e1102278afd4293f2c322ad16": Released("pushing", 1),
    "5f528828b8c78a5ff2c989e7555b64dd8356a3d14ceea625f40ab359e8fb8bdf": Released("reaching", 1),
    "64aaf5a7e05f01b53f7a181b14605a2e9b8e83ddd696e6434a37ec7843bf993c": Released("stacking2", 1),
    # tutorials/evaluating_model
    "1d706dc82f195281f1b29604a24c4508f9106e1deef92d115a2df793059cceb4": Released("pushing", 0),
    "47f0c486a7a86f66708077b65d5edf6d79aeb03bb32c8ece1e2f3b0bf7270e42": Released("pushing", 1),
}


@final
@dataclass(frozen=True, slots=True)
class ReleasedCard:
    """What is known of a released policy, as the cards of saved policies tell it."""

    trained: Mapping[str, Any]


def released(path: Path) -> Released | None:
    """Returns which of the released policies a file is, by its content; None for others."""
    if not path.is_file():
        return None
    return RELEASED.get(hashlib.sha256(path.read_bytes()).hexdigest())


def released_card(path: Path) -> ReleasedCard | None:
    """Returns the card of a released policy: its task and the world it was trained in."""
    found = released(path)
    if found is None:
        return None
    task = f"trifinger/{found.task}-v1"
    config = {"task": task, "curriculum": found.curriculum}
    return ReleasedCard({"config": config, "options": PAPER_WORLDS.get(task, _PAPER_WORLD)})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFiles:
    """What a path held: a folder's files by their paths in it, or one file by the path "."."""

    name: str
    files: Mapping[str, bytes]


def pack_policy(given: PolicyLike) -> PolicyLike:
    """Returns the files of a policy that is a path, and any other policy as it is."""
    if (root := policy_path(given)) is None:
        return given
    found = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in found}
    return PolicyFiles(name=root.resolve().name, files=files)


@contextmanager
def unpacked_policy(given: PolicyLike) -> Iterator[PolicyLike]:
    """Yields the path of a packed policy for as long as it is needed, any other as it is."""
    if not isinstance(given, PolicyFiles):
        yield given
        return
    with scratch_folder() as folder:
        root = folder / given.name
        for name, data in given.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield root
