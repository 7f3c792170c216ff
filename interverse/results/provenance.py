"""Provenance of a result: versions, command, settings; unlike tests are not pooled."""

from __future__ import annotations

import itertools
import json
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from interverse._version import __version__
from interverse.core.code import installed
from interverse.core.errors import InvalidValueError
from interverse.core.files.json_text import plain

PACKAGES = (
    "dm_control",
    "gymnasium",
    "mujoco",
    "mujoco-warp",
    "numpy",
    "pyarrow",
    "scipy",
    "stable-baselines3",
    "torch",
    "transformers",
)


def versions() -> Mapping[str, str]:
    """Returns name -> version of Python, of interverse and of each package it may run on.

    Reads what is installed and imports none of it.
    """
    found = installed(*PACKAGES)  # an extra that is not installed made nothing
    return {"interverse": __version__, "python": platform.python_version(), **found}


def command() -> str:
    """Returns the command line of this process, to be pasted into a shell."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    if module is not None:
        return shlex.join(["python", "-m", module.name.removesuffix(".__main__"), *sys.argv[1:]])
    program = Path(sys.argv[0]).name if sys.argv else ""
    if program in ("", "-c"):
        return shlex.join(["python", *sys.orig_argv[1:]])
    return shlex.join([*(["python"] if program.endswith(".py") else []), program, *sys.argv[1:]])


Provenance = Mapping[str, Any]
Tested = Set[tuple[str, str, str]]  # experiment, task, protocol
_CHANGE_NOTHING = ("device", "threads")  # the engine, which the device chooses, is compared itself
_DEFAULT = "the default"


def settings_of(options: Mapping[str, Any], engine: Mapping[str, str]) -> str:
    """Returns what decides a score beside its address and protocol, as a results row holds it.

    >>> settings_of({"skip_frame": 3, "threads": 2}, {"contact": "exact"})
    'skip_frame=3, contact=exact'
    """
    chosen = {n: v for n, v in plain(options).items() if n not in (*_CHANGE_NOTHING, *engine)}
    told = [f"{name}={json.dumps(chosen[name], sort_keys=True)}" for name in sorted(chosen)]
    return ", ".join([*told, *(f"{n}={_kind(engine[n])}" for n in sorted(engine))])


def told_apart(parts: Sequence[Provenance], tested: Sequence[Tested]) -> list[dict[str, Any]]:
    """Returns provenances whose runs say themselves what the parts do not agree on.

    A joined provenance has one engine and one protocol of a name; a run that has another keeps it.
    `tested` are the tests that each part holds.
    """
    described = [part.get("protocols") or {} for part in parts]
    unlike = {name for name, *_ in _disagreed(described)}
    engines = [part.get("engine") for part in parts]
    several = any(engine != engines[0] for engine in engines)
    out = []
    for part, protocols, engine, tests in zip(parts, described, engines, tested, strict=True):
        runs = []
        for run in part.get("runs") or []:
            key = (run.get("experiment"), run.get("task"))
            own = {n: protocols[n] for n in unlike if n in protocols and (*key, n) in tests}
            own |= run.get("protocols") or {}
            apart = {"engine": engine} if several and isinstance(engine, Mapping) else {}
            runs.append({**apart, **run, **({"protocols": own} if own else {})})
        out.append({**part, **({"runs": runs} if runs else {})})
    return out


def _disagreed(described: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, Any, Any]]:
    """Yields the protocols of one name that two tables have differently, with what they have."""
    for one, other in itertools.combinations(described, 2):
        for name in one.keys() & other.keys():
            if _plain(one[name]) != _plain(other[name]):
                yield name, one[name], other[name]


def _plain(described: Any) -> Any:
    """Returns a protocol without its note, which changes no draw."""
    if not isinstance(described, Mapping):
        return described
    return {name: value for name, value in described.items() if name != "note"}


def check_poolable(provenance: Provenance) -> None:
    """Raises where runs of one experiment in one task were not put to the same test."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in provenance.get("runs") or []:
        groups.setdefault((str(run.get("experiment")), str(run.get("task"))), []).append(run)
    for (experiment, task), runs in groups.items():
        found = {words: None for pair in itertools.combinations(runs, 2) for words in _told(*pair)}
        if found:
            raise InvalidValueError(
                f"runs of the experiment {experiment!r} in {task} are no one test: "
                f"{'; '.join(found)}",
                fix="Give them different names (evaluate's `experiment`, or `results.named`), "
                "or evaluate again under the same settings",
            )


def unlike_tests(provenance: Provenance, first: str, second: str) -> dict[str, list[str]]:
    """Returns task -> in what the tests of two experiments differ, in words."""
    runs = provenance.get("runs") or []
    out: dict[str, list[str]] = {}
    for run, other in itertools.product(runs, runs):
        names = (run.get("experiment"), other.get("experiment"))
        if names == (first, second) and run.get("task") == other.get("task"):
            told = out.setdefault(str(run.get("task")), [])
            told += [words for words in _told(run, other) if words not in told]
    return {task: told for task, told in out.items() if told}


def _told(run: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Returns in what two runs were tested otherwise, in words."""
    one, two = (dict(each.get("options") or {}) for each in (run, other))
    told = [
        f"{name} is {_words(one, name)} and {_words(two, name)}"
        for name in sorted(one.keys() | two.keys())
        if name not in _CHANGE_NOTHING and _words(one, name) != _words(two, name)
    ]
    if "engine" in run and "engine" in other:  # which of several cards it was changes nothing
        held = (run["engine"], other["engine"])
        engines = [" ".join(_kind(engine[name]) for name in sorted(engine)) for engine in held]
        told += [f"engine is {engines[0]} and {engines[1]}"] if engines[0] != engines[1] else []
    for name, here, there in sorted(
        _disagreed([each.get("protocols") or {} for each in (run, other)]), key=lambda at: at[0]
    ):
        parts = sorted(k for k in here.keys() | there.keys() if here.get(k) != there.get(k))
        told.append(
            f"protocol {name} has "
            + ", ".join(f"{k} {_words(here, k)} and {_words(there, k)}" for k in parts)
        )
    return told


def _kind(device: object) -> str:
    """Returns a device without the number of its card."""
    return str(device).partition(":")[0]


def _words(table: Mapping[str, Any], name: str) -> str:
    """Returns an entry as text, short enough for a message."""
    text = json.dumps(table[name], sort_keys=True) if name in table else _DEFAULT
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"
