"""The code of worlds that live outside this package, as part of what made the numbers."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from interverse.core.code import code_hash, files_hash
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.registry import Entry
from interverse.worlds import WORLDS

_SUFFIXES = (".py", ".xml", ".csv")  # JSON and YAML are what runs write, maybe into the package
_OURS = __name__.partition(".")[0]
_TRUST: ContextVar[bool] = ContextVar("trust", default=False)


@contextmanager
def trusting(trust: bool) -> Iterator[None]:
    """Lets `check_trusted` pass within, if trust is given: `trust=True`, or the flag `--trust`."""
    token = _TRUST.set(trust or _TRUST.get())
    try:
        yield
    finally:
        _TRUST.reset(token)


def check_trusted(file: object, task: object, options: Mapping[str, Any]) -> None:
    """Raises if a file names code that is not imported yet: playing from it would run that code.

    Whatever reads an id or options from a file asks here before it makes the world. What is
    imported already was imported by the user, or for an id that he gave himself.

    Args:
        file: what names the code, for the message.
        task: an id, maybe module:id.
        options: of the world; "module:Class" in them, such as a task of one's own, is code.
    """
    if _TRUST.get():
        return
    own = str(task) if isinstance(task, str) and task not in WORLDS else ""
    for named in (own, *(text for name, text in _with_colon(options) if name != "device")):
        module = named.rpartition(":")[0]
        if module and module not in sys.modules and module.partition(".")[0] != _OURS:
            raise InvalidValueError(
                f"{file} names code of its own, {named}, and using it would run {module}",
                fix="If you trust whoever wrote it, pass --trust (trust=True), or name that"
                f" code yourself: give its id, or import {module} first",
            )


def own_code(task: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Returns `{"world": hash}` of the packages that a world of one's own is written in.

    A world of this package gives nothing: `interverse.core.code.code_identity` tells of it. Of a
    module outside, its whole top package counts, or its file; so do bases of the world's class and
    classes that options name as "module:Class", such as a task. What those import from elsewhere
    does not. The files count as they were when the module was first asked about.

    Args:
        task: a world's id, or module:id.
        options: of the world.

    >>> own_code("tutorial/slider-v1", {})
    {}
    """
    entry = WORLDS[task]
    named = {task.rpartition(":")[0], entry.target.partition(":")[0]}
    named |= {kind.__module__ for kind in entry.load().__mro__}
    named |= set(_of_options({**entry.options, **options}))
    tops = {name.partition(".")[0] for name in named if name}
    tops -= {_OURS, *sys.builtin_module_names, *sys.stdlib_module_names}
    hashes = [f"{top} {_source_hash(sys.modules[top])}" for top in sorted(tops)]
    if not hashes:
        return {}
    return {"world": hashlib.blake2b("\n".join(hashes).encode(), digest_size=16).hexdigest()}


def data_code(task: str, options: Mapping[str, Any]) -> str:
    """Returns the code that a world's data are made with: the package's hash and its own.

    Libraries' versions are no part of it. An id that is no world's has the package's alone.
    """
    with suppress(UnknownNameError):
        return "+".join([code_hash(), *own_code(task, options).values()])
    return code_hash()


def _of_options(options: Mapping[str, Any]) -> Iterator[str]:
    """Yields the modules of classes that options name; a world imports them when it is made."""
    for _, text in _with_colon(options):
        if text.partition(":")[2].isidentifier():
            with suppress(ImportError, AttributeError):
                Entry(text).load()
                yield text.partition(":")[0]


def _with_colon(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the options that may name code, whatever stands behind the colon."""
    for name, value in options.items():
        if isinstance(value, str) and value.partition(":")[0] and ":" in value:
            yield name, value


@cache  # by the module: one that is imported anew is another
def _source_hash(module: ModuleType) -> str:
    """Returns a hash of the files of a module; of one without files, such as a notebook, ""."""
    places = list(getattr(module, "__path__", ())) or [getattr(module, "__file__", None)]
    return " ".join(files_hash(Path(place), _SUFFIXES) for place in places if place)
