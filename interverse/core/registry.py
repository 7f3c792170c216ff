"""Lazy tables: of ids, `"id": Entry("module:attribute", options)`, and of a package's names."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, final

from interverse.core.errors import (
    InvalidValueError,
    UnknownNameError,
    missing_extra,
    unknown,
)


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """Where a name's object lives, the options it is made with, and its tags."""

    target: str  # "package.module:attribute"
    options: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    def load(self) -> Any:
        """Returns the object, importing its module now."""
        module, _, attribute = self.target.partition(":")
        return getattr(importlib.import_module(module), attribute)


@final
class Registry:
    """A table of entries that imports nothing until one is asked for.

    >>> table = Registry("world", {"tutorial/slider-v1": Entry("math:sqrt")})
    >>> table.load("tutorial/slider-v1")(9.0)
    3.0
    """

    def __init__(self, kind: str, rows: Mapping[str, Entry], group: str = "") -> None:
        """Makes a table; `kind` is what one name stands for, in messages.

        Entry points of the group are rows too: installed packages add theirs so.
        """
        self.kind, self._group = kind, group
        self._rows: dict[str, Entry] = {}
        for name, entry in rows.items():
            self.add(name, entry)

    def add(self, name: str, entry: Entry) -> None:
        """Adds a row; a name that is taken raises."""
        if name in self._rows:
            raise InvalidValueError(
                f"{self.kind} {name!r} is registered already, as {self._rows[name].target}",
                fix="Choose another name or raise the version in it",
            )
        module, colon, attribute = entry.target.partition(":")
        if not (module and colon and attribute):
            raise InvalidValueError(
                f"the target of {self.kind} {name!r} is {entry.target!r}",
                allowed="'package.module:attribute'",
            )
        self._rows[name] = entry

    def __getitem__(self, name: str) -> Entry:
        known = name
        if isinstance(name, str) and name not in self._rows:
            self.load_entry_points()
            module, colon, rest = name.rpartition(":")
            if colon and name not in self._rows:  # `module:name`: the module must add the row
                try:
                    importlib.import_module(module)
                except (ImportError, ValueError) as error:  # the latter for an empty name
                    told = f"{self.kind} {name!r}: module {module!r} cannot be imported: {error}"
                    fix = "Install it or run where it lies; it must call interverse.register"
                    raise UnknownNameError(told, fix=fix) from error
                known = rest
        if not isinstance(name, str) or known not in self._rows:
            raise UnknownNameError(unknown(self.kind, name, self._rows))
        return self._rows[known]

    def load_entry_points(self) -> None:
        """Adds the rows of installed packages; imports none of them."""
        if not self._group:
            return
        for point in entry_points(group=self._group):
            if point.name not in self._rows:
                self.add(point.name, Entry(point.value))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def load(self, name: str) -> Any:
        """Returns the object a name stands for."""
        return self[name].load()


def lazy_names(
    package: str, homes: Mapping[str, str], *, extra: str | None = None
) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a package that imports a name's module when it is first used.

    `homes` has the module of each name; where one finds no Torch, the `extra` that brings it is
    named.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(f"{package}.{homes[name]}")
        except ModuleNotFoundError as error:
            if extra is not None and error.name in ("torch", "safetensors"):
                raise missing_extra(error.name, extra) from error
            raise
        return getattr(module, name)

    return find
