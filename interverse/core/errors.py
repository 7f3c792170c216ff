"""Typed errors whose text says what was given, what is allowed and how to mend it.

Every error a user can cause derives from `InterverseError` and from the built-in class that a
caller would expect (`ValueError`, `LookupError`, ...), so `except ValueError` works too.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

_MOST_NAMES_SHOWN = 12
_LONGEST_SHOWN = 100


class InterverseError(Exception):
    """Anything interverse refuses to do: the problem, what is allowed, how to mend it."""

    def __init__(self, problem: object = "", *, allowed: str = "", fix: str = "") -> None:
        super().__init__(explain(str(problem), allowed=allowed, fix=fix) if problem else problem)


class RefusedStartsWarning(UserWarning):
    """Most starts under a curriculum were refused, and began as without it."""


class InvalidValueError(InterverseError, ValueError):
    """A value of the wrong type, shape or range."""


class UnknownNameError(InterverseError, KeyError):
    """A name that no table holds: an id, a variable, a protocol, an option."""

    __str__ = Exception.__str__  # a KeyError shows its text in quotes


class InterventionError(InvalidValueError):
    """An intervention that was refused; the world is unchanged.

    Attributes:
        reason: why, in one sentence.
        variables: the names concerned.
    """

    def __init__(
        self, reason: str, variables: Iterable[str] = (), *, allowed: str = "", fix: str = ""
    ) -> None:
        super().__init__(reason, allowed=allowed, fix=fix)
        self.reason = str(self)
        self.variables = tuple(variables)


class ActionError(InvalidValueError):
    """An action of the wrong shape or type, outside its space, or not a number."""


class ResetNeededError(InterverseError, RuntimeError):
    """A call that needs a running episode, made before `reset` or after a refused one."""


class FileFormatError(InterverseError, ValueError):
    """A file that is truncated, corrupt, or of another format or version."""


class StorageError(InterverseError, OSError):
    """A full disk, or a file or folder in the way; nothing half-written is left behind."""


class MissingExtraError(InterverseError, ImportError):
    """An optional dependency that is not installed; the text names the extra."""


class RenderError(InterverseError, RuntimeError):
    """No GL library could draw; the text names the packages that mend it."""


class LostError(Exception):
    """A worker, or the machine it ran on, went away before its unit was done."""


def explain(problem: str, *, allowed: str = "", fix: str = "") -> str:
    """Returns one line: the problem (with what was given), what is allowed, how to mend it.

    >>> explain("mass must be > 0, got -1", allowed="[0.015, 0.1] kg", fix="Pass a positive mass.")
    'mass must be > 0, got -1. Allowed: [0.015, 0.1] kg. Pass a positive mass.'
    """
    parts = [problem.rstrip(".") + "."]
    if allowed:
        parts.append(f"Allowed: {allowed.rstrip('.')}.")
    if fix:
        parts.append(fix.rstrip(".") + ".")
    return " ".join(parts)


def unknown(kind: str, given: object, names: Iterable[str], *, fix: str = "") -> str:
    """Returns the text for a name that is in no table, with the nearest one suggested.

    >>> unknown("variable", "blok/mass", ["block/mass", "floor/friction"])
    "unknown variable 'blok/mass'. Did you mean 'block/mass'? Allowed: block/mass, floor/friction."
    >>> unknown("variable", "tool_block/mass", ["mass"]).partition(". ")[2]
    "CausalWorld's 'tool_block' is block_0/... here. Allowed: mass."
    """
    names, given = sorted(names), _shortened(given)
    near = difflib.get_close_matches(str(given), names, n=1, cutoff=0.5)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    if (word := str(given).partition("/")[0]) in FORMER:
        hint = f" CausalWorld's {word!r} is {FORMER[word]} here."
    shown = names
    if len(names) > _MOST_NAMES_SHOWN:
        near_many = difflib.get_close_matches(str(given), names, n=_MOST_NAMES_SHOWN, cutoff=0.0)
        shown = [*sorted(near_many), f"and {len(names) - len(near_many)} more"]
        fix = fix or ("interverse list shows all" if kind == "world" else "")
    tail = f" {fix.rstrip('.')}." if fix else ""
    return f"unknown {kind} {given!r}.{hint} Allowed: {', '.join(shown) or 'none'}.{tail}"


def check_name(kind: str, given: object, names: Collection[Any], *, fix: str = "") -> None:
    """Raises unless a name is one of these, with the nearest ones."""
    try:
        known = given in names
    except (TypeError, ValueError):  # a list is no key of a table, an array has no truth
        known = False
    if not known:
        raise UnknownNameError(unknown(kind, given, map(str, names), fix=fix))


def _shortened(given: object) -> object:
    """Returns a name as it is shown: a long one is cut."""
    text = str(given)
    return given if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def check_whole(value: object, name: str, most: int, *, least: int = 1) -> None:
    """Raises unless a value is a whole number from `least` to `most`.

    >>> check_whole(0, "episodes", 10)
    Traceback (most recent call last):
    interverse.core.errors.InvalidValueError: episodes is 0. Allowed: a whole number from 1 to 10.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= int(value) <= most:  # type: ignore[call-overload]
        raise InvalidValueError(
            f"{name} is {_shortened(value)!r}", allowed=f"a whole number from {least:,} to {most:,}"
        )


def check_number(
    value: object,
    name: str,
    least: float = 0.0,
    most: float = math.inf,
    *,
    above: bool = False,
    below: bool = False,
) -> None:
    """Raises unless a value is a number from `least` to `most`, or strictly `above`, `below` them.

    >>> check_number(1.5, "share", most=1.0)
    Traceback (most recent call last):
    interverse.core.errors.InvalidValueError: share is 1.5. Allowed: a number from 0 to 1.
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    inside = number and least <= value <= most  # type: ignore[operator]
    if not inside or (above and value == least) or (below and value == most):
        low = f"above {least:g}" if above else f"from {least:g}"
        high = "" if most == math.inf else f" to below {most:g}" if below else f" to {most:g}"
        raise InvalidValueError(f"{name} is {_shortened(value)!r}", allowed=f"a number {low}{high}")


def install_line(extra: str) -> str:
    """Returns the command that adds an extra to the installed package.

    Pip looks for the packages of the extra alone: interverse itself is there already.
    """
    return f"pip install 'interverse[{extra}]'"


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """Returns the error for an absent optional package, naming the extra that brings it."""
    return MissingExtraError(
        f"{package} is not installed", fix=f"Install it with: {install_line(extra)}"
    )


# Words of CausalWorld and what they are called here, for messages about unknown names.
_BLOCK, _GOAL = "block_0/...", "goal_0/..."

FORMER: Mapping[str, str] = {
    # variables
    "tool_block": _BLOCK,
    "tool_block_1": _BLOCK,
    "tool_block_2": "block_1/...",
    "goal_block": _GOAL,
    "goal_block_1": _GOAL,
    "goal_block_2": "goal_1/...",
    "goal_60": _GOAL,
    "goal_120": "goal_1/...",
    "goal_300": "goal_2/...",
    "euler_orientation": "orientation, a quaternion x, y, z, w",
    "floor_color": "floor/color",
    "floor_friction": "floor/friction",
    "stage_color": "stage/color",
    "stage_friction": "stage/friction",
    "robot_height": "robot/height",
    "blocks_mass": "blocks/mass",
    "number_of_blocks_in_tower": "tower/counts",
    "tower_dims": "tower/dims",
    "tower_center": "tower/center",
    "num_of_levels": "stack/levels",
    "blocks_min_size": "stack/min_size",
    "max_level_width": "stack/max_width",
    "nums_objects": "general/count",
    "tool_block_size": "general/size, or block_0/size",
    "number_of_obstacles": "obstacles/count",
    # arguments
    "task_generator_id": "the id: make('trifinger/pushing-v1')",
    "variables_space": "space='A', 'B' or 'A_B'",
    "variable_space": "space='A', 'B' or 'A_B'",
    "space_a": "A",
    "space_b": "B",
    "space_a_b": "A_B",
    "activate_sparse_reward": "sparse_reward",
    "camera_indicies": "cameras",
    "max_episode_length": "max_steps, which is one more",
    "enable_visualization": "render_mode='human'",
    "seed": "reset(seed=...)",
    "data_recorder": "the wrapper interverse.rollouts.RecordEpisodes",
    "tool_block_mass": "defaults={'block_0/mass': ...}",
    "tool_block_position": "defaults={'block_0/cartesian_position': ...}",
    "tool_block_orientation": "defaults={'block_0/orientation': ...}",
    "tool_block_1_position": "defaults={'block_0/cartesian_position': ...}",
    "tool_block_1_orientation": "defaults={'block_0/orientation': ...}",
    "tool_block_2_position": "defaults={'block_1/cartesian_position': ...}",
    "tool_block_2_orientation": "defaults={'block_1/orientation': ...}",
    "goal_block_position": "defaults={'goal_0/cartesian_position': ...}",
    "goal_block_orientation": "defaults={'goal_0/orientation': ...}",
    "goal_height": "defaults={'goal_0/cartesian_position': (0, 0, height)}",
    "goal_position": "defaults={'goal_tower/cylindrical_position': ...}",
    "goal_orientation": "defaults={'goal_tower/orientation': ...}",
    "default_goal_60": "defaults={'goal_0/cartesian_position': ...}",
    "default_goal_120": "defaults={'goal_1/cartesian_position': ...}",
    "default_goal_300": "defaults={'goal_2/cartesian_position': ...}",
    "joint_positions": "defaults={'joint_positions': ...}",
}
