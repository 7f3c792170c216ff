"""Picture sizes of a run: what the world draws and what the encoder sees fit each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interverse.agents import tagged
from interverse.agents.pixel.presets import drawn_size
from interverse.core.errors import InvalidValueError, check_whole, explain

_SEEN, _DRAWN, _OPTION = "--hyper image_size", "--hyper render_size", "--option image_size"
_LARGEST = 2048


def picture_sizes(
    algorithm: str, hyper: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, int]:
    """Returns the hyper-parameters `image_size` and `render_size` that a run's flags come to.

    None where no size is given: the preset's fit. Agents that crop see a part of what is drawn, all
    others the whole of it.

    >>> picture_sizes("sac_aug", {"image_size": 32}, {})
    {'image_size': 32, 'render_size': 32}
    >>> picture_sizes("rad", {"image_size": 84}, {})
    {'image_size': 84, 'render_size': 100}
    """
    given = _given(hyper, options)
    seen, drawn = given.get(_SEEN), _one(algorithm, given)
    if algorithm not in tagged("cropped"):
        seen = drawn
    elif seen is not None and drawn is None:
        drawn = drawn_size(algorithm, seen)
    sizes = {"image_size": seen, "render_size": drawn}
    return {name: size for name, size in sizes.items() if size is not None}


def _given(hyper: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, int]:
    """Returns the sizes that are asked for by the flag of each."""
    asked = {_SEEN: hyper.get("image_size"), _DRAWN: hyper.get("render_size")}
    asked[_OPTION] = _edge(options.get("image_size"))
    given = {flag: size for flag, size in asked.items() if size is not None}
    for flag, size in given.items():
        check_whole(size, flag, _LARGEST)
    return given


def _edge(size: Any) -> Any:
    """Returns the edge of a square that is given as rows and columns; anything else as it is."""
    is_square = isinstance(size, tuple | list) and len(size) == 2 and size[0] == size[1]
    return size[0] if is_square else size


def _one(algorithm: str, given: Mapping[str, int]) -> int | None:
    """Returns the size that is drawn, or raises where two are asked for."""
    crops = algorithm in tagged("cropped")
    drawn = {flag: size for flag, size in given.items() if flag != _SEEN or not crops}
    if len(set(drawn.values())) > 1:
        flags = " and ".join(f"{flag} is {size}" for flag, size in drawn.items())
        raise InvalidValueError(
            explain(
                f"{flags} for {algorithm}",
                allowed=f"one size; {', '.join(tagged('cropped'))} see crops of larger pictures",
                fix="Give one of them and leave the others out",
            )
        )
    return next(iter(drawn.values()), None)
