"""Laws of worlds on Torch tensors and on Warp's CPU device; `device_laws` runs them on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import interverse as iv

pytest.importorskip("torch")

from tests.sim.device_laws import GRIDS, IDS, LAWS, check

BROKEN: dict[str, str] = dict.fromkeys(LAWS, "")


@pytest.mark.parametrize("name", GRIDS)
def test_grids_on_tensors_keep_the_laws(name: str) -> None:
    assert check(name, "torch") == BROKEN


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name in IDS if name not in GRIDS])
def test_worlds_on_warp_keep_the_laws(name: str) -> None:
    pytest.importorskip("mujoco_warp")
    assert check(name, "warp") == BROKEN


def test_solved_episodes_count_as_equal_whatever_their_last_decimals() -> None:
    from tests.sim.device_parity import two_samples

    solved, lost = np.full(32, 0.99992454), np.linspace(0.0, 0.9, 32)
    one, other = np.concatenate([solved, lost]), np.concatenate([solved - 3e-7, lost])
    assert two_samples(one, other)["p"] == 1.0
    assert two_samples(one, other - 0.2)["p"] < 0.001


EPISODES = 96  # half a second each on Warp's CPU device


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "pair",
    [
        ("scripted", "pushing", "P5"),
        ("pushing_2", "pushing", "P5"),
        ("picking_2", "picking", "P10"),
    ],
    ids=lambda pair: pair[0],
)
def test_policies_score_alike_on_warp(pair: tuple[str, str, str]) -> None:
    pytest.importorskip("mujoco_warp")
    from tests.sim.device_parity import agrees, compare

    found = compare(pair, "warp", EPISODES, max_steps=334)
    assert found["episodes"] == EPISODES
    assert agrees(found), found
    assert found["cpu"] > 0.9, "a policy that does nothing would agree too"


def drawn(rng: np.random.Generator, failing: float) -> dict[str, np.ndarray]:
    """Scores like those of a trained policy on P5, of which a share fails altogether."""
    solved = np.where(rng.random(EPISODES) < 0.97, 0.99992454, rng.uniform(0.0, 0.9, EPISODES))
    scores = np.where(rng.random(EPISODES) < failing, 0.0, solved)
    return {"last_fractional_success": scores, "diverged": np.zeros(EPISODES, bool)}


def test_the_comparison_would_notice_a_policy_that_fails_in_a_third_of_the_episodes() -> None:
    from tests.sim.device_parity import agrees, beside

    rng = np.random.default_rng(0)
    shares = {
        failing: np.mean([agrees(beside(drawn(rng, 0.0), drawn(rng, failing))) for _ in range(200)])
        for failing in (0.0, 0.1, 1 / 3)
    }
    assert shares[0.0] > 0.9
    assert shares[0.1] < 0.2
    assert shares[1 / 3] == 0.0


def test_episodes_that_broke_down_are_left_out_of_the_comparison_and_counted() -> None:
    from tests.sim.device_parity import agrees, beside, table

    rng = np.random.default_rng(0)
    one = drawn(rng, 0.0)
    other = {name: rows.copy() for name, rows in one.items()}
    other["diverged"][:20], other["last_fractional_success"][:20] = True, 0.0
    found = beside(one, other)
    assert (found["episodes"], found["diverged"], found["cpu"]) == (76, 20, found["device"])
    assert not agrees(found), "a fifth of the episodes is no detail"
    row = {"policy": "pushing_2", "task": "pushing", "protocol": "P0", "moved_by_m": 1e-3, **found}
    said = table([row]).splitlines()
    assert "P0* " in said[1]
    assert said[1].endswith("APART, 20 more broke down")
    assert said[2:] == ["P0*: the block is moved by up to 1 mm", "0 of 1 agree"]


def test_evaluate_and_rollout_read_tensors_that_numpy_cannot(monkeypatch) -> None:
    """As on a GPU, where a tensor must be brought to the host before NumPy reads it."""
    import torch

    def refuse(self, *given, **named):
        raise TypeError("NumPy cannot read this device")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
    name = "blocks/observed-3-v1"
    results = iv.evaluate("random", name, episodes=2, max_steps=2, device="torch")
    assert len(results) > 0
    env = iv.make(name, device="torch", max_steps=2)
    fact = iv.rollout(env, "random", seed=1)
    assert iv.counterfactual(fact, {}).fingerprint == fact.fingerprint
    env.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_device_draws_every_world_at_once_as_the_cpu_draws_each() -> None:
    pytest.importorskip("mujoco_warp")
    drawn = []
    for device in ("cpu", "warp"):
        env = iv.make_vec(
            "trifinger/pushing-v1",
            num_envs=2,
            device=device,
            observation_mode="pixel",
            image_size=48,
            contact="convex",
        )
        env.reset(seed=0)
        env.unwrapped.do({"block_0/color": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])})
        env.unwrapped.do({"goal_0/cylindrical_position": (0.1, 0.0, 0.0325)}, worlds=[1])
        seen = env.step(np.zeros((2, 9), np.float32))[0]
        drawn.append(np.asarray(seen).astype(float))
        env.close()
    mine, theirs = drawn
    assert mine.shape == theirs.shape == (2, 6, 48, 48, 3)
    assert np.abs(mine - theirs).mean(axis=(2, 3, 4)).max() < 3.0, "but for edges they agree"
    assert np.abs(mine[0] - mine[1]).mean() > 0.5, "the worlds look different"
    apart = (mine[0] - mine[1]) - (theirs[0] - theirs[1])
    assert np.abs(apart).mean() < 0.5 * np.abs(mine[0] - mine[1]).mean()


def test_the_wall_is_a_tube_that_no_light_meets_and_fingers_are_closed() -> None:
    pytest.importorskip("mujoco_warp")
    from interverse.sim.warp_render import _are_closed, _shadowless, _tube

    env = iv.make("trifinger/pushing-v1")
    model = env.unwrapped.world._physics.model
    env.close()
    wall = model.mesh("stage").id
    assert _shadowless(model) == 1 << wall
    assert _are_closed(model)
    tube = _tube(model)
    assert (tube.mesh, tube.faces) == (wall, -1)
    assert tube.inner < tube.outer < 1.02 * tube.inner < 2 * tube.half
