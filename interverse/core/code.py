"""Identity of the code that makes the numbers, and training folders that are tied to it."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from interverse.core.errors import InvalidValueError
from interverse.core.files.atomic import file_hash, write_json
from interverse.core.files.json_text import read_json_object

TRAIN_FILE = "train.json"
_PACKAGE = Path(__file__).resolve().parents[1]
_LIBRARIES = ("dm_control", "mujoco", "mujoco-warp", "numpy", "torch")
_CODE, _STEPS = "code", "steps"


@cache
def code_hash() -> str:
    """Returns a hash of the package's own files: two equal ones compute the same numbers."""
    return files_hash(_PACKAGE, (".py", ".csv", ".xml", ".json"))


def files_hash(path: Path, suffixes: tuple[str, ...] = ()) -> str:
    """Returns a hash of a file's bytes, or of a folder's files with their paths in it."""
    digest = hashlib.blake2b(digest_size=16)
    whole = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for file in whole:
        if suffixes and file.suffix not in suffixes:
            continue
        digest.update(f"{file.relative_to(path)} {file_hash(file)}\n".encode())
    return digest.hexdigest()


@cache
def installed(*names: str) -> Mapping[str, str]:
    """Returns name -> version of those packages that are installed; imports none of them."""
    found = {}
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def code_identity() -> dict[str, str]:
    """Returns the code that makes the numbers: the package's hash and its libraries' versions."""
    return {"package": code_hash(), **installed(*_LIBRARIES)}


def different(one: Any, other: Mapping[str, Any]) -> list[str]:
    """Returns the names in which two tables differ; all of them if one is no table."""
    one = one if isinstance(one, Mapping) else {}
    return sorted(n for n in one.keys() | other.keys() if one.get(n) != other.get(n))


def stamp(
    file: Path, identity: Mapping[str, Any], what: str, *, free: Collection[str] = ()
) -> list[dict[str, str]]:
    """Writes into a folder's JSON file what it is tied to, or raises if it is another's.

    Code that differs from the folder's changes nothing that was asked for: it is written down
    beside the code before, and a line on standard error says so. Other settings are refused, but
    for those that are `free`. `what` the folder holds is for the message; the `code` of the
    identity is code beside the package's.

    Returns the code of every start so far with other code than before, in order, this one last.
    """
    mine = {**code_identity(), **identity.get(_CODE, {})}
    identity = {name: value for name, value in identity.items() if name != _CODE}
    if not file.exists():
        write_json(file, {**identity, _CODE: [mine]})
        return [mine]
    held = read_json_object(file)
    codes = held.pop(_CODE, None)
    codes = codes if isinstance(codes, list) else [codes or {}]  # older folders have one
    same = codes[-1:] == [mine]
    # Other code may have written less of the identity.
    unlike = [n for n in different(held, identity) if n not in free and (n in held or same)]
    if unlike:
        pairs = [pair for n in unlike for pair in _leaves(n, held.get(n), identity.get(n))]
        shown = ", ".join(f"{name} {there!r} there, {here!r} here" for name, there, here in pairs)
        raise InvalidValueError(
            f"{file.parent} holds another {what}: {shown}",
            fix="Choose another folder, or delete that one",
        )
    if not same:
        names = different(codes[-1], mine)
        sys.stderr.write(
            f"{file.parent} was begun with other code ({', '.join(names)}): what it holds is kept,"
            " and its record names both.\n"
        )
        codes = [*codes, mine]
    write_json(file, {**identity, _CODE: codes})
    return codes


def stamp_run(folder: Path, config: Mapping[str, Any]) -> None:
    """Marks a folder as a training run's, with its code; another run's is left alone.

    `config` tells the run from others; more of its steps may be asked for.
    """
    file = folder / TRAIN_FILE
    held = read_json_object(file).get(_STEPS) if file.exists() else None
    if isinstance(held, int) and isinstance(config.get(_STEPS), int):  # fewer are made already
        config = {**config, _STEPS: max(held, config[_STEPS])}
    stamp(file, config, "run", free=(_STEPS,))


def _leaves(name: str, there: Any, here: Any) -> list[tuple[str, Any, Any]]:
    """Returns name and both values of all that differs, inside of tables by dotted names."""
    if not (isinstance(there, Mapping) and isinstance(here, Mapping)):
        return [(name, there, here)]
    names = different(there, here)
    return [leaf for n in names for leaf in _leaves(f"{name}.{n}", there.get(n), here.get(n))]
