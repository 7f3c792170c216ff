"""Learning on a device: starts, the arena against the world itself, PPO, export, resume."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
from interverse.actors.curriculum import paper_curriculum
from interverse.core.errors import InvalidValueError
from interverse.protocols.select import select_protocols

torch = pytest.importorskip("torch")

from interverse.learning.evaluation import episode_rows, play, starts_of  # noqa: E402
from interverse.learning.ppo import PpoSettings  # noqa: E402
from interverse.learning.starts import curriculum_starts, make_arena, protocol_starts  # noqa: E402
from interverse.learning.train import DeviceTrain, train_on_device  # noqa: E402
from interverse.rollouts.exported import ExportedPolicy  # noqa: E402

SMALL = PpoSettings(horizon=4, epochs=1, minibatches=1, hidden=(8,))
OPTIONS = {"skip_frame": 3, "contact": "convex"}


@pytest.mark.parametrize("task", ["pushing", "picking", "pick_and_place", "stacking2"])
def test_the_arena_is_the_world(task: str) -> None:
    name, count = f"trifinger/{task}-v1", 4
    starts = curriculum_starts(name, paper_curriculum(2), count, seed=7, options=OPTIONS)
    arena = make_arena(name, starts, num_worlds=count, device="torch", groups=1, options=OPTIONS)
    venv = iv.make_vec(name, num_envs=count, autoreset_mode="disabled", **OPTIONS)
    venv.reset(seed=0)
    world = venv.unwrapped.world
    world.load(starts.rows, np.arange(count))
    actions = np.random.default_rng(0).uniform(-1, 1, (6, count, 9)).astype(np.float32)
    for action in actions:
        view = arena.view()
        np.testing.assert_allclose(view.observation, world.observe(), atol=1e-5)
        np.testing.assert_allclose(view.fraction, world.read("fractional_success"), atol=1e-6)
        arena.step(torch.as_tensor(action))
        venv.step(action)
    venv.close()


def test_starts_of_a_protocol_are_those_of_evaluate() -> None:
    name, (protocol,) = "trifinger/pushing-v1", select_protocols("trifinger/pushing-v1", "P7")
    numbers = np.array([0, 3])
    starts = protocol_starts(name, protocol, numbers, seed=5, options=OPTIONS)
    results = iv.evaluate(
        lambda seen: np.zeros((len(seen), 9), np.float32),
        name,
        protocols="P7",
        episodes=4,
        seed=5,
        max_steps=2,
        **OPTIONS,
    )
    drawn = [row["value:block_0/mass"] for row in results.data.to_pylist()]
    np.testing.assert_allclose(starts.rows["store/block/mass"][:, 0], [drawn[0], drawn[3]])


def run(folder: Path, steps: int, **changes: object) -> Path:
    config = DeviceTrain(
        task="trifinger/pushing-v1",
        out=folder,
        device="torch",
        steps=steps,
        num_worlds=8,
        starts=8,
        checkpoint_every=1,
        settings=SMALL,
        **changes,  # type: ignore[arg-type]
    )
    return train_on_device(config)


def test_a_run_learns_goes_on_and_exports(tmp_path: Path) -> None:
    policy = run(tmp_path / "run", 64)
    held = json.loads((tmp_path / "run" / "checkpoint.json").read_text())
    assert held["steps"] == 64
    run(tmp_path / "run", 128)
    held = json.loads((tmp_path / "run" / "checkpoint.json").read_text())
    assert held["steps"] == 128
    assert ExportedPolicy.load(policy).card.trained["config"]["shaping"] == "progress"
    with pytest.raises(InvalidValueError, match="holds another run: seed"):
        run(tmp_path / "run", 128, seed=1)
    results = iv.evaluate(
        str(policy), "trifinger/pushing-v1", protocols="P0", episodes=1, max_steps=3, skip_frame=3
    )
    assert len(results.data) == 1


def test_protocols_on_a_device_have_a_row_each() -> None:
    name, protocols = "trifinger/pushing-v1", select_protocols("trifinger/pushing-v1", "P0-P2")
    options = {**OPTIONS, "max_steps": 3}
    starts = starts_of(name, protocols, episodes=2, options=options)
    arena = make_arena(
        name, starts, num_worlds=len(starts), device="torch", groups=1, options=options
    )
    scores = play(lambda seen: torch.zeros(len(seen), 9), arena)
    rows = episode_rows(scores, protocols, starts, task=name)
    assert [row["protocol"] for row in rows] == ["P0", "P0", "P1", "P1", "P2", "P2"]
    assert all("last_fractional_success" in row for row in rows)


def test_other_tasks_say_so() -> None:
    starts = curriculum_starts("trifinger/reaching-v1", paper_curriculum(0), 1, seed=0, options={})
    with pytest.raises(InvalidValueError, match="no device form"):
        make_arena("trifinger/reaching-v1", starts, num_worlds=2, device="torch")


@pytest.mark.slow
def test_the_world_itself_runs_on_warp() -> None:
    pytest.importorskip("mujoco_warp")
    mine = iv.make_vec("trifinger/pushing-v1", num_envs=3, device="warp", **OPTIONS)
    other = iv.make_vec("trifinger/pushing-v1", num_envs=3, **OPTIONS)
    seen = [venv.reset(seed=3)[0] for venv in (mine, other)]
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-5)
    for venv in (mine, other):
        outcome = venv.do({"block_0/mass": np.array([0.02, 0.03, 0.04]), "floor/friction": 0.4})
        assert outcome.applied.all()
    for action in np.random.default_rng(0).uniform(-1, 1, (5, 3, 9)).astype(np.float32):
        seen = [venv.step(action)[0] for venv in (mine, other)]
        np.testing.assert_allclose(seen[0], seen[1], atol=1e-4)
