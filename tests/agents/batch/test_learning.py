"""Learning on a device: starts, the arena against the world itself, PPO, export, resume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interverse as iv
from interverse.actors.curriculum import paper_curriculum
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.files.checkpoints import Checkpoints
from interverse.core.files.json_text import read_json
from interverse.core.run import CHECKPOINTS
from interverse.protocols.protocol import select_protocols
from interverse.worlds import trifinger

torch = pytest.importorskip("torch")

from interverse.agents.batch.ppo import DevicePpo, PpoSettings  # noqa: E402
from interverse.agents.batch.starts import curriculum_starts, make_arena  # noqa: E402
from interverse.agents.batch.train import (  # noqa: E402
    DeviceTrain,
    demonstrations_of,
    train_on_device,
    trained_steps,
)
from interverse.protocols.on_device import episode_rows, play, protocol_starts, starts_of  # noqa: E402

event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
from interverse.rollouts.exported import ExportedPolicy  # noqa: E402

SMALL = PpoSettings(horizon=4, epochs=1, minibatches=1, hidden=(8,))
OPTIONS = {"skip_frame": 3, "contact": "convex"}


@pytest.mark.parametrize("task", trifinger.DEVICE_TASKS)
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


def test_short_episodes_lie_in_the_time_of_whole_ones() -> None:
    name, options = "trifinger/pushing-v1", {**OPTIONS, "max_steps": 10}
    starts = curriculum_starts(name, paper_curriculum(1), 6, seed=7, options=options)
    arena = make_arena(
        name, starts, num_worlds=6, device="torch", groups=[1.0, 0.2, 0.2], options=options
    )
    ends = {0: 0, 2: 0, 4: 0}
    for _ in range(20):
        arena.step(arena.rest_action().expand(6, -1))
        for part in arena.ended:
            assert part.stop - part.start == 2
            ends[part.start] += 1
        arena.begin_ended()
        assert (arena.clock >= 0).all()
        assert (arena.clock < 10).all()
    assert ends == {0: 2, 2: 10, 4: 10}


def test_features_tell_everything_and_are_exported() -> None:
    from interverse.agents.batch.network import ActorCritic, difference_matrix

    layout = {
        "end_effector_positions": slice(0, 9),
        "block_0/cartesian_position": slice(9, 12),
        "goal_0/cartesian_position": slice(12, 15),
        "goal_0/size": slice(15, 18),
    }
    features = difference_matrix(layout, 18)
    assert torch.linalg.matrix_rank(features) == 18
    assert not features[12:15, :15].any(), "a goal is seen from the block alone"
    network = ActorCritic(features, 9, (8,))
    network.observe(torch.randn(64, features.shape[1]))
    policy = network.export(([-9.0] * 9, [9.0] * 9), {})
    seen = torch.randn(5, 18)
    wanted = network.actor(network.prepare(seen)).detach().numpy()
    np.testing.assert_allclose(policy(seen.numpy()), wanted, atol=1e-5)


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


def run(
    folder: Path,
    steps: int,
    report: Callable[[dict[str, Any]], None] | None = None,
    **changes: object,
) -> Path:
    config = DeviceTrain(
        task="trifinger/pushing-v1",
        out=folder,
        device="torch",
        steps=steps,
        starts=8,
        **{"num_envs": 8, "settings": SMALL, "checkpoint_every": 1, **changes},  # type: ignore[arg-type]
    )
    return train_on_device(config, report=report)


def test_a_run_learns_goes_on_and_exports(tmp_path: Path) -> None:
    threads: list[int] = []
    policy = run(tmp_path / "run", 64, lambda _: threads.append(torch.get_num_threads()))
    assert set(threads) == {1}, "small products on many threads wait for each other"
    assert trained_steps(tmp_path / "run") == 64
    run(tmp_path / "run", 128)
    curve = read_json(tmp_path / "run" / "curve.json")
    assert [row["steps"] for row in curve] == [64, 128], "the last update is always reported"
    assert trained_steps(tmp_path / "run") == 128
    assert ExportedPolicy.load(policy).card.trained["config"]["shaping"] == "progress"
    with pytest.raises(InvalidValueError, match="holds another run: seed"):
        run(tmp_path / "run", 128, seed=1)
    results = iv.evaluate(
        str(policy), "trifinger/pushing-v1", protocols="P0", episodes=1, max_steps=3, skip_frame=3
    )
    assert len(results.data) == 1


class KilledError(Exception):
    """Stands for a kill."""


def test_a_killed_run_ends_as_one_that_was_not(tmp_path: Path) -> None:
    def killed(row: dict[str, Any]) -> None:
        if row["steps"] == 800:  # the checkpoint is that of the update before
            raise KilledError

    changes = {
        "curriculum": 2,
        "options": {**OPTIONS, "max_steps": 20},
        "settings": PpoSettings(horizon=2, epochs=1, minibatches=2, hidden=(8,)),
    }
    whole = run(tmp_path / "whole", 960, **changes)
    with pytest.raises(KilledError):
        run(tmp_path / "killed", 960, killed, **changes)
    again = run(tmp_path / "killed", 960, **changes)
    assert tree_bytes(again) == tree_bytes(whole)
    for name in ("whole", "killed"):
        told = event_accumulator.EventAccumulator(str(tmp_path / name / "tensorboard")).Reload()
        assert [event.step for event in told.Scalars("return")] == [400, 800, 960]
    ends = [tensors(tmp_path / name) for name in ("whole", "killed")]
    assert ends[0].keys() == ends[1].keys()
    for name, part in ends[0].items():
        assert torch.equal(part, ends[1][name]), name


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    held = Checkpoints(folder / CHECKPOINTS).load()
    assert held is not None
    return dict(held.tensors)


def tree_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_rollout_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards, ends and advantages as Schulman et al. (2016) define them, summed term by term."""
    task, options = "trifinger/pushing-v1", {**OPTIONS, "max_steps": 3}
    settings = PpoSettings(horizon=7, gamma=0.9, lam=0.7, reward_scale=0.5, hidden=(8,))
    starts = curriculum_starts(task, paper_curriculum(1), 4, seed=1, options=options)
    arena = make_arena(task, starts, num_worlds=4, device="torch", groups=2, options=options)
    learner, kept = DevicePpo(arena, settings, seed=0), []

    def paid(task: str, before: Any, now: Any, action: Any) -> Any:
        ended = torch.zeros(4, dtype=torch.bool)
        for part in arena.ended:
            ended[part] = True
        # copies: the arena writes the next step into the same memory
        kept.append((before.observation.clone(), now.observation.clone(), ended))
        return torch.arange(4.0) + 10.0 * len(kept)

    monkeypatch.setattr("interverse.agents.batch.ppo.shaped_reward", paid)
    learner.collect()

    def worth(seen: Any) -> Any:
        with torch.no_grad():
            return learner.network.critic(learner.network.prepare(seen))[:, 0].double()

    ends = torch.stack([ended for _, _, ended in kept])
    assert ends.any(1).any(), "an episode ended"
    assert not ends.all(1).any(), "and not all at once"
    errors = []
    for t, (before, after, _) in enumerate(kept):
        # An episode ends by time alone, so what would have come after counts there, too.
        reward = 0.5 * (torch.arange(4.0, dtype=torch.float64) + 10.0 * (t + 1))
        errors.append(reward + 0.9 * worth(after) - worth(before))
    advantages = learner._advantages()
    for t in range(7):
        for world in range(4):
            wanted, weight = 0.0, 1.0
            for k in range(t, 7):
                wanted += weight * float(errors[k][world])
                weight *= 0.9 * 0.7
                if ends[k, world]:
                    break
            assert float(advantages[t, world]) == pytest.approx(wanted, abs=1e-4)
    arena.close()


def test_one_world_and_a_short_horizon_see(tmp_path: Path) -> None:
    settings = PpoSettings(horizon=2, epochs=1, minibatches=1, hidden=(8,))
    policy = ExportedPolicy.load(run(tmp_path, 4, num_envs=1, settings=settings))
    assert all(torch.isfinite(part).all() for part in policy.weights.values())
    one, other = policy(np.random.default_rng(0).uniform(-1.0, 1.0, (2, 56)))
    assert (one != other).any(), "what it does depends on what it sees"


def test_observations_in_units_of_their_own_are_seen_whole(tmp_path: Path) -> None:
    options = {"skip_frame": 3, "normalize_observations": False}
    policy = ExportedPolicy.load(run(tmp_path, 32, options=options, curriculum=0))
    seen = torch.as_tensor(iv.make("trifinger/pushing-v1", **options).reset(seed=0)[0])
    assert seen[0] > 9.0, "about ten seconds are left"
    assert torch.equal(policy.prepare(seen), seen)


def test_a_critic_may_see_what_the_policy_does_not(tmp_path: Path) -> None:
    settings = PpoSettings(horizon=4, epochs=1, minibatches=1, hidden=(8,), privileged=True)
    policy = run(tmp_path / "run", 64, settings=settings, curriculum=2)
    held = tensors(tmp_path / "run")
    more = held["network|critic.0.weight"].shape[1] - held["network|actor.0.weight"].shape[1]
    assert more == 1 + 1 + 1 + 1 + 9  # friction and mass of the block, floor, gravity, links
    assert ExportedPolicy.load(policy).weights["0.weight"].shape[1] == 56


def test_a_run_begins_with_what_the_baseline_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interverse.agents.batch.ppo._CLONE_STEPS", 500)
    options = {"skip_frame": 10}  # fewer steps to the end
    config = DeviceTrain(
        task="trifinger/pushing-v1",
        out=tmp_path / "run",
        device="torch",
        steps=64,
        num_envs=8,
        starts=8,
        shown=0.5,
        demonstrations=3,
        options=options,
        settings=PpoSettings(horizon=4, epochs=1, minibatches=1, hidden=(32,), imitation=1.0),
    )
    shown = demonstrations_of(config)
    assert len(shown.observations) == len(shown.actions) > 0
    places = shown.starts.rows["store/block/position"][:, 0]
    goals = shown.starts.rows["store/goal/position"][:, 0]
    gaps = np.linalg.norm(places - goals, axis=1)
    assert gaps.min() < 0.01 < gaps.max(), "starts lie along the way, its end too"
    policy = ExportedPolicy.load(train_on_device(config, shown=shown))
    miss = np.abs(policy(shown.observations).clip(-1, 1) - shown.actions).mean()
    untaught = ExportedPolicy.load(run(tmp_path / "other", 64, options=options))
    assert miss < 0.5 * np.abs(untaught(shown.observations).clip(-1, 1) - shown.actions).mean()


def test_a_run_begins_with_a_policy_and_keeps_it_until_the_critic_knows_it(tmp_path: Path) -> None:
    first = run(tmp_path / "first", 64)
    again = run(tmp_path / "again", 64, initial=str(first), curriculum=2)
    one, other = (ExportedPolicy.load(folder) for folder in (first, again))
    seen = np.random.default_rng(0).uniform(-1, 1, (32, 56))
    np.testing.assert_allclose(one(seen), other(seen), atol=1e-3)
    critics = [tensors(tmp_path / name)["network|critic.0.weight"] for name in ("first", "again")]
    assert not torch.equal(*critics)
    with pytest.raises(InvalidValueError, match="the initial policy has layers"):
        run(tmp_path / "other", 64, initial="pushing_2")


def test_a_checkpoint_comes_after_so_many_steps(tmp_path: Path) -> None:
    def killed(row: dict[str, Any]) -> None:
        raise KilledError  # at the 25th update, 800 steps

    with pytest.raises(KilledError):
        run(tmp_path, 1600, killed, checkpoint_every=100)
    assert trained_steps(tmp_path) == 704  # the first update past 700


def test_a_baseline_that_solves_nothing_shows_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="solved none of 1 episodes"):
        run(tmp_path, 8, shown=0.5, demonstrations=1, options={**OPTIONS, "max_steps": 4})


def test_demonstrations_that_nothing_uses_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="Set shown or imitation"):
        run(tmp_path, 8, demonstrations=3)


def test_the_command_line_takes_hyper_parameters_by_name(tmp_path: Path) -> None:
    from interverse.cli.train import parsed, train

    words = ["--task", "trifinger/pushing-v1", "--out", str(tmp_path), "--hyper", "horizn=4"]
    with pytest.raises(UnknownNameError, match="Did you mean 'horizon'"):
        train(parsed(words))


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
    starts = curriculum_starts("trifinger/towers-v1", paper_curriculum(0), 1, seed=0, options={})
    with pytest.raises(InvalidValueError, match="no device form"):
        make_arena("trifinger/towers-v1", starts, num_worlds=2, device="torch")


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
