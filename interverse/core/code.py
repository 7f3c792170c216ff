"""Identity of the code that makes the numbers, and training folders that are tied to it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
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
_CODE = "code"
_FREE = (_CODE, "steps")  # a run may be given more steps


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


def code_identity() -> dict[str, str]:
    """Returns the code that makes the numbers: the package's hash and its libraries' versions."""
    out = {"package": code_hash()}
    for name in _LIBRARIES:
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return out


def different(one: Any, other: Mapping[str, Any]) -> list[str]:
    """Returns the names in which two tables differ; all of them if one is no table."""
    one = one if isinstance(one, Mapping) else {}
    return sorted(n for n in one.keys() | other.keys() if one.get(n) != other.get(n))


def claim_run(folder: Path, config: Mapping[str, Any], *, allow_other_code: bool = False) -> None:
    """Marks a folder as a training run's, with its code; another run's is left alone.

    Args:
        folder: where the run writes; its `train.json` holds the config, and the code of each start
            with other code than before, in order.
        config: what tells the run from others, as JSON; more steps may be asked for.
        allow_other_code: go on with what other code or libraries began.
    """
    file, mine = folder / TRAIN_FILE, code_identity()
    begun: list[Any] = []
    if file.exists():
        held = read_json_object(file)
        begun = held.get(_CODE) if isinstance(held.get(_CODE), list) else [None]  # type: ignore[assignment]
        names = [name for name in different(held, config) if name not in _FREE]
        if allow_other_code:  # other code may have written less about the same run
            names = [name for name in names if name in held]
        if names:
            shown = ", ".join(f"{n} {held.get(n)!r} there, {config.get(n)!r} here" for n in names)
            raise InvalidValueError(
                explain(
                    f"{folder} holds another run: {shown}",
                    fix="Choose another folder, or delete that one",
                )
            )
        if begun[-1:] != [mine] and not allow_other_code:
            refuse_other_code(folder, begun[-1] if begun else None, mine)
    if begun[-1:] != [mine]:
        begun = [*begun, mine]
    write_json(file, {**config, _CODE: begun})


def refuse_other_code(folder: Path, held: Any, mine: Mapping[str, str]) -> None:
    """Raises: a folder was begun with other code than this."""
    raise InvalidValueError(
        explain(
            f"{folder} was begun with other code: {', '.join(different(held, mine))} differ",
            fix="Choose another folder, or pass allow_other_code=True (--allow-other-code)",
        )
    )
