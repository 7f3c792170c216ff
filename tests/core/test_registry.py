"""The registry: lazy, no duplicates, suggestions."""

from __future__ import annotations

import pytest

from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.registry import Entry, Registry


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
