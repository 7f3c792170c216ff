"""What the batch learner's shaping pays for, and what actions cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from interverse.actors.curriculum import paper_curriculum

torch = pytest.importorskip("torch")

from interverse.agents.batch import shaping  # noqa: E402
from interverse.agents.batch.ppo import DevicePpo, PpoSettings  # noqa: E402
from interverse.agents.batch.shaping import WEIGHTS  # noqa: E402
from interverse.agents.batch.starts import curriculum_starts, make_arena  # noqa: E402
from interverse.worlds.trifinger import ArenaView, DeviceArena  # noqa: E402

HALF = 0.0325
GOALS = {
    "reaching": [[0.05, 0.0, 0.1], [-0.05, 0.05, 0.1], [0.0, -0.05, 0.15]],
    "pushing": [[0.05, 0.08, HALF]],
    "picking": [[0.0, 0.0, 0.15]],
    "pick_and_place": [[0.0, 0.09, HALF]],
    "stacking2": [[0.0, 0.0, HALF], [0.0, 0.0, 3 * HALF]],
}
ONLY_DIFFERENCES = shaping.ShapingWeights(grip=0.0, raised=0.0, success=0.0, near=0.0, effort=0.0)
Place = tuple[float, float, float]


@pytest.fixture
def differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shaping, "WEIGHTS", ONLY_DIFFERENCES)


def view(task: str, tips: torch.Tensor, blocks: torch.Tensor) -> ArenaView:
    """Returns what is seen with fingertips, (3, 3), and blocks, (B, 3), in these places."""
    count, none = len(blocks), torch.zeros(1, 0)
    sizes, turns = torch.full((1, count, 3), 2 * HALF), torch.zeros(1, count, 4)
    goals = torch.tensor(GOALS[task])[None]
    return ArenaView(tips[None], blocks[None], turns, goals, sizes, torch.ones(1), none, none)


def earned(task: str, views: Sequence[ArenaView]) -> float:
    still = torch.zeros(1, 9)
    return sum(float(shaping.shaped_reward(task, a, b, still)) for a, b in pairwise(views))


def round_trip(task: str, seed: int) -> list[ArenaView]:
    """Returns the views of a smooth way of all fingertips and blocks back to where they were."""
    draw = torch.Generator().manual_seed(seed)
    centre, swing, phase = (torch.rand(5, 3, generator=draw) for _ in range(3))
    turns = torch.randint(1, 4, (5, 3), generator=draw)
    out = []
    for t in torch.linspace(0.0, 1.0, 401):
        places = 0.1 * centre + 0.1 * swing * torch.sin(6.283185307 * (turns * t + phase))
        blocks = places[3 : 3 + (0 if task == "reaching" else len(GOALS[task]))]
        if task == "stacking2":
            blocks = torch.stack([torch.tensor(GOALS[task][0]), blocks[1]])  # placed
        if task == "pick_and_place":
            blocks = blocks.clone()
            blocks[:, 1] = blocks[:, 1].abs() + 0.001  # on one side of the wall
        out.append(view(task, places[:3], blocks))
    return out


@pytest.mark.usefixtures("differences")
@pytest.mark.parametrize("task", sorted(GOALS))
@pytest.mark.parametrize("seed", range(3))
def test_a_way_back_to_its_start_earns_nothing(task: str, seed: int) -> None:
    views = round_trip(task, seed)
    parts = [abs(earned(task, views[:end])) for end in (100, 200, 300)]
    assert max(parts) > 0.2, "parts of it do"
    assert abs(earned(task, views)) < 0.02


def way(task: str, corners: Sequence[tuple[Place, ...]], steps: int = 20) -> list[ArenaView]:
    """Returns the views along straight lines between places of the blocks, tips at the last one."""
    points = torch.tensor(corners)
    legs = [torch.lerp(a, b, k / steps) for a, b in pairwise(points) for k in range(steps)]
    return [view(task, blocks[-1].expand(3, 3), blocks) for blocks in (*legs, points[-1])]


OVER: list[tuple[Place, ...]] = [
    ((0.0, -0.02, 0.0975),),
    ((0.0, -0.02, 0.13),),
    ((0.0, 0.02, 0.13),),
    ((0.0, 0.02, 0.0975),),
    ((0.0, -0.02, 0.0975),),
]


@pytest.mark.usefixtures("differences")
def test_a_round_over_the_wall_earns_what_the_docstring_says() -> None:
    assert earned("pick_and_place", way("pick_and_place", OVER)) == pytest.approx(32.5, abs=0.01)
    back = way("pick_and_place", OVER[::-1])
    assert earned("pick_and_place", back) == pytest.approx(-32.5, abs=0.01)
    assert "32.5 a round" in " ".join((shaping.__doc__ or "").split())


@pytest.mark.usefixtures("differences")
def test_a_fall_beside_an_unplaced_block_costs_nothing() -> None:
    placed, out = (0.0, 0.0, HALF), (0.05, 0.0, HALF)
    low, high = (0.1, 0.0, HALF), (0.1, 0.0, 0.12)
    corners = [(placed, low), (placed, high), (out, high), (out, low), (placed, low)]
    assert earned("stacking2", way("stacking2", corners)) > 10.0
    kept = [(placed, low), (placed, high), (placed, low)]
    assert earned("stacking2", way("stacking2", kept)) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("name", ["grip", "near", "raised", "success"])
def test_these_pay_for_being_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {n: 0.0 for n in ("grip", "near", "raised", "success", "effort") if n != name}
    monkeypatch.setattr(shaping, "WEIGHTS", shaping.ShapingWeights(**others))
    block = torch.tensor(GOALS["picking"])
    there = view("picking", block[0].expand(3, 3), block)
    weight = getattr(shaping.WEIGHTS, name)
    assert earned("picking", [there, there]) == pytest.approx(weight, rel=1e-5)


TASK = "trifinger/pushing-v1"
SMALL = PpoSettings(horizon=4, epochs=1, minibatches=1, hidden=(8,), imitation=0.5)


def learner(**options: Any) -> DevicePpo:
    given = {"skip_frame": 1, "contact": "convex", **options}
    starts = curriculum_starts(TASK, paper_curriculum(0), 1, seed=0, options=given)
    arena = make_arena(TASK, starts, num_worlds=2, device="torch", options=given)
    return DevicePpo(arena, SMALL, seed=0)


@pytest.mark.parametrize("normalised", [True, False])
def test_shown_actions_are_kept_up_to_the_limits(
    normalised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interverse.agents.batch.ppo._CLONE_STEPS", 1)
    mine = learner(normalize_actions=normalised)
    low, high = (np.array(b) for b in DeviceArena.action_limits(mine.arena.options))
    assert (high == 1.0).all() == normalised
    beyond = torch.as_tensor(np.stack([2.0 * low, 0.9 * low, 2.0 * high]), dtype=torch.float32)
    mine.imitate(torch.zeros(3, mine.arena.layout.width), beyond)
    assert mine._shown is not None
    np.testing.assert_allclose(mine._shown[1], [low, 0.9 * low, high], rtol=1e-6)


def test_effort_counts_radians_up_to_the_limits() -> None:
    mine = learner(normalize_actions=False)
    low, high = DeviceArena.action_limits(mine.arena.options)
    before = mine.arena.view()
    earned = []
    for action in (torch.zeros(2, 9), torch.full((2, 9), 50.0)):
        mine.arena.step = lambda _: None  # type: ignore[method-assign]
        mine._advance(0, before, action)
        earned.append(mine._buffer.rewards[0].clone() / SMALL.reward_scale)
    paid = WEIGHTS.effort * float(np.mean(np.square(high)))
    np.testing.assert_allclose(earned[0] - earned[1], paid, atol=1e-5)
    assert min(low) < -1.0


def test_the_upper_block_earns_by_coming_near_only_when_it_is_lifted() -> None:
    def at(place: float, height: float) -> ArenaView:
        blocks = torch.tensor([[0.0, 0.0, HALF], [place, 0.0, height]])
        return view("stacking2", blocks[1].expand(3, 3), blocks)

    def nearer(height: float) -> float:
        near, far = at(0.10, height), at(0.12, height)
        return earned("stacking2", [far, near]) - earned("stacking2", [near, near])

    carried = shaping._carried
    assert abs(nearer(HALF)) < 1e-4
    assert nearer(3 * HALF) == pytest.approx(2.0, abs=1e-3)
    way = [(0.05, 0.13), (0.0, 0.13), (0.0, 0.0975), (0.05, 0.0975)]
    assert float(sum(carried(at(*b)) - carried(at(*a)) for a, b in pairwise(way))) < 0.0
    up = [(0.1, 0.0325), (0.1, 0.1275), (0.04, 0.1275), (0.025, 0.1125), (0.0, 0.0975)]
    assert all(carried(at(*b)) > carried(at(*a)) for a, b in pairwise(up))
