"""Actors and curricula from the words of a command line.

`physical_properties:group=block,space=A@first=10,period=2` is a stage: an actor's name, its
settings after a colon, when it acts after an at sign. Items of a list are joined by `+`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from interverse.actors import ACTORS
from interverse.actors.actor import Actor
from interverse.actors.curriculum import Curriculum, Stage, Start, paper_curriculum
from interverse.core.errors import FileFormatError, InvalidValueError, check_name, explain
from interverse.core.files.json_text import parse_json
from interverse.scm.variable import SpaceName

_STAGE = ("first", "last", "period", "step")
_IN_CODE = {"adversarial": "a critic", "agent": "choices (AgentDriven.choose)"}


def curriculum_from_words(
    words: Iterable[str], start: Start = "per_episode", space: SpaceName | None = None
) -> Curriculum:
    """Returns the curriculum of some words, one stage each.

    >>> curriculum_from_words(["goals", "visual:space=A@first=10"]).stages[1].first
    10
    """
    return Curriculum(stages=tuple(map(_stage, words)), start=start, space=space)


def training_curriculum(number: int, words: Sequence[str], space: SpaceName) -> Curriculum:
    """Returns what a training draws, from one space: CausalWorld's 0, 1 or 2, or actors' stages."""
    if number and words:
        raise InvalidValueError(
            explain("curriculum and actor are both given", fix="Leave one of them out")
        )
    if words:
        return curriculum_from_words(words, space=space)
    return replace(paper_curriculum(number), space=space)


def actor_from_word(word: str) -> Actor:
    """Returns the actor of a word such as `uniform:patterns=box/mass+gravity,space=A`."""
    name, _, settings = word.partition(":")
    if name in _IN_CODE:
        raise InvalidValueError(
            explain(
                f"actor {word!r} needs {_IN_CODE[name]}, which no word can give",
                fix="Build the Curriculum in Python",
            )
        )
    kind = ACTORS.load(name)
    given = {
        key: tuple(text.split("+")) if _is_tuple(kind, key) else _value(text)
        for key, text in _settings(settings, [f.name for f in _open_fields(kind)]).items()
    }
    try:
        return kind(**given)
    except TypeError as error:
        needed = ", ".join(f.name for f in _open_fields(kind))
        raise InvalidValueError(
            explain(f"actor {word!r}: {error}", allowed=f"settings {needed}")
        ) from None


def _stage(word: str) -> Stage:
    actor, _, when = word.partition("@")
    moments = {name: _value(text) for name, text in _settings(when, _STAGE).items()}
    for name, value in moments.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidValueError(
                explain(f"{name} of {word!r} is {value!r}", allowed="a whole number")
            )
    return Stage(actor=actor_from_word(actor), **moments)


def _open_fields(kind: type[Any]) -> list[Any]:
    return [item for item in fields(kind) if not item.name.startswith("_")]


def _is_tuple(kind: type[Any], name: str) -> bool:
    return any(f.name == name and str(f.type).startswith("tuple[str") for f in fields(kind))


def _settings(text: str, known: Collection[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidValueError(explain(f"setting {pair!r}", allowed="NAME=VALUE"))
        check_name("setting", name, known)
        out[name] = value
    return out


def _value(text: str) -> Any:
    """Returns a JSON value, or the text itself where it is none."""
    try:
        return parse_json(text)
    except FileFormatError:
        return text
