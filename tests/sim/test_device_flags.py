"""What an engine on a device notes without raising reaches results, rows and whoever closes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import interverse as iv
from interverse.sim import CapacityError, SimulationError

torch = pytest.importorskip("torch")

SLIDER = "tutorial/slider-v1"


class Noting:
    """An engine that notes what breaks down and what does not fit, as one on a GPU does."""

    def __init__(self, engine: Any, at: int, *, full: bool = False) -> None:
        self._engine, self._at, self._full, self.steps = engine, at, full, 0
        self.diverged = torch.zeros(engine.num_worlds, dtype=torch.bool)
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def step(self, *given: Any, **named: Any) -> None:
        self.steps += 1
        self._engine.step(*given, **named)
        if self.steps == self._at:
            self.diverged[min(1, len(self.diverged) - 1)] = True

    def reset(self, worlds: Any) -> None:
        self.diverged[worlds] = False
        self._engine.reset(worlds)

    def broken(self) -> Any:
        return self.diverged

    def check_capacity(self) -> None:
        self.looks += 1
        if self._full:
            raise CapacityError("3 worlds had more contacts than there is room for")


@pytest.fixture
def noting(monkeypatch):
    """Makes sliders on an engine that notes; returns those made."""
    from interverse.worlds.tutorial import world as module

    made: list[Noting] = []

    def begin(at: int, **more: Any) -> list[Noting]:
        real = module.make_engine

        def make(*given: Any, **named: Any) -> Noting:
            made.append(Noting(real(*given, **named), at, **more))
            return made[-1]

        monkeypatch.setattr(module, "make_engine", make)
        return made

    return begin


@pytest.mark.parametrize("at", [2, 6])
def test_a_row_whose_physics_broke_down_on_a_device_is_refused(noting, at: int) -> None:
    made = noting(at)
    options = {"protocols": "P0", "max_steps": 6, "device": "torch"}
    results = iv.evaluate("random", SLIDER, episodes=3, **options)
    assert results.refused.tolist() == [False, True, False]
    reason = results.column("reason")[1]
    assert reason.startswith("diverged: the physics of world 1 broke down: ")
    assert results.column("length").tolist() == [6, at, 6]
    assert made[0].looks <= 2, "the device is asked when an episode ends, not at every step"


def test_what_did_not_fit_is_said_before_an_evaluation_returns(noting) -> None:
    noting(-1, full=True)
    with pytest.raises(CapacityError, match="more contacts"):
        iv.evaluate("random", SLIDER, episodes=2, max_steps=4, device="torch")


def test_a_rollout_of_a_world_that_broke_down_raises(noting) -> None:
    noting(2)
    env = iv.make(SLIDER, device="torch", max_steps=6)
    with pytest.raises(SimulationError, match="world 0 broke down") as caught:
        iv.rollout(env, "random")
    assert caught.value.worlds == (0,)


def test_a_cut_rollout_says_what_did_not_fit(noting) -> None:
    noting(-1, full=True)
    env = iv.make(SLIDER, device="torch", max_steps=60)
    with pytest.raises(CapacityError, match="more contacts"):
        iv.rollout(env, "random", max_steps=3)


def test_environments_of_many_worlds_go_on_and_the_next_episode_counts(noting) -> None:
    made = noting(2)
    venv = iv.make_vec(SLIDER, num_envs=3, device="torch", max_steps=4, autoreset_mode="disabled")
    driver = venv.unwrapped.driver
    driver.skips_diverged = True
    venv.reset(seed=0)
    still = np.zeros((3, 2), np.float32)
    ends = [venv.step(still)[2].tolist() for _ in range(3)]
    assert ends == [[False] * 3, [False, True, False], [False, True, False]]
    assert list(driver.diverged) == [1]
    venv.reset(seed=1)
    assert not driver.diverged
    assert not made[0].diverged.any()
    assert not venv.step(still)[2].any()
    venv.close()
