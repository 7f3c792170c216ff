"""Fields with bounds, and tables whose rows load when they are asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import pytest
import tyro

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.registry import Entry, Registry
from interverse.core.type_checks import (
    Positive,
    Seed,
    Share,
    named,
    number,
    one_of,
    validated,
    whole,
)

TABLES = {"one": 1, "two": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class Base:
    seed: Seed = 0
    order: Literal["file", "shuffled"] = "file"
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen.append("base")


@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class Options(Base):
    episodes: Annotated[int | None, tyro.conf.Suppress, whole(10)] = None
    share: Share | None = 0.5
    rate: Positive = 1.0
    width: Annotated[float, number(1.0, 2.0, below=True)] = 1.0
    tables: tuple[Annotated[str, named("table", one_of(TABLES))], ...] = ()
    layers: tuple[Annotated[int, named("a layer", whole(8))], ...] | None = ()
    note: str = ""

    def __post_init__(self) -> None:
        self.seen.append("own")
        if self.note and not self.tables:
            raise InvalidValueError("a note needs a table.")


def test_what_is_within_bounds_passes_and_rules_run_from_the_base_down():
    made = Options(episodes=10, tables=("one", "two"), layers=(1, 8), note="n")
    assert made.seen == ["base", "own"]
    assert replace(made, share=None, seen=[]).share is None
    assert Options(layers=None).episodes is None


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"seed": -1}, InvalidValueError, "seed must be a whole number, got -1"),
        ({"order": "up"}, UnknownNameError, "unknown order 'up'. Allowed: file, shuffled"),
        ({"episodes": 0}, InvalidValueError, "episodes is 0. Allowed: a whole number from 1 to 10"),
        ({"share": 2}, InvalidValueError, "share is 2. Allowed: a number from 0 to 1."),
        ({"rate": 0}, InvalidValueError, "rate is 0. Allowed: a number above 0."),
        ({"rate": None}, InvalidValueError, "rate is None. Allowed: a number above 0."),
        ({"width": 2.0}, InvalidValueError, "width is 2.0. Allowed: a number from 1 to below 2."),
        ({"tables": ("one", "tow")}, UnknownNameError, "unknown table 'tow'. Did you mean 'two'?"),
        ({"layers": (1, 9)}, InvalidValueError, "a layer is 9. Allowed: a whole number from 1"),
        ({"note": "n"}, InvalidValueError, "a note needs a table."),
    ],
)
def test_what_is_not_is_refused_by_its_name(given: dict[str, Any], error, text):
    with pytest.raises(error, match=re.escape(text)):
        Options(**given)


def test_a_command_line_reads_the_fields_as_if_they_had_no_bounds():
    made = tyro.cli(Options, args=["--layers", "2", "3", "--tables", "one", "--share", "0.25"])
    assert (made.layers, made.tables, made.share) == ((2, 3), ("one",), 0.25)


def test_nothing_is_imported_until_asked_for():
    table = Registry("thing", {"broken": Entry("no_such_module:x"), "root": Entry("math:sqrt")})
    assert "broken" in table
    assert table.load("root")(4.0) == 2.0
    with pytest.raises(ModuleNotFoundError):
        table.load("broken")


def test_a_duplicate_raises():
    table = Registry("thing", {"a": Entry("math:sqrt")})
    with pytest.raises(InvalidValueError, match="'a' is registered already, as math:sqrt"):
        table.add("a", Entry("math:cos"))


def test_an_unknown_name_gets_a_suggestion():
    table = Registry("thing", {"chain": Entry("math:sqrt"), "full": Entry("math:cos")})
    with pytest.raises(UnknownNameError, match=r"unknown thing 'chian'\. Did you mean 'chain'"):
        table["chian"]


@pytest.mark.parametrize("target", ["math", "math:", ":sqrt", ""])
def test_a_malformed_target_raises(target):
    with pytest.raises(InvalidValueError, match="target of thing"):
        Registry("thing", {"a": Entry(target)})
