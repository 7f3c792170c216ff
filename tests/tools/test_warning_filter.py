"""Warnings raised in the library's own modules are errors; those of other packages are not."""

import warnings
from collections.abc import Callable

import pytest

CODE = """
import warnings
import numpy as np

def warn():
    warnings.warn("spoken by the module", UserWarning)

def divide():
    return np.ones(1) / np.zeros(1)
"""


def _module(name: str) -> dict[str, Callable[[], object]]:
    namespace: dict[str, Callable[[], object]] = {"__name__": name}  # type: ignore[dict-item]
    exec(compile(CODE, f"{name}.py", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("name", ["interverse", "interverse.scm", "interverse.worlds.chemistry"])
def test_a_warning_in_our_module_is_an_error(name: str) -> None:
    module = _module(name)
    with pytest.raises(UserWarning, match="spoken by the module"):
        module["warn"]()
    with pytest.raises(RuntimeWarning, match="divide by zero"):
        module["divide"]()


@pytest.mark.parametrize("name", ["interversed", "numpy.interverse", "elsewhere"])
def test_a_warning_elsewhere_stays_a_warning(name: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        _module(name)["warn"]()
    assert [str(warning.message) for warning in caught] == ["spoken by the module"]
