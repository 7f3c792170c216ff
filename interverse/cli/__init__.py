"""The command line: each verb is a config dataclass and the function that takes it.

The API and the command line cannot drift: flags and help come from the dataclass's fields.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any

from interverse.core.errors import InterverseError, missing_extra, unknown

# verb -> (module of this package, config dataclass, function, one line of help). Where no config is
# named, the module's `choose` tells config and function by a command's words, and its `commands`
# are all that it may choose.
VERBS: dict[str, tuple[str, str, str, str]] = {
    "bench": ("bench", "Bench", "bench", "measure speed, as ratios in one run"),
    "check": ("describe", "Check", "check", "the laws of every world, tried on one"),
    "collect": ("collect", "CollectCommand", "collect", "episodes with twins, play, or pairs"),
    "demo": ("demo", "Demo", "demo", "a tour in pictures, as one HTML page"),
    "describe": ("describe", "Describe", "describe", "a world's variables and graph"),
    "diff": ("verify", "Diff", "diff", "what differs between two results"),
    "doctor": ("doctor", "Doctor", "doctor", "versions, GL, GPU, what is missing"),
    "evaluate": ("evaluate", "Evaluate", "evaluate", "score a policy under protocols"),
    "fit": ("fit", "FitCommand", "fit", "a world model, from an id to one page"),
    "explain": ("explain", "Explain", "explain", "what each factor costs a policy"),
    "export": ("report", "Export", "export", "a policy as a folder to publish"),
    "export_original": ("collect", "ExportOriginal", "export_original", "data for CausalMBRL"),
    "import_original": ("collect", "ImportOriginal", "import_original", "CausalMBRL's data"),
    "list": ("describe", "Listing", "listing", "every registered world"),
    "new": ("new", "New", "new", "a world, task, actor, metric or model"),
    "report": ("report", "Report", "report", "an HTML page from evaluations"),
    "reproduce": ("reproduce", "", "reproduce", "published tables, made again"),
    "score": ("fit", "Score", "score", "a world model of your own, beside its yardsticks"),
    "sweep": ("sweep", "SweepCommand", "sweep_command", "tasks x algorithms x curricula x seeds"),
    "train": ("train", "", "train", "an agent, on states or on pictures"),
    "verify": ("verify", "Verify", "verify", "check results, play a sample again"),
    "view": ("view", "View", "view", "a world in the browser, with sliders"),
}

_BOX = re.compile(r"[│╭╮╰╯─┌┐└┘├┤┬┴┼━┃]+|-{5,}")
# What the parser adds around a config's own complaint.
_AROUND = re.compile(r"^\w+ error Error parsing \w+: |\s*(For full helptext).*$")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb; returns 0, or 2 after one clear line for a user's mistake."""
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help"):
        _say(_help(), sys.stdout)
        return 0
    if args[0] == "--version":
        from interverse import __version__

        _say(f"interverse {__version__}", sys.stdout)
        return 0
    if args[0] == "--completion":
        from interverse.cli.flags import completion

        _say(completion({verb: row[:2] for verb, row in VERBS.items()}), sys.stdout)
        return 0
    if args[0] not in VERBS:
        _say(f"interverse: {unknown('verb', args[0], VERBS)}", sys.stderr)
        return 2
    if "" not in sys.path:
        sys.path.append("")  # MODULE:ID finds a module in the present folder, as `python -m` does
    return _run(args[0], args[1:])


def _run(verb: str, args: list[str]) -> int:
    """Runs a verb; returns its exit status, a user's mistake told in one line."""
    try:
        from interverse.cli.flags import hushed, kept
        from interverse.core.run import terminable
        from interverse.worlds.own_code import trusting

        config, function, folder = _load(verb, args)
        trust = getattr(config, "trust", False)
        with trusting(trust), kept(config, verb, folder), hushed(), terminable():
            function(config)
    except BrokenPipeError:
        sys.stdout = None  # the reader has seen enough
        return 0
    except KeyboardInterrupt:
        _say(f"interverse {verb}: stopped", sys.stderr)
        return 130
    except (UsageError, InterverseError, OSError, ModuleNotFoundError) as error:
        line = _error_line(error, verb)
        if line is None:
            raise
        _say(f"interverse {verb}: {line}", sys.stderr)
        return 2
    return 0


def _error_line(error: Exception, verb: str) -> str | None:
    """Returns the line that tells a user's mistake; None for a defect of ours."""
    if isinstance(error, UsageError):
        return f"{error} See: interverse {verb} --help"
    if isinstance(error, ModuleNotFoundError):
        from interverse.cli.doctor import EXTRAS

        root = (error.name or "").partition(".")[0]
        extra = next((extra for extra, names in EXTRAS.items() if root in names), None)
        return None if extra is None else str(missing_extra(str(error.name), extra))
    if not isinstance(error, OSError) or error.filename is None or not error.strerror:
        return str(error)
    path = Path(str(error.filename))  # without the system's number for what is wrong
    file = next((part for part in (path, *path.parents) if part.is_file()), None)
    if isinstance(error, FileNotFoundError):
        return f"there is no {path}."
    if file and isinstance(error, FileExistsError | NotADirectoryError):
        return f"{file} is a file. Allowed: a folder."
    return f"{path}: {error.strerror.lower()}."


class UsageError(Exception):
    """Flags that do not parse."""


def _load(verb: str, args: list[str]) -> tuple[Any, Callable[[Any], object], Path | None]:
    """Returns a verb's config, its function, and the folder or file that it writes, if any."""
    from interverse.cli.flags import config_words, flag_words, split_config

    rest, held = split_config(verb, args)
    module_name, config_name, function_name, _ = VERBS[verb]
    module = importlib.import_module(f"{__name__}.{module_name}")
    if config_name:
        kind, function = getattr(module, config_name), getattr(module, function_name)
    else:
        kind, function = module.choose([*rest, *flag_words(held)])
    config = parse_flags(kind, verb, config_words(kind, rest, held) if held else rest)
    chosen = getattr(config, "out", None)
    if chosen is None and hasattr(config, "usual_out"):
        chosen = config.usual_out()
    if getattr(config, "dry_run", False):
        chosen = None  # nothing is written
    return config, function, chosen


def parse_flags(config: type[Any], verb: str, args: list[str]) -> Any:
    """Returns the config that a verb's words stand for; UsageError with the mistake otherwise."""
    import tyro

    from interverse.cli.flags import lists_of, mistake
    from interverse.core.files.atomic import check_path

    for word in args:
        check_path(word)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(config, prog=f"interverse {verb}", args=_merged(args, lists_of(config)))
    except SystemExit as end:
        if not end.code:
            raise
        words = " ".join(_BOX.sub(" ", complaint.getvalue()).split())
        told = mistake(config, verb, args) or _AROUND.sub("", words)
        raise UsageError(told[:500].rstrip(".") + ".") from None


_PROTOCOL = re.compile(r"P\d+\w*(-P\d+)?$")


def _merged(args: Sequence[str], listed: Container[str]) -> list[str]:
    """Returns the words with flags that take a list given once: a second one adds to the first.

    >>> _merged(["--option", "a=1", "--seed", "3", "--option", "b=2", "c=3"], ["--option"])
    ['--seed', '3', '--option', 'a=1', 'b=2', 'c=3']
    >>> _merged(["runs/ppo", "--protocols", "P0", "P4-P6", "--json"], [])
    ['runs/ppo', '--protocols', 'P0,P4-P6', '--json']
    """
    rest: list[str] = []
    lists: dict[str, list[str]] = {}
    into = rest
    before = ""
    for word in args:
        name, equals, value = word.partition("=")
        # `--protocols P0 P4` is "P0,P4": protocols are one flag of one value.
        if before == "--protocols" and rest[-2:-1] == [before] and _PROTOCOL.match(word):
            rest[-1] += f",{word}"
            continue
        before = name if name.startswith("--") else before
        if name in listed:
            into = lists.setdefault(name, [])
            into += [value] if equals else []
            continue
        if word.startswith("--"):
            into = rest
        into.append(word)
    return rest + [part for name, values in lists.items() for part in (name, *values)]


def _help() -> str:
    width = max(map(len, VERBS))
    lines = [f"  {verb:<{width}}  {row[3]}" for verb, row in sorted(VERBS.items())]
    return "\n".join(
        [
            "interverse: worlds you can intervene on",
            "",
            "usage: interverse VERB [flags]        interverse VERB --help teaches the flags",
            "       interverse VERB --config FILE  flags from a YAML file, NAME: VALUE",
            '       eval "$(interverse --completion)"  verbs, flags, ids by Tab, in bash and zsh',
            "",
            *lines,
            "",
            "for instance: interverse describe chemistry/chain-v1",
        ]
    )


def _say(text: str, stream: Any) -> None:
    stream.write(text + "\n")
