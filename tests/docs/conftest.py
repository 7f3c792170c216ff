"""A place to run documentation in: an empty folder, a cache of its own, clean registries."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from interverse.worlds import WORLDS


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path) -> Iterator[Path]:
    """Yields the present folder: empty but for `interverse`, as in a checkout."""
    (tmp_path / "interverse").symlink_to(repository / "interverse")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    # What a page registers, or imports from its own folder, must not outlive it.
    worlds, ids, modules = set(WORLDS), set(gymnasium.registry), set(sys.modules)
    yield tmp_path
    for table, before in ((WORLDS._rows, worlds), (gymnasium.registry, ids)):
        for name in set(table) - before:
            del table[name]
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(tmp_path) and not name.startswith("interverse"):
            del sys.modules[name]
