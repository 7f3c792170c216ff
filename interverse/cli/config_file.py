"""Config files of the verbs: `--config FILE` stands for flags, and each run writes its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from tyro.conf import Positional, Suppress

from interverse.core.errors import InterverseError, InvalidValueError, explain
from interverse.core.files.atomic import write_text
from interverse.core.files.json_text import plain
from interverse.core.files.yaml_text import check_keys, read_yaml


def flag_words(given: Mapping[str, Any]) -> list[str]:
    """Returns the flags that stand for values by name; null leaves a flag out.

    >>> flag_words({"steps": 1000, "her": True, "option": {"skip_frame": 3}, "actor": ["visual"]})
    ['--steps', '1000', '--her', '--option', 'skip_frame=3', '--actor', 'visual']
    """
    words: list[str] = []
    for name, value in given.items():
        flag = name.replace("_", "-")
        if value is None or value == [] or value == {}:
            continue
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, Mapping):
            words += [f"--{flag}", *(f"{key}={json.dumps(part)}" for key, part in value.items())]
        else:
            parts = value if isinstance(value, list) else [value]
            words += [f"--{flag}", *(_word(name, part) for part in parts)]
    return words


def _word(name: str, value: Any) -> str:
    if isinstance(value, Mapping | list | bool) or value is None:
        raise InvalidValueError(
            explain(
                f"{name} holds {json.dumps(value)}", allowed="text, a number, or a list of these"
            )
        )
    return str(value)


CONFIG_FILE = "config.yaml"
_FLAG, _VERB, _OUT = "--config", "verb", "out"
_TYPED = ("json", "trust")  # how a command prints, and what a person vouches for: never of a file
_RECORDS = ("train.json", "run.json", "collect.json")  # of a run, an evaluation, episodes
_FILES = (".csv", ".gif", ".h5", ".hdf5", ".html", ".json", ".lance", ".mp4", ".npz", ".webp")


def split_config(verb: str, args: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Returns a command's words without `--config FILE`, and what the file holds.

    A flag on the command line wins over the file's.
    """
    rest, files = _split(args)
    if not files:
        return rest, {}
    if len(files) > 1:
        raise InvalidValueError(explain(f"{_FLAG} is given {len(files)} times", allowed="once"))
    held = read_yaml(files[0])
    meant = held.pop(_VERB, verb)
    if meant != verb:
        raise InvalidValueError(
            explain(f"{files[0]} is for `interverse {meant}`, and this is `interverse {verb}`")
        )
    given = {_name(word) for word in rest if word.startswith("--")}
    if (moved := _moved_folder(Path(files[0]), held.get(_OUT))) is not None and _OUT not in given:
        sys.stderr.write(f"{held[_OUT]} was moved: going on in {moved}\n")
        held[_OUT] = str(moved)
    return rest, {name: value for name, value in held.items() if name not in given}


def _moved_folder(file: Path, out: Any) -> Path | None:
    """Returns where the folder lies now that a command wrote its config into, if elsewhere."""
    folder = file.parent
    whole = file.name == CONFIG_FILE and any((folder / name).is_file() for name in _RECORDS)
    if not whole or out is None or Path(str(out)).resolve() == folder.resolve():
        return None
    return folder


def config_words(config: type[Any], rest: Sequence[str], held: Mapping[str, Any]) -> list[str]:
    """Returns the words of a command: the file's values as flags, then those that were given."""
    known = [item.name for item in fields(config) if item.name != "trust"]
    check_keys(held, known, _FLAG.removeprefix("--"))
    bare = [name for name in _marked(config, Positional) if held.get(name) is not None]
    front: list[str] = []
    if not (rest and not rest[0].startswith("-")):  # a folder or an id on the command line wins
        for name in bare:
            value = held[name]
            front += [str(part) for part in (value if isinstance(value, list) else [value])]
    return [*front, *rest, *flag_words({n: v for n, v in held.items() if n not in bare})]


def config_text(config: Any, verb: str) -> str:
    """Returns a config as YAML that `--config` reads: the verb, then every value that is set.

    How a command prints (`--json`) is no part of what it does, and `--trust` is said anew each
    time: both are left out.
    """
    hidden = _marked(type(config), Suppress)
    names = [item.name for item in fields(config) if item.name not in (*hidden, *_TYPED)]
    values = {name: getattr(config, name) for name in names}
    told = {name: value for name, value in values.items() if value not in (None, (), {})}
    lines = {_VERB: verb, **told}
    return "".join(f"{name}: {json.dumps(plain(value))}\n" for name, value in lines.items())


@contextmanager
def kept(config: Any, verb: str, folder: Path | None) -> Iterator[None]:
    """Keeps a command's config beside what it writes.

    It is there while the command runs, so that a killed one can be started again; a refused command
    leaves nothing, and what an earlier one wrote stays.
    """
    if folder is None:
        yield
        return
    single = folder.suffix in _FILES
    if folder.is_file() and not single:
        raise InvalidValueError(explain(f"out is {folder}, which is a file", allowed="a folder"))
    file = folder.with_suffix(".config.yaml") if single else folder / CONFIG_FILE
    text, is_new = config_text(config, verb), not file.exists()
    made = [path for path in file.parents if not path.exists()]
    try:
        if is_new:
            write_text(file, text)
        yield
    except (InterverseError, OSError):
        if is_new:
            file.unlink(missing_ok=True)
        with suppress(OSError):  # something else is in it
            for path in made:
                path.rmdir()
        raise
    write_text(file, text)


def _split(args: Sequence[str]) -> tuple[list[str], list[str]]:
    rest, files = [], []
    words = iter(args)
    for word in words:
        name, equals, value = word.partition("=")
        if name != _FLAG:
            rest.append(word)
            continue
        value = value if equals else next(words, "")
        if not value:
            raise InvalidValueError(explain(f"{_FLAG} names no file", fix=f"{_FLAG} run.yaml"))
        files.append(value)
    return rest, files


def _marked(config: type[Any], mark: Any) -> list[str]:
    """Returns the fields with a mark of tyro's: given without a flag, or not given at all."""
    hints = get_type_hints(config, include_extras=True)
    return [
        item.name
        for item in fields(config)
        if mark in getattr(hints[item.name], "__metadata__", ())
    ]


def _name(word: str) -> str:
    """Returns the field that a flag sets.

    >>> _name("--no-episodes"), _name("--checkpoint-every=5")
    ('episodes', 'checkpoint_every')
    """
    flag = word.partition("=")[0].removeprefix("--").removeprefix("no-")
    return flag.replace("-", "_")
