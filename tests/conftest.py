"""Settings of the whole suite: property-test profiles, one thread a worker, skips that say why."""

from __future__ import annotations

import gc
import importlib.util
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before NumPy and Torch are imported: the suite runs one worker a core.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Ray would write a token into the home folder, or use the one that is there.
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
# A head node starts slowly on a busy machine.
os.environ |= {"RAY_gcs_server_port_wait_time_s": "300"}

import pytest
from hypothesis import HealthCheck, settings

import interverse as iv

# No deadline: physics on a busy machine is slow without being wrong.
settings.register_profile(
    "local", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
# The same examples at every run, so that red means that the code changed.
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure() -> None:
    """Takes Ctrl-C back: a suite started in the background of a shell would pass on ignoring it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    importlib.import_module("interverse.envs")  # else doctests there would make second copies
    gc.disable()  # until everything is imported: see below


def pytest_collection_finish() -> None:
    """Leaves modules and tests out of garbage collections, which took a second each with them."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what this machine cannot run; `make test-all` selects every marker."""
    needs = {"gpu": (_has_cuda, "no CUDA device"), "ray": (_has_ray, "extra `ray` not installed")}
    for marker, (is_there, reason) in needs.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marked and not is_there():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def repository() -> Path:
    """Returns the root of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture
def make() -> Iterator[Callable[..., Any]]:
    """Yields `iv.make` with a wrapper and a first reset; what it made is closed after the test."""
    made = []

    def build(id: str, wrap: Callable[[Any], Any] = lambda env: env, **options: Any) -> Any:
        made.append(wrap(iv.make(id, **options)))
        made[-1].reset(seed=0)
        return made[-1]

    yield build
    for env in made:
        env.close()


@pytest.fixture(scope="module")
def envs() -> Iterator[Callable[..., Any]]:
    """Yields what makes a TriFinger world once for a whole module, and resets it at every call."""
    made: dict[Any, Any] = {}

    def get(task: str, **options: Any) -> Any:
        key = (task, *sorted((name, str(value)) for name, value in options.items()))
        if key not in made:
            made[key] = iv.make(f"trifinger/{task}-v1", **options)
        made[key].reset(seed=0)
        return made[key]

    yield get
    for env in made.values():
        env.close()


def _has_cuda() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def _has_ray() -> bool:
    return importlib.util.find_spec("ray") is not None
