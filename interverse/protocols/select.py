"""From what a user writes ("P0-P11", a name, a list) to protocols."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from interverse.core.errors import InvalidValueError, UnknownNameError, explain, unknown
from interverse.protocols import PROTOCOLS
from interverse.protocols.protocol import Protocol
from interverse.worlds import WORLDS

_RANGE = re.compile(r"^([A-Za-z_]*)(\d{1,18})-\1(\d{1,18})$")
Selection = str | Protocol | Sequence[str | Protocol]


def select_protocols(task: str, given: Selection = "all") -> tuple[Protocol, ...]:
    """Returns the protocols meant for a task.

    Args:
        task: a world's id.
        given: "all", "legacy" (those that follow an original's quirks; "all" leaves them out, and
            those that are asked for by name alone), a name, a range such as "P0-P11" (those that
            exist for the task), names separated by commas, protocols of your own, or a list.

    >>> [p.name for p in select_protocols("trifinger/stacking2-v1", "P2-P5")]
    ['P2', 'P4', 'P5']
    """
    WORLDS[task]  # an unknown world is told as such, not as a protocol it lacks
    table = {p.name: p for p in PROTOCOLS.load(task)} if task in PROTOCOLS else {}
    if not table:
        table = {"P0": Protocol(name="P0", note="nothing changes")}
    items = [given] if isinstance(given, str | Protocol) else list(given)
    out: dict[str, Protocol] = {}
    for item in items:
        found = [item] if isinstance(item, Protocol) else _by_name(item, table)
        for protocol in found:
            if out.setdefault(protocol.name, protocol) is not protocol:
                raise InvalidValueError(explain(f"two protocols are named {protocol.name!r}"))
    if not out:
        raise InvalidValueError(
            explain(f"no protocol of {task} is meant by {given!r}", allowed=", ".join(table))
        )
    return tuple(out.values())


def check_unset(chosen: tuple[Protocol, ...], options: Mapping[str, Any]) -> None:
    """Raises for an option that a protocol sets itself: it would be accepted and do nothing."""
    for protocol in chosen:
        for name in sorted({*protocol.grid, *protocol.options} & options.keys()):
            raise InvalidValueError(
                explain(
                    f"{name}={options[name]!r} is asked for, and protocol {protocol.name} sets"
                    f" {name} itself",
                    fix=f"Leave {name} out, choose other protocols, or pass one of your own:"
                    " dataclasses.replace changes grid or options of one that exists",
                )
            )


def _by_name(text: str, table: dict[str, Protocol]) -> list[Protocol]:
    if text in ("all", "legacy"):
        listed = [p for p in table.values() if not p.by_name]
        return [p for p in listed if p.legacy == (text == "legacy")]
    out = []
    for part in (p.strip() for p in text.split(",")):
        span = _RANGE.match(part)
        if span:
            out += _in_range(table, span[1], range(int(span[2]), int(span[3]) + 1))
        elif part in table:
            out.append(table[part])
        else:
            raise UnknownNameError(unknown("protocol", part, table))
    return out


def _in_range(table: dict[str, Protocol], prefix: str, numbers: range) -> list[Protocol]:
    """Returns the protocols of a range, by number: the table is short, a range may not be."""
    found = [(name.removeprefix(prefix), name) for name in table if name.startswith(prefix)]
    known = sorted((int(number), name) for number, name in found if number.isdecimal())
    return [table[name] for number, name in known if number in numbers]
