"""Where episodes on a device start: what actors and curricula draw, in which order it is met."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interverse.actors.curriculum import paper_curriculum
from interverse.cli.flags import flag_words
from interverse.cli.train import parsed, training
from interverse.core.errors import InvalidValueError
from interverse.worlds.trifinger.device import StartOrder

torch = pytest.importorskip("torch")

from interverse.agents.batch.ppo import DevicePpo, PpoSettings  # noqa: E402
from interverse.agents.batch.starts import Starts, curriculum_starts, make_arena  # noqa: E402
from interverse.agents.batch.train import (  # noqa: E402
    DeviceTrain,
    drawn_starts,
    mixed,
    train_on_device,
)
from interverse.core.files.json_text import read_json_object  # noqa: E402
from interverse.worlds.trifinger import DeviceArena  # noqa: E402

TASK, WORLDS, COUNT = "trifinger/pushing-v1", 8, 16
MASSES = ("uniform:patterns=block_0/mass",)
ORDERED: dict[str, Any] = {"skip_frame": 1, "contact": "convex", "max_steps": 10}
GROUPS = [1.0] * 2 + [0.2] * 6  # those of a run with brief=0.75
SETTINGS = PpoSettings(horizon=4, epochs=1, minibatches=1, hidden=(8,))


def settings(out: Path, **flags: Any) -> DeviceTrain:
    given = {"num_envs": 4, "steps": 16, **flags}
    hyper = ("horizon=4", "epochs=1", "minibatches=1", "hidden=[8]", "starts=40", "plain=0")
    hyper += given.pop("hyper", ())
    given = {name: list(v) if isinstance(v, tuple) else v for name, v in given.items()}
    words = flag_words({"task": TASK, "out": out, "device": "cpu", "hyper": [*hyper], **given})
    return training(parsed(words))[0]  # type: ignore[no-any-return]


def masses(config: DeviceTrain) -> np.ndarray:
    return drawn_starts(config).rows["store/block/mass"][:, 0]


def test_starts_are_what_an_actor_draws(tmp_path: Path) -> None:
    rows = drawn_starts(settings(tmp_path, actor=MASSES)).rows
    found = rows["store/block/mass"][:, 0]
    assert len(set(found)) == 40
    assert 0.015 <= found.min() <= found.max() <= 0.045
    assert len(np.unique(rows["store/goal/position"], axis=0)) == 1


def test_starts_are_drawn_from_the_space_that_is_asked_for(tmp_path: Path) -> None:
    inside, whole = (masses(settings(tmp_path, actor=MASSES, space=s)) for s in ("A", "A_B"))
    beyond = masses(settings(tmp_path, curriculum=2, space="B"))
    assert inside.max() <= 0.045 < whole.max()
    assert beyond.min() >= 0.045


def test_an_actor_is_part_of_a_run(tmp_path: Path) -> None:
    train_on_device(settings(tmp_path, actor=MASSES))
    held = read_json_object(tmp_path / "train.json")
    assert held["actor"] == [*MASSES]
    assert (held["curriculum"], held["space"]) == (0, "A")
    with pytest.raises(InvalidValueError, match=r"holds another run: .*actor"):
        train_on_device(settings(tmp_path, actor=("goals",)))
    with pytest.raises(InvalidValueError, match=r"holds another run: .*space"):
        train_on_device(settings(tmp_path, actor=MASSES, space="A_B"))


def test_a_trained_policy_says_that_it_has_seen_space_b(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_on_device(settings(tmp_path, actor=MASSES, space="A_B"))
    assert "Trained in space A_B" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("actor", "problem"),
    [
        *((f"goals@{w}", "Goals acts by the") for w in ("step=3", "first=2", "period=2", "last=9")),
        ('interpolation:target={"block_0/mass":0.04}', "Interpolation acts by the number of an"),
        ("adaptive:patterns=block_0/mass", "waits for how episodes end"),
    ],
)
def test_what_acts_later_than_at_the_start_is_refused(
    actor: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidValueError, match=problem):
        settings(tmp_path, actor=(actor,))


def test_a_curriculum_and_an_actor_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="curriculum and actor are both given"):
        settings(tmp_path, actor=MASSES, curriculum=1)


def test_blocks_in_their_places_need_no_curriculum(tmp_path: Path) -> None:
    rows = drawn_starts(settings(tmp_path, curriculum=0, hyper=("placed=0.5",))).rows
    block, goal = rows["physics"][:, 10:12], rows["store/goal/position"][:, 0, :2]
    assert np.isclose(block, goal).all(axis=1).sum() == 20


def test_some_starts_are_plain_and_some_have_the_first_block_in_its_goal() -> None:
    starts = curriculum_starts(
        "trifinger/stacking2-v1",
        paper_curriculum(1),
        8,
        seed=0,
        options=ORDERED,
        placed=0.5,
        plain=0.25,
    )
    block = starts.rows["physics"][:, 10:12]  # time, nine joints, then the first block
    there = np.isclose(block, starts.rows["store/goal/position"][:, 0, :2]).all(axis=1)
    assert there[4:].any()
    assert not there[:4].any()
    goals = starts.rows["store/goal/position"][:, 0, :2]
    assert (goals[0] == goals[1]).all(), "a quarter are the task's own"
    assert (goals[2:] != goals[0]).any(axis=1).all()


def test_mixed_starts_are_as_many_different_ones_as_there_are(tmp_path: Path) -> None:
    config = DeviceTrain(task=TASK, out=tmp_path, device="torch", starts=32, shown=0.5)
    drawn = curriculum_starts(config.task, paper_curriculum(1), 24, seed=0, options=ORDERED)
    shown = curriculum_starts(config.task, paper_curriculum(1), 5, seed=99, options=ORDERED)
    goals = mixed(drawn, shown, config).rows["store/goal/position"][:, 0]
    places, uses = np.unique(goals, axis=0, return_counts=True)
    ours = (places[:, None] == shown.rows["store/goal/position"][None, :, 0]).all(-1).any(1)
    assert uses[~ours].tolist() == [1] * 16
    assert sorted(uses[ours].tolist()) == [3, 3, 3, 3, 4]


@pytest.fixture(scope="module")
def starts() -> Starts:
    return curriculum_starts(TASK, paper_curriculum(1), COUNT, seed=7, options=ORDERED)


def ordered(starts: Starts, seed: int) -> DevicePpo:
    arena = make_arena(
        TASK, starts, num_worlds=WORLDS, device="torch", groups=GROUPS, options=ORDERED
    )
    return DevicePpo(arena, SETTINGS, seed=seed)


def met(arena: DeviceArena, starts: Starts, episodes: int) -> list[tuple[int, int]]:
    """Returns (world, start) of all that begins in the time of so many episodes."""
    goals = starts.rows["store/goal/position"][:, 0]
    out = []
    for _ in range(episodes * ORDERED["max_steps"]):
        arena.step(arena.rest_action().expand(WORLDS, -1))
        begun = [world for part in arena.ended for world in range(part.start, part.stop)]
        arena.begin_ended()
        for world in begun:
            gaps = np.abs(goals - arena.view().goals[world, 0].numpy()).sum(axis=1)
            out.append((world, int(gaps.argmin())))
    return out


def test_a_whole_world_meets_many_starts_and_all_are_met_equally_often(starts: Starts) -> None:
    rows = met(ordered(starts, 0).arena, starts, 20)
    for world in range(WORLDS):
        assert len({start for who, start in rows if who == world}) > COUNT // 2, world
    used = Counter(start for _, start in rows)
    assert len(used) == COUNT
    assert max(used.values()) - min(used.values()) <= 2


def test_a_resumed_arena_meets_the_starts_of_an_unbroken_one(starts: Starts) -> None:
    whole = ordered(starts, 3).arena
    met(whole, starts, 4)
    saved = {name: part.clone() for name, part in whole.save().items()}
    rest = met(whole, starts, 4)
    again, other = ordered(starts, 3).arena, ordered(starts, 4).arena
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
