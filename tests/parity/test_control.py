"""Control against the original's recorded numbers and against the stock suite in this process.

Deviations we chose: each factor of a look has a stream of its own (`legacy_draws=True` has the
original's two); switches of floor and sky work for negative seeds too; a body that would vanish is
redrawn; which picture a number means does not depend on the machine.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
from interverse.worlds import WORLDS
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.looks import turn_from_degrees, turn_from_tilt
from interverse.worlds.control.original import original_draws
from interverse.worlds.control.suite import suite
from tests.conformance.cases import TEXTURES

RECORDED = json.loads((Path(__file__).parent / "data" / "remastered.json").read_text())
IDS = [name for name in WORLDS if name.startswith("control/")]
RETURNS = RECORDED["fixed_action_returns"]["tasks"]
SAMPLED = RECORDED["sampled_values"]
RANGES = RECORDED["domain_ranges"]
STEPS = 100
LOOKS = (0, 1, 4242, -5)


def state_env(world_id, **options):
    return iv.make(world_id, observation="state", textures=str(TEXTURES), **options)


def names_of(world_id):
    options = WORLDS[world_id].options
    return options["domain"], options["task"]


def actions(kind, dimension):
    if kind == "sine":
        return np.sin(0.1 * np.arange(STEPS)[:, None] + np.arange(dimension)[None])
    return np.random.RandomState(12345).uniform(-1, 1, size=(1000, dimension))[:STEPS]


def test_there_are_24_tasks():
    assert len(IDS) == 24
    registered = {
        key.replace("-", "_") for key in RETURNS if RETURNS[key]["registered_in_original"]
    }
    assert {f"control/{key}-v1" for key in registered} <= set(IDS)


@pytest.mark.parametrize("world_id", IDS)
def test_states_and_rewards_equal_the_stock_suite(world_id):
    """Bit for bit, for four looks, with one episode played before to leave traces.

    The first look's episode is begun by the task, the others go back to its start.
    """
    domain, task = names_of(world_id)
    stock = suite.load(domain, task, task_kwargs={"random": 7})
    env = state_env(world_id, dynamics_seed=7)
    env.reset(seed=1, options={"dynamics_seed": 3})
    moves = actions("uniform", env.action_space.shape[0])[:12]
    env.step(moves[0])
    stock.reset()
    fact = [(stock.physics.data.qpos.copy(), stock.physics.data.qvel.copy(), 0.0)]
    for move in moves:
        reward = stock.step(move).reward
        fact.append((stock.physics.data.qpos.copy(), stock.physics.data.qvel.copy(), reward))
    stock_seen = stock.task.get_observation(stock.physics)
    for look in LOOKS:
        env.reset(seed=0, options={"visual_seed": look})
        for t, (qpos, qvel, reward) in enumerate(fact):
            earned = env.step(moves[t - 1])[1] if t else 0.0
            assert env.values["qpos"].tobytes() == qpos.tobytes(), (look, t)
            assert env.values["qvel"].tobytes() == qvel.tobytes(), (look, t)
            assert earned == reward, (look, t)
        seen = np.concatenate([np.ravel(part) for part in stock_seen.values()])
        assert env.observe().tobytes() == seen.astype(np.float64).tobytes(), look
    env.close()


@pytest.mark.parametrize("kind", ["sine", "uniform_rs12345"])
@pytest.mark.parametrize("key", [key for key in RETURNS if "pure_state" not in key])
def test_recorded_returns(key, kind):
    env = state_env(f"control/{key.replace('-', '_')}-v1", dynamics_seed=0, visual_seed=4242)
    env.reset(seed=0)
    recorded = RETURNS[key]
    np.testing.assert_allclose(env.values["qpos"], recorded["init_qpos_seed0"], atol=1e-11)
    assert env.observation_space.shape == (recorded["obs_dim_state"],)
    expected = recorded[kind]["cumulative_return_mujoco_3_17"]
    total = 0.0
    for t, move in enumerate(actions(kind, recorded["action_dim"]), start=1):
        total += env.step(move)[1]
        if str(t) in expected:
            assert total == pytest.approx(expected[str(t)], abs=1e-9), t
    env.close()


def expected_draws(seed, domain):
    shared, own = SAMPLED[seed]["shared"], SAMPLED[seed]["domains"][domain]
    expected = {
        "floor/texture": shared.get("floor_index_of_383", -1),
        "background/texture": shared.get("background_index_of_119", -1),
        "body/color": shared["body_rgba"],
        "effector/color": shared["effector_rgba"],
        "target/color": shared["target_rgba"],
        "light/ambient": shared["headlight_ambient"],
        "light/diffuse": shared["headlight_diffuse"],
        "light/specular": shared["headlight_specular"],
        "camera/position": [own[f"cam_{axis}"] for axis in "xyz"],
    }
    if "reflectance" in shared:
        expected["reflectance"] = shared["reflectance"]
    for part, short in (("background", "sky"), ("floor", "floor")):
        if f"{short}_rgb1" in shared:
            expected |= {f"{part}/color_{i}": shared[f"{short}_rgb{i}"] for i in (1, 2)}
    return expected | _own_expected(own)


def check_draws(ours, expected):
    checked = [name for name in expected if name in ours]
    assert len(checked) >= 6
    for name in checked:
        np.testing.assert_allclose(ours[name], expected[name], atol=2e-9, err_msg=name)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("seed", SAMPLED)
def test_recorded_draws_of_the_original(seed, domain):
    """All numbers that it draws for six seeds, from the same two streams."""
    check_draws(original_draws(int(seed), domain), expected_draws(seed, domain))


@pytest.mark.parametrize("domain", DOMAINS)
def test_legacy_looks_are_the_original_s_in_a_world_with_the_built_in_pictures(domain):
    world_id = f"control/{domain}_{DOMAINS[domain].tasks[0]}-v1"
    env = iv.make(world_id, observation="state", legacy_draws=True)
    for seed in SAMPLED:
        env.reset(seed=0, options={"visual_seed": int(seed)})
        check_draws(env.values, expected_draws(seed, domain))
    env.close()


def test_legacy_looks_with_fewer_pictures_differ_in_the_pictures_alone():
    few = state_env(IDS[1], legacy_draws=True)
    many = iv.make(IDS[1], observation="state", legacy_draws=True)
    for seed in SAMPLED:
        for env in (few, many):
            env.reset(seed=0, options={"visual_seed": int(seed)})
        for name in few.variables:
            if not name.endswith(("/texture", "/kind")):
                np.testing.assert_array_equal(few.values[name], many.values[name], err_msg=name)


def _own_expected(own):
    out = {}
    if "light_x" in own:
        out["light/position"] = [own[f"light_{axis}"] for axis in "xyz"]
    for name in ("diffuse", "specular"):
        if f"light_{name}_base" in own:
            base = own[f"light_{name}_base"]
            out[f"light/lamp_{name}"] = [base + own[f"light_{name}_d{c}"] for c in "rgb"]
    if "euler_x" in own:
        out["camera/rotation"] = turn_from_degrees(np.array([own[f"euler_{a}"] for a in "xyz"]))
    if "tilt" in own:
        out["camera/rotation"] = turn_from_tilt(own["tilt"])
    return out


@pytest.mark.parametrize("domain", DOMAINS)
def test_draws_lie_in_the_recorded_ranges_and_fill_them(domain):
    from interverse.worlds.control.gallery import open_gallery
    from interverse.worlds.control.looks import draw_look

    gallery, ranges = open_gallery(str(TEXTURES)), RANGES[domain]
    looks = [draw_look(domain, seed, gallery) for seed in range(1, 400)]
    spans = {
        f"{short}_{axis}": np.array([look[name][i] for look in looks])
        for short, name in (("cam", "camera/position"), ("light", "light/position"))
        for i, axis in enumerate("xyz")
    }
    spans["reflectance"] = np.array([float(look["reflectance"]) for look in looks])
    ranges = ranges | {"reflectance": RECORDED["shared_ranges"]["reflectance"]}
    for name, values in spans.items():
        if name not in ranges:  # a lamp that stays
            assert np.ptp(values) == 0.0
            continue
        low, high = sorted(ranges[name])
        assert low <= values.min() <= low + 0.05 * (high - low), name
        assert high - 0.05 * (high - low) <= values.max() <= high, name
    alphas = np.array([look["body/color"][3] for look in looks])
    low, high = RECORDED["shared_ranges"]["alpha"]
    assert low <= alphas.min() < alphas.max() <= high
    for name in ("ambient", "diffuse", "specular"):
        (low, high), delta = (RECORDED["shared_ranges"][f"{name}_{k}"] for k in ("base", "delta"))
        values = np.array([look[f"light/{name}"] for look in looks])
        assert low + delta[0] <= values.min() < values.max() <= high + delta[1]


@pytest.mark.parametrize("domain", DOMAINS)
def test_defaults_are_the_recorded_ones(domain):
    recorded, shared = RANGES[domain], RECORDED["shared_ranges"]["defaults"]
    env = state_env(f"control/{domain}_{DOMAINS[domain].tasks[0]}-v1")
    env.reset(seed=0)
    expected = {
        "camera/position": recorded["camera_default"],
        "light/position": recorded["light_default"],
        "body/color": shared["body_rgba"],
        "reflectance": shared["reflectance"],
        "light/ambient": [shared["ambient"]] * 3,
        "light/diffuse": [shared["diffuse"]] * 3,
        "light/specular": [shared["specular"]] * 3,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(env.values[name], value, atol=1e-12, err_msg=name)
    model = env.world._stages[0].physics.model
    half = model.geom_size[model.name2id(DOMAINS[domain].floor, "geom")][:2]
    np.testing.assert_allclose(half, recorded["floor_half_size"])
    repeat = model.mat_texrepeat[model.name2id("grid", "material")]
    np.testing.assert_allclose(repeat, shared["texrepeat"])
    env.close()
