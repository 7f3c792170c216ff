"""Words of a command and what it says: flags, config files, mistakes, completion, JSON, tables."""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TextIO, Union, get_args, get_origin, get_type_hints

from rich.console import Console
from rich.table import Table
from rich.text import Text
from tyro.conf import Positional, Suppress, arg

from interverse.core.errors import (
    FileFormatError,
    InterverseError,
    InvalidValueError,
    explain,
    unknown,
)
from interverse.core.files.atomic import write_text
from interverse.core.files.json_text import parse_json, plain
from interverse.core.files.yaml_text import check_keys, read_yaml
from interverse.worlds import WORLDS

# Flags that many verbs have, each with its words.
AsJson = Annotated[
    bool, arg(help="Write one JSON document to standard output, progress to standard error.")
]
OptionWords = Annotated[
    tuple[str, ...],
    arg(help="Options of the world, as NAME=VALUE (JSON values), such as skip_frame=3."),
]
Trust = Annotated[
    bool,
    arg(help="Import the code of a world of one's own (MODULE:ID) that policy or results name."),
]


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
            for part in parts:
                if isinstance(part, Mapping | list | bool) or part is None:
                    raise InvalidValueError(
                        f"{name} holds {json.dumps(part)}",
                        allowed="text, a number, or a list of these",
                    )
            words += [f"--{flag}", *map(str, parts)]
    return words


CONFIG_FILE = "config.yaml"
_FLAG, _VERB, _OUT = "--config", "verb", "out"
_TYPED = ("json", "trust")  # how a command prints, and what a person vouches for: never of a file
_RECORDS = ("train.json", "run.json", "collect.json")  # of a run, an evaluation, episodes
_SINGLE_FILES = re.compile(r"\.(csv|gif|h5|hdf5|html|json|lance|mp4|npz|webp)")


def split_config(verb: str, args: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Returns a command's words without `--config FILE`, and what the file holds.

    A flag on the command line wins over the file's.
    """
    rest, files = [], []
    words = iter(args)
    for word in words:
        name, equals, value = word.partition("=")
        if name != _FLAG:
            rest.append(word)
            continue
        files.append(value if equals else next(words, ""))
        if not files[-1]:
            raise InvalidValueError(f"{_FLAG} names no file", fix=f"{_FLAG} run.yaml")
    if not files:
        return rest, {}
    if len(files) > 1:
        raise InvalidValueError(f"{_FLAG} is given {len(files)} times", allowed="once")
    held = read_yaml(files[0])
    meant = held.pop(_VERB, verb)
    if meant != verb:
        raise InvalidValueError(
            explain(f"{files[0]} is for `interverse {meant}`, and this is `interverse {verb}`")
        )
    flags = [word.partition("=")[0] for word in rest if word.startswith("--")]
    given = {flag.removeprefix("--").removeprefix("no-").replace("-", "_") for flag in flags}
    # The folder that a command wrote its config into may have been moved since.
    file, out = Path(files[0]), held.get(_OUT)
    whole = file.name == CONFIG_FILE and any((file.parent / n).is_file() for n in _RECORDS)
    is_moved = out is not None and Path(str(out)).resolve() != file.parent.resolve()
    if whole and is_moved and _OUT not in given:
        sys.stderr.write(f"{out} was moved: going on in {file.parent}\n")
        held[_OUT] = str(file.parent)
    return rest, {name: value for name, value in held.items() if name not in given}


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
    values = values_of(config, *hidden, *getattr(config, "unsaid", ()))
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
    single = _SINGLE_FILES.fullmatch(folder.suffix) is not None
    if folder.is_file() and not single:
        raise InvalidValueError(f"out is {folder}, which is a file", allowed="a folder")
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


def _marked(config: type[Any], mark: Any) -> list[str]:
    """Returns the fields with a mark of tyro's: given without a flag, or not given at all."""
    hints = get_type_hints(config, include_extras=True)
    return [
        item.name
        for item in fields(config)
        if mark in getattr(hints[item.name], "__metadata__", ())
    ]


_NUMBERS = {int: "a whole number", float: "a number"}


def mistake(config: type[Any], verb: str, args: Sequence[str]) -> str | None:
    """Returns what is wrong with the words of a command; None if no mistake is seen.

    >>> from interverse.cli.describe import Describe
    >>> mistake(Describe, "describe", [])
    'ID is missing. Give it: interverse describe ID.'
    >>> mistake(Describe, "describe", ["chemistry/chain-v1", "--jsn"])
    "unknown flag 'jsn'. Did you mean 'json'? Allowed: all, edges, json, mermaid."
    """
    hints, kinds = get_type_hints(config, include_extras=True), _kinds(config)
    bare = _marked(config, Positional)
    # Each flag with the words after it; what stands before the first has none.
    groups: list[tuple[str, list[str]]] = [("", [])]
    for word in args:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            groups.append((name.replace("_", "-"), [value] if equals else []))
        else:
            groups[-1][1].append(word)
    words, given = list(groups[0][1]), set[str]()
    for flag, values in groups[1:]:
        name = flag if flag in kinds else flag.replace("--no-", "--", 1)
        if name not in kinds or (flag != name and kinds[name] is not bool):
            return unknown("flag", flag[2:], [known[2:] for known in kinds])
        given.add(name)
        kind, many = kinds[name], get_origin(kinds[name]) is tuple
        own = values if many else values[:1]
        if kind is bool:
            own = []
        elif not own and not many:
            return explain(f"{name} has no value", fix=f"Write it after the flag: {name} VALUE")
        for word in own:
            if told := _word_mistake(name, _plain(get_args(kind)[0]) if many else kind, word):
                return told
        words += values[len(own) :]
    for name, word in zip(bare, words, strict=False):
        if told := _word_mistake(name.upper(), _plain(hints[name]), word):
            return told
    many = any(get_origin(_plain(hints[name])) is tuple for name in bare)
    if len(words) > len(bare) and not many:
        allowed = f"flags, such as --{next(iter(hints)).replace('_', '-')}"
        if bare:
            allowed = f"{', '.join(map(str.upper, bare))}, then flags"
        return explain(f"{words[len(bare)]!r} belongs to no flag", allowed=allowed)
    # Values that must be given and were not.
    needed = [f.name for f in fields(config) if f.default is f.default_factory is MISSING]
    places = [name.upper() for name in needed if name in bare]
    flags = [f"--{name.replace('_', '-')}" for name in needed if name not in bare]
    absent = places[len(words) :] + [flag for flag in flags if flag not in given]
    if not absent:
        return None
    whole = ["interverse", verb, *places, *(f"{flag} {flag[2:].upper()}" for flag in flags)]
    is_one = len(absent) == 1
    return explain(
        f"{' and '.join(absent)} {'is' if is_one else 'are'} missing",
        fix=f"Give {'it' if is_one else 'them'}: {' '.join(whole)}",
    )


def _kinds(config: type[Any]) -> dict[str, Any]:
    """Returns what each flag of a command takes."""
    hidden = {*_marked(config, Positional), *_marked(config, Suppress)}
    hints = get_type_hints(config)
    return {f"--{n.replace('_', '-')}": _plain(h) for n, h in hints.items() if n not in hidden}


def lists_of(config: type[Any]) -> list[str]:
    """Returns the flags that take several words."""
    return [flag for flag, kind in _kinds(config).items() if get_origin(kind) is tuple]


def _plain(hint: Any) -> Any:
    """Returns a hint without marks and without `| None`."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return _plain(kinds[0]) if get_origin(hint) in (Union, UnionType) and len(kinds) == 1 else hint


def _word_mistake(name: str, kind: Any, word: str) -> str:
    """Returns what is wrong with a value in words; empty if nothing is seen."""
    allowed, choices = _NUMBERS.get(kind, ""), _choices(kind)
    if choices and word not in choices:
        return unknown(f"value of {name}", word, choices)
    try:
        if allowed:
            kind(word)
    except ValueError:
        return explain(f"{name} is {word!r}", allowed=allowed)
    return ""


def _choices(kind: Any) -> list[str]:
    """Returns the words that a flag takes, where these are counted."""
    if get_origin(kind) is Literal:
        return [str(word) for word in get_args(kind)]
    parts = [_choices(part) for part in get_args(kind)]
    whole = get_origin(kind) in (Union, UnionType) and all(parts)
    return [word for part in parts for word in part] if whole else []


_STDOUT: ContextVar[TextIO | None] = ContextVar("out", default=None)


@contextmanager
def hushed() -> Iterator[None]:
    """Sends what worlds, policies and libraries print to standard error; `tell` goes past it."""
    token = _STDOUT.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _STDOUT.reset(token)


def tell(config: Any, document: Any, *shown: Any) -> None:
    """Writes what a verb has to say to standard output.

    Args:
        config: the command.
        document: for `--json`; paths are text, NaN and infinity are null.
        shown: without it: lines of text, tables, or whatever rich prints.
    """
    out = _STDOUT.get() or sys.stdout
    if getattr(config, "json", False):
        out.write(json.dumps(_finite(plain(document)), indent=1, allow_nan=False) + "\n")
        return
    console = Console(file=out)
    for part in shown:
        as_it_is = type(part) is str or isinstance(part, Text)  # a terminal may break it
        console.print(part, soft_wrap=as_it_is, markup=False, emoji=False)


def sheet(
    header: Sequence[str], rows: Iterable[Sequence[Any]], whole: Container[str] = (), **look: Any
) -> Table:
    """Returns a table without a frame; cells fold, but for those of the columns kept whole."""
    table = Table(box=None, header_style="bold", title_justify="left", **look)
    for name in header:
        table.add_column(name, overflow="fold", no_wrap=name in whole)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return table


def _finite(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _finite(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_finite(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree


_SCRIPT = """\
[ -n "$ZSH_VERSION" ] && autoload -U +X bashcompinit && bashcompinit
_interverse() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    if [ "$COMP_CWORD" = 1 ]; then
        words="{verbs}"
    elif [ "$before" = --task ]; then
        words="{ids}"
    else
        case "${{COMP_WORDS[1]}}" in
{flags}
        esac
        case "$word" in -*) ;; *) words="{ids}" ;; esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [ ${{#COMPREPLY[@]}} = 0 ] && COMPREPLY=($(compgen -f -- "$word"))
}}
complete -F _interverse interverse"""


def completion(verbs: Mapping[str, tuple[str, str]]) -> str:
    """Returns a script that a shell evaluates: `eval "$(interverse --completion)"`.

    Args:
        verbs: each verb's module and config dataclass; without one, the module's `commands`.
    """
    lines = []
    for verb, (module, config) in sorted(verbs.items()):
        found = {"--config", "--help"}
        with suppress(InterverseError, ModuleNotFoundError):  # needs an extra
            loaded = importlib.import_module(f"interverse.cli.{module}")
            for kind in [getattr(loaded, config)] if config else loaded.commands():
                found |= {f"--{item.name.replace('_', '-')}" for item in fields(kind)}
        lines.append(f'            {verb}) words="{" ".join(sorted(found))}" ;;')
    return _SCRIPT.format(
        verbs=" ".join(sorted(verbs)), ids=" ".join(WORLDS), flags="\n".join(lines)
    )


def value_of(flag: str, words: Sequence[str]) -> str:
    """Returns the value of a flag, the last one where it is given twice; empty without."""
    value = ""
    for place, word in enumerate(words):
        name, equals, text = word.partition("=")
        if name == flag:
            value = text if equals else "".join(words[place + 1 : place + 2])
    return value


def values_of(config: Any, *without: str) -> dict[str, Any]:
    """Returns a command's values by name, but for how it prints, what it trusts, and some more."""
    names = [item.name for item in fields(config) if item.name not in (*_TYPED, *without)]
    return {name: getattr(config, name) for name in names}


def flag_names(config: Any) -> list[str]:
    """Returns the names of a command's flags."""
    return [item.name for item in fields(config)]


_WORDS = {"True": "true", "False": "false", "None": "null"}


def parse_pairs(pairs: tuple[str, ...], flags: Iterable[str] = ()) -> dict[str, Any]:
    """Returns options from NAME=VALUE words; a value that is no JSON is taken as text.

    Args:
        pairs: the words. True, False and None may be written as in Python.
        flags: names that are no options of a world, since the command has flags of these names.
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        name, value = parse_pair(pair)
        if name in flags:
            raise InvalidValueError(
                f"option {pair!r}", allowed="options of the world", fix=f"See --{name}"
            )
        check_once(name, out, pairs)
        out[name] = value
    return out


def parse_pair(pair: str) -> tuple[str, Any]:
    """Returns name and value of one NAME=VALUE word."""
    name, equals, text = pair.partition("=")
    if not name or not equals:
        raise InvalidValueError(f"got {pair!r}", allowed="NAME=VALUE, such as skip_frame=3")
    try:
        return name, parse_json(_WORDS.get(text, text))
    except FileFormatError:
        return name, text


def check_once(name: str, seen: Container[str], words: tuple[str, ...]) -> None:
    """Raises for a name that was given before: one of the two would be dropped unseen."""
    if name in seen:
        given = " ".join(word for word in words if word.partition("=")[0] == name)
        raise InvalidValueError(f"{name} is given twice: {given}", fix="Give it once")
