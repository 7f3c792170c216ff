"""Copies and pickles of environments: made again with the same arguments, at the same moment."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from interverse.envs.checks import select_worlds
from interverse.envs.driver import Driver

_OF_ENV = ("spec", "action_space", "single_action_space", "_np_random", "_np_random_seed")
_OF_DRIVER = ("seeds", "episodes", "steps", "ended", "hook", "starting_values", "skips_diverged")
_LOG = ("_log", "_log_start")


class CopyableEnv:
    """An environment whose copy goes on as it does, bit for bit, and apart from it.

    A copy is not recorded by what records the original, and has a window of its own.
    """

    driver: Driver
    _made_with: Mapping[str, Any]  # what its constructor was given

    def __reduce__(self) -> tuple[Any, ...]:
        driver, begun = self.driver, self.driver.running.any()
        moment = driver.snapshot() if begun else None
        latched = {name: rows[0] for name, rows in driver.world.starting_values.items()}
        parts = [{n: vars(self)[n] for n in _OF_ENV if n in vars(self)}]
        parts += [{n: getattr(driver, n) for n in (*_OF_DRIVER, *_LOG)}]
        return _make_again, (type(self), dict(self._made_with)), (moment, latched, *parts)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        moment, latched, mine, of_driver = state
        if latched:
            self.driver.world.set_starting_state(latched)  # type: ignore[attr-defined]
        if moment is not None:
            self.driver.restore(moment, select_worlds(None, len(self.driver.steps)))
        vars(self.driver).update(of_driver)
        vars(self).update(mine)

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # worlds cannot be shared


def _make_again(kind: Any, made_with: Mapping[str, Any]) -> Any:
    return kind(**made_with)
