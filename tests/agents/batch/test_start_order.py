"""Starts on a device: every world meets many, all are met equally often, a resumed run the same."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from interverse.actors.curriculum import paper_curriculum
from interverse.worlds.trifinger.start_order import StartOrder

torch = pytest.importorskip("torch")

from interverse.agents.batch.ppo import DevicePpo, PpoSettings  # noqa: E402
from interverse.agents.batch.starts import Starts, curriculum_starts, make_arena  # noqa: E402
from interverse.worlds.trifinger import DeviceArena  # noqa: E402

TASK, WORLDS, COUNT = "trifinger/pushing-v1", 8, 16
OPTIONS = {"skip_frame": 1, "contact": "convex", "max_steps": 10}
GROUPS = [1.0] * 2 + [0.2] * 6  # those of a run with brief=0.75
SETTINGS = PpoSettings(horizon=4, epochs=1, minibatches=1, hidden=(8,))


@pytest.fixture(scope="module")
def starts() -> Starts:
    return curriculum_starts(TASK, paper_curriculum(1), COUNT, seed=7, options=OPTIONS)


def learner(starts: Starts, seed: int) -> DevicePpo:
    arena = make_arena(
        TASK, starts, num_worlds=WORLDS, device="torch", groups=GROUPS, options=OPTIONS
    )
    return DevicePpo(arena, SETTINGS, seed=seed)


def met(arena: DeviceArena, starts: Starts, episodes: int) -> list[tuple[int, int]]:
    """Returns (world, start) of all that begins in the time of so many episodes."""
    goals = starts.rows["store/goal/position"][:, 0]
    out = []
    for _ in range(episodes * OPTIONS["max_steps"]):  # type: ignore[operator]
        arena.step(arena.rest_action().expand(WORLDS, -1))
        begun = [world for part in arena.ended for world in range(part.start, part.stop)]
        arena.begin_ended()
        for world in begun:
            gaps = np.abs(goals - arena.view().goals[world, 0].numpy()).sum(axis=1)
            out.append((world, int(gaps.argmin())))
    return out


def test_a_whole_world_meets_many_starts_and_all_are_met_equally_often(starts: Starts) -> None:
    rows = met(learner(starts, 0).arena, starts, 20)
    for world in range(WORLDS):
        assert len({start for who, start in rows if who == world}) > COUNT // 2, world
    used = Counter(start for _, start in rows)
    assert len(used) == COUNT
    assert max(used.values()) - min(used.values()) <= 2


def test_a_resumed_arena_meets_the_starts_of_an_unbroken_one(starts: Starts) -> None:
    whole = learner(starts, 3).arena
    met(whole, starts, 4)
    saved = {name: part.clone() for name, part in whole.save().items()}
    rest = met(whole, starts, 4)
    again, other = learner(starts, 3).arena, learner(starts, 4).arena
    for arena in (again, other):
        arena.restore(saved)
    assert met(again, starts, 4) == rest
    assert met(other, starts, 4) != rest, "orders are those of the seed"


def test_every_pass_has_every_start_once_in_an_order_of_its_own() -> None:
    order = StartOrder(100, seed=5)
    passes = order.rows(0, 400).reshape(4, 100)
    assert passes[0].tolist() == list(range(100))
    assert len({row.tobytes() for row in passes}) == 4
    assert (np.sort(passes, axis=1) == np.arange(100)).all()


def test_an_order_does_not_depend_on_what_was_asked_before() -> None:
    whole = StartOrder(7, seed=5).rows(0, 60)
    pieces = StartOrder(7, seed=5)
    for first, number in ((0, 3), (3, 30), (50, 10), (33, 1), (34, 16)):
        assert (pieces.rows(first, number) == whole[first : first + number]).all()
