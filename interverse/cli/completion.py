"""Shell completion: verbs, their flags and the ids of worlds, for bash and for zsh."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import fields

from interverse.core.errors import InterverseError
from interverse.worlds import WORLDS

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


def completion(verbs: Mapping[str, Sequence[tuple[str, str, str]]]) -> str:
    """Returns a script that a shell evaluates: `eval "$(interverse --completion)"`.

    Args:
        verbs: each verb's kinds of work: module, config dataclass, function.
    """
    lines = [
        f'            {verb}) words="{" ".join(_flags(kinds))}" ;;'
        for verb, kinds in sorted(verbs.items())
    ]
    return _SCRIPT.format(
        verbs=" ".join(sorted(verbs)), ids=" ".join(WORLDS), flags="\n".join(lines)
    )


def _flags(kinds: Sequence[tuple[str, str, str]]) -> list[str]:
    """Returns the flags of every kind of work that is installed."""
    found = {"--config", "--help"}
    for module, config, _ in kinds:
        try:
            loaded = importlib.import_module(f"interverse.cli.{module}")
            every = [getattr(loaded, config)] if config else loaded.commands()
        except (InterverseError, ModuleNotFoundError):
            continue  # needs an extra
        names = {item.name for kind in every for item in fields(kind)}
        found |= {f"--{name.replace('_', '-')}" for name in names}
    return sorted(found)
