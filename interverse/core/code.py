"""Identity of the code that makes the numbers, and training folders that are tied to it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from interverse.core.errors import InvalidValueError, explain
from interverse.core.files.atomic import write_json
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
        held = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
        digest.update(f"{file.relative_to(path)} {held}\n".encode())
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


def claim_file(
    file: Path,
    identity: Mapping[str, Any],
    what: str,
    *,
    free: Collection[str] = (),
    keeps_history: bool = False,
    allow_other_code: bool = False,
) -> bool:
    """Writes into a folder's file whose it is, with its code, or raises if it is another's.

    Args:
        file: a JSON file of the folder.
        identity: what the folder is tied to, as JSON; its `code` is code beside the package's.
        what: what it holds, for the message.
        free: names of the identity that may change.
        keeps_history: write down the code of every start with other code than before, in order.
        allow_other_code: go on with what other code or libraries began.

    Returns:
        Whether it had been begun before.
    """
    mine, codes, begun = {**code_identity(), **identity.get(_CODE, {})}, [], file.exists()
    identity = {name: value for name, value in identity.items() if name != _CODE}
    if begun:
        held = read_json_object(file)
        code = held.pop(_CODE, None)
        codes = code if isinstance(code, list) else [code]
        _check_owner(file.parent, held, identity, what, free, partly=allow_other_code)
        if codes[-1:] != [mine] and not allow_other_code:
            _refuse_other_code(file.parent, codes[-1] if codes else None, mine)
    if keeps_history:
        write_json(file, {**identity, _CODE: codes if codes[-1:] == [mine] else [*codes, mine]})
    elif not begun:
        write_json(file, {**identity, _CODE: mine})
    return begun


def claim_run(folder: Path, config: Mapping[str, Any], *, allow_other_code: bool = False) -> None:
    """Marks a folder as a training run's, with its code; another run's is left alone.

    Args:
        folder: where the run writes; its `train.json` holds the config, and the code of each start
            with other code than before, in order.
        config: what tells the run from others, as JSON; more steps may be asked for. Its `code`,
            if any, is code beside the package's: the world's own.
        allow_other_code: go on with what other code or libraries began.
    """
    file = folder / TRAIN_FILE
    held = read_json_object(file).get(_STEPS) if file.exists() else None
    if isinstance(held, int) and isinstance(config.get(_STEPS), int):  # fewer are made already
        config = {**config, _STEPS: max(held, config[_STEPS])}
    claim_file(
        file,
        config,
        "run",
        free=(_STEPS,),
        keeps_history=True,
        allow_other_code=allow_other_code,
    )


def _check_owner(
    folder: Path,
    held: Mapping[str, Any],
    identity: Mapping[str, Any],
    what: str,
    free: Collection[str],
    *,
    partly: bool,
) -> None:
    """Raises if a folder is another's; `partly`: the other code may have written less of it."""
    names = [n for n in different(held, identity) if n not in free and (n in held or not partly)]
    if names:
        pairs = [pair for n in names for pair in _leaves(n, held.get(n), identity.get(n))]
        shown = ", ".join(f"{name} {there!r} there, {here!r} here" for name, there, here in pairs)
        raise InvalidValueError(
            explain(
                f"{folder} holds another {what}: {shown}",
                fix="Choose another folder, or delete that one",
            )
        )


def _leaves(name: str, there: Any, here: Any) -> list[tuple[str, Any, Any]]:
    """Returns name and both values of all that differs, inside of tables by dotted names."""
    if not (isinstance(there, Mapping) and isinstance(here, Mapping)):
        return [(name, there, here)]
    names = different(there, here)
    return [leaf for n in names for leaf in _leaves(f"{name}.{n}", there.get(n), here.get(n))]


def _refuse_other_code(folder: Path, held: Any, mine: Mapping[str, str]) -> None:
    """Raises: a folder was begun with other code than this."""
    names = different(held, mine)
    differ = "differs" if len(names) == 1 else "differ"
    raise InvalidValueError(
        explain(
            f"{folder} was begun with other code: {', '.join(names)} {differ}",
            fix="Choose another folder, or pass allow_other_code=True (--allow-other-code)",
        )
    )
