"""What tests of trainings share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from interverse.core.files.checkpoints import Checkpoint
from interverse.core.run import Run


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """Returns a context in which a run dies right after its next checkpoint."""
    original = Run.save

    def save_then_die(run: Run, checkpoint: Checkpoint) -> None:
        original(run, checkpoint)
        raise KeyboardInterrupt

    @contextmanager
    def context() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(Run, "save", save_then_die)
            with pytest.raises(KeyboardInterrupt):
                yield

    return context
