"""Shell completion: verbs, their flags and the ids of worlds, for bash and for zsh."""

from __future__ import annotations

import importlib
from dataclasses import fields

from interverse.cli import KINDS, VERBS
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


def completion() -> str:
    """Returns a script that a shell evaluates: `eval "$(interverse --completion)"`."""
    lines = [f'            {verb}) words="{" ".join(_flags(verb))}" ;;' for verb in sorted(VERBS)]
    verbs, ids = " ".join(sorted(VERBS)), " ".join(WORLDS)
    return _SCRIPT.format(verbs=verbs, ids=ids, flags="\n".join(lines))


def _flags(verb: str) -> list[str]:
    """Returns the flags of a verb, of every kind of work that it does and that is installed."""
    found = {"--config", "--help"}
    for module, config, _ in (VERBS[verb][:3], *KINDS.get(verb, ("", {}))[1].values()):
        try:
            kind = getattr(importlib.import_module(module), config)
        except (InterverseError, ModuleNotFoundError):
            continue  # needs an extra
        found |= {f"--{item.name.replace('_', '-')}" for item in fields(kind)}
    return sorted(found)
