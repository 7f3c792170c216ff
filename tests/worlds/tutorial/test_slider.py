"""tutorial/slider-v1: its physics against closed forms, its interventions, NumPy against Torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import interverse as iv
from interverse.envs.values import to_numpy
from interverse.worlds.tutorial.variables import START_SPREAD, TABLE

ID = "tutorial/slider-v1"
STEP = 0.04  # s
STILL = np.zeros(2, dtype=np.float32)
EAST = np.array([1.0, 0.0], dtype=np.float32)


def make(**do: Any) -> Any:
    env = iv.make(ID, threads=1)
    env.reset(seed=0, options={"do": do})
    return env


def run(env: Any, action: np.ndarray, steps: int) -> None:
    for _ in range(steps):
        env.step(action)


# -------------------------------------------------------------------------------- physics


@pytest.mark.parametrize("friction", [0.2, 0.5])
@pytest.mark.parametrize("mass", [0.3, 0.9])
@pytest.mark.parametrize("gravity", [-9.81, -5.0])
def test_slides_as_coulomb_says(friction: float, mass: float, gravity: float) -> None:
    env = make(**{"box/friction": friction, "box/mass": mass, "gravity": gravity, "push": 8.0})
    run(env, STILL, 10)
    heights = []
    net = 3.0 * mass  # of the push, after friction, N
    action = np.array([(net - friction * mass * gravity) / 8.0, 0.0], dtype=np.float32)
    for _ in range(10):
        env.step(action)
        heights.append(env.values["box/position"][2])
    np.testing.assert_allclose(env.values["box/velocity"][0], 3.0 * 10 * STEP, rtol=0.03)
    np.testing.assert_allclose(heights, 0.05, atol=1e-3)  # it neither hops nor sinks


@pytest.mark.parametrize("friction", [0.2, 0.4, 0.6])
def test_brakes_as_coulomb_says(friction: float) -> None:
    env = make(**{"box/friction": friction})
    run(env, STILL, 10)
    start = env.values["box/position"][1]
    env.do({"box/velocity": [0.0, -1.0, 0.0]}, check=False)
    run(env, STILL, 40)
    way = start - env.values["box/position"][1]
    np.testing.assert_allclose(way, 1.0 / (2 * friction * 9.81), rtol=0.05)  # contacts are soft
    assert np.all(np.abs(env.values["box/velocity"]) < 1e-3)


def test_rests_below_the_friction_limit() -> None:
    env = make(**{"box/friction": 0.6, "box/mass": 0.9, "push": 4.0})
    run(env, STILL, 10)
    before = env.values["box/position"]
    run(env, EAST, 50)
    assert np.all(np.abs(env.values["box/position"] - before) < 1e-3)


def test_falls_as_galileo_says() -> None:
    env = make(**{"gravity": -6.0})
    place = env.values["box/position"] + [0.0, 0.0, 0.5]
    env.do({"box/position": place}, check=False)
    run(env, STILL, 8)
    substeps, dt = 80, 0.004
    # semi-implicit Euler: z = z0 + g dt^2 n (n + 1) / 2
    expected = place[2] - 6.0 * dt * dt * substeps * (substeps + 1) / 2
    np.testing.assert_allclose(env.values["box/position"][2], expected, rtol=1e-12)
    np.testing.assert_allclose(env.values["box/velocity"], [0, 0, -6.0 * substeps * dt], atol=1e-12)


# ------------------------------------------------------------------ episodes and observation


def test_starts_are_spread_around_the_default_and_addressed() -> None:
    venv = iv.make_vec(ID, num_envs=64)
    venv.reset(seed=5)
    places = venv.values["box/position"]
    assert np.all(np.abs(places[:, :2]) <= START_SPREAD)
    assert np.ptp(places[:, 0]) > START_SPREAD
    np.testing.assert_array_equal(places[:, 2], 0.05)
    env = iv.make(ID)
    env.reset(seed=5 + 17)
    np.testing.assert_array_equal(env.values["box/position"], places[17])


def test_the_reward_is_minus_the_distance() -> None:
    env = make()
    _, reward, terminated, truncated, info = env.step(EAST)
    away = env.values["box/position"][:2] - env.values["goal/position"]
    np.testing.assert_allclose(reward, -np.hypot(*away), rtol=1e-15)
    assert (terminated, truncated, info["success"]) == (False, False, False)


def test_an_episode_is_a_hundred_steps_and_the_goal_can_be_reached() -> None:
    env = make()
    for step in range(100):
        gap = env.values["goal/position"] - env.values["box/position"][:2]
        wish = 20.0 * gap - 5.0 * env.values["box/velocity"][:2]
        action = np.clip(wish, -1.0, 1.0).astype(np.float32)
        _, _, terminated, truncated, info = env.step(action)
        assert not terminated
        assert truncated == (step == 99)
    assert info["success"]


# -------------------------------------------------------------------------- interventions


def test_a_new_size_reseats_the_box() -> None:
    env = make()
    x, y, _ = env.values["box/position"]
    outcome = env.do({"box/size": [0.1, 0.12, 0.16]})
    assert outcome.changed == {"box/size", "box/position"}
    np.testing.assert_array_equal(env.values["box/position"], [x, y, 0.08])
    assert env.unwrapped.graph.effects_now("box/size") == {"box/position"}


def test_a_given_place_wins_over_the_reseating() -> None:
    env = make()
    env.do({"box/size": [0.1, 0.1, 0.12], "box/position": [0.1, 0.1, 0.2]}, check=False)
    np.testing.assert_array_equal(env.values["box/position"], [0.1, 0.1, 0.2])


INFEASIBLE = [
    {"box/position": [TABLE, 0.0, 0.05]},  # over the edge
    {"box/position": [0.0, 0.0, 0.02]},  # sunk
    {"box/position": [0.5, 0.0, 0.2], "box/size": [0.3, 0.3, 0.3], "box/mass": 2.0},
]


@pytest.mark.parametrize("values", INFEASIBLE)
def test_a_refused_intervention_leaves_every_bit(values: dict[str, Any]) -> None:
    env, twin = make(), make()
    run(env, EAST, 3)
    run(twin, EAST, 3)
    before = env.snapshot().arrays
    with pytest.raises(iv.InterventionError, match="hang over the table's edge or be sunk"):
        env.do(values, check=False)
    after = env.snapshot().arrays
    for name, rows in before.items():
        np.testing.assert_array_equal(after[name], rows)
    for _ in range(20):
        for mine, theirs in zip(env.step(EAST), twin.step(EAST), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_infeasible_worlds_of_a_batch_stay_and_the_others_change() -> None:
    venv = iv.make_vec(ID, num_envs=3)
    venv.reset(seed=0)
    before = venv.values["box/position"]
    places = np.array([[0.1, 0.0, 0.05], [0.59, 0.0, 0.05], [-0.1, 0.0, 0.05]])
    outcome = venv.do({"box/position": places}, check=False)
    np.testing.assert_array_equal(outcome.applied, [True, False, True])
    assert list(outcome.reasons) == [1]
    after = venv.values["box/position"]
    np.testing.assert_array_equal(after[[0, 2]], places[[0, 2]])
    np.testing.assert_array_equal(after[1], before[1])


def test_an_infeasible_start_is_refused() -> None:
    env, start = iv.make(ID), {"box/size": [0.16, 0.16, 0.16], "box/position": [0.53, 0.0, 0.08]}
    with pytest.raises(iv.InterventionError, match="hang over the table's edge"):
        env.reset(seed=0, options={"do": start})
    with pytest.raises(iv.InterverseError, match="reset"):
        env.step(EAST)
    fresh = make()
    again, _ = env.reset(seed=0)
    np.testing.assert_array_equal(again, fresh.reset(seed=0)[0])


def test_a_picture_shows_size_and_colour() -> None:
    pytest.importorskip("OpenGL")
    env = iv.make(ID, render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    env.do({"box/color": [0.1, 0.2, 0.45], "box/size": [0.16, 0.16, 0.16]})
    after = env.render()
    assert before.shape == (240, 320, 3)
    assert before.dtype == np.uint8
    blue = [int(np.sum(p[..., 2].astype(int) - p[..., 0] > 15)) for p in (before, after)]
    assert blue[1] > blue[0] + 300


# ------------------------------------------------------------------------ NumPy and Torch


def test_a_pushed_box_stays_on_the_table():
    venv = iv.make_vec("tutorial/slider-v1", 4, max_steps=400)
    venv.reset(seed=0)
    strongest = {"push": 8.0, "box/mass": 0.3, "box/friction": 0.2}
    venv.do(strongest, worlds=[2, 3])
    push = np.array([[1, 0], [-1, 1], [1, 1], [0, -1]], dtype=np.float32)
    for _ in range(300):
        venv.step(push)
        for name in ("box/position", "box/velocity"):
            inside = venv.variables[name].domain.inside(venv.values[name])
            assert inside.all(), (name, venv.values[name])
    assert np.abs(venv.values["box/position"]).max() > 0.55


@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_no_intervention_drives_the_box_out_of_its_domain(device):
    extremes = [
        {"push": 20.0, "box/mass": 0.01, "box/friction": 0.0},
        {"gravity": 0.0, "box/velocity": [0.0, 0.0, 10.0]},
        {"gravity": -20.0, "box/velocity": [10.0, -10.0, 10.0], "box/mass": 10.0},
        {"gravity": 0.0, "push": 20.0, "box/mass": 0.01, "box/velocity": [-10.0, 0.0, 10.0]},
    ]
    venv = iv.make_vec("tutorial/slider-v1", len(extremes), device=device)
    venv.reset(seed=0)
    for world, values in enumerate(extremes):
        assert venv.do(values, worlds=[world], check=False).applied[world]
    push = np.array([[1, -1], [0, 0], [1, 1], [-1, 1]], dtype=np.float32)
    edges = set()
    for _ in range(40):
        venv.step(push)
        for name in ("box/position", "box/velocity"):
            values = to_numpy(venv.values[name])
            domain = venv.variables[name].domain
            assert domain.inside(values).all(), (name, values)
            edges |= {name} if (np.abs(values) == domain.high).any() else set()
    assert edges == {"box/position", "box/velocity"}  # they do try to leave
