"""The world of blocks: what follows what, refusals, forms, devices, and an honest graph."""

import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError, UnknownNameError
from interverse.core.rng import Noise
from interverse.sim import raster
from interverse.worlds.blocks.options import MODES
from interverse.worlds.palette import NEW_QUALITATIVE, QUALITATIVE

EVERY_MODE = [(setting, mode) for setting, modes in MODES.items() for mode in modes]


def values(env):
    return dict(env.unwrapped.values)


def changed(before, after):
    return {name for name in before if not np.array_equal(before[name], after[name])}


# ------------------------------------------------------------------ settings and modes


@pytest.mark.parametrize(("setting", "mode"), EVERY_MODE)
@pytest.mark.parametrize("legacy", [False, True])
def test_every_mode_plays(setting, mode, legacy):
    venv = iv.make_vec(f"blocks/{setting}-4-v1", num_envs=200, mode=mode, legacy=legacy)
    observation, info = venv.reset(seed=0)
    assert venv.observation_space.contains(observation)
    assert not info["invalid_push"].any()
    seen = values(venv)
    weights = np.stack([seen[f"block_{i}/weight"] for i in range(4)], axis=1)
    shapes = np.stack([seen[f"block_{i}/shape"] for i in range(4)], axis=1)
    if setting == "observed":
        assert (weights == [4, 3, 2, 1]).all()
    elif not (legacy and mode.startswith("FewShot")):
        assert (np.diff(weights, axis=1) > 0).all()
    expected = {0, 1, 2, 3} if setting == "fixed_unobserved" else {0, 1, 2}
    assert set(np.unique(shapes)) == (set(range(6)) if mode == "ZeroShotShape" else expected)
    venv.step(np.zeros(200, dtype=np.int64))


def test_observed_blocks_are_darkest_first():
    venv = iv.make_vec("blocks/observed-5-v1", num_envs=100)
    venv.reset(seed=0)
    light = np.stack([values(venv)[f"block_{i}/color"].sum(axis=1) for i in range(5)], axis=1)
    assert (np.diff(light, axis=1) > 0).all()


def test_unobserved_colours_are_palette_entries_and_weights_their_index():
    venv = iv.make_vec("blocks/unobserved-5-v1", num_envs=300)
    venv.reset(seed=0)
    seen = values(venv)
    for i in range(5):
        weights = seen[f"block_{i}/weight"].astype(int)
        np.testing.assert_array_equal(seen[f"block_{i}/color"], QUALITATIVE["Sets"][weights])


def test_few_shot_shows_new_colours():
    venv = iv.make_vec("blocks/unobserved-5-v1", num_envs=300, mode="FewShot-v3", cmap="Pastels")
    venv.reset(seed=0)
    seen = values(venv)
    indices = np.stack([seen[f"block_{i}/palette_index"] for i in range(5)], axis=1)
    assert len(np.unique(indices)) == 12
    new = np.unique(indices[indices >= 9])
    assert len(new) == 3
    assert new.max() < 9 + len(NEW_QUALITATIVE["Pastels"])


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"objects": 0}, InvalidValueError, "objects is 0. Allowed: a whole number from 1 to 25"),
        ({"objects": 26}, InvalidValueError, "objects is 26"),
        ({"objects": True}, InvalidValueError, "objects is True"),
        ({"objects": 10, "setting": "unobserved"}, InvalidValueError, "from 1 to 9"),
        ({"mode": "FewShot-v1"}, UnknownNameError, "modes of setting 'observed'"),
        ({"mode": "train"}, UnknownNameError, "Did you mean 'Train'"),
        ({"cmap": "Sets"}, UnknownNameError, "Allowed: Blues, Greens, Reds"),
        ({"setting": "seen"}, UnknownNameError, "unknown setting 'seen'"),
        ({"target_steps": -1}, InvalidValueError, "target_steps is -1"),
        ({"palette_seed": -1}, InvalidValueError, "palette_seed"),
        ({"legacy": 1}, InvalidValueError, "legacy is 1"),
        ({"plain": None}, InvalidValueError, "plain is None"),
        ({"objectz": 3}, UnknownNameError, "Did you mean 'objects'"),
    ],
)
def test_bad_options_are_named(options, error, match):
    with pytest.raises(error, match=match):
        iv.make("blocks/observed-3-v1", **options)


# ------------------------------------------------------------------- interventions


def test_an_observed_colour_follows_its_weight_until_it_is_cut_loose():
    env = iv.make("blocks/observed-3-v1")
    env.reset(seed=0)
    before = values(env)
    outcome = env.do({"block_2/weight": 3.0})
    assert outcome.changed == {"block_2/weight", "block_2/color"}
    env.do({"block_2/weight": 1.0})
    assert changed(before, values(env)) == set()  # the same noise, hence the same colour
    assert env.do({"block_2/color": [1.0, 0.0, 0.0]}).changed == {"block_2/color"}
    assert env.do({"block_2/weight": 3.0}).changed == {"block_2/weight"}
    env.reset(seed=0)
    assert changed(before, values(env)) == set()


def test_unobserved_weight_and_colour_follow_the_palette_index():
    env = iv.make("blocks/unobserved-3-v1")
    env.reset(seed=0)
    now = int(env.values["block_1/palette_index"])
    other = (now + 4) % 9
    outcome = env.do({"block_1/palette_index": other})
    assert outcome.changed == {f"block_1/{f}" for f in ("palette_index", "weight", "color")}
    assert env.values["block_1/weight"] == other
    assert env.do({"block_1/weight": 55.5}).changed == {"block_1/weight"}
    assert env.do({"block_1/palette_index": now}).changed == {
        "block_1/palette_index",
        "block_1/color",
    }
    assert env.values["block_1/weight"] == 55.5
    with pytest.raises(iv.InterventionError, match="block_1/palette_index is 99"):
        env.do({"block_1/palette_index": 99})


def test_shapes_beyond_the_published_need_check_off():
    env = iv.make("blocks/observed-3-v1")
    env.reset(seed=0)
    with pytest.raises(iv.InterventionError, match="check=False"):
        env.do({"block_0/shape": 7})
    env.do({"block_0/shape": 7}, check=False)
    assert env.values["block_0/shape"] == 7


def test_two_blocks_in_one_cell_are_refused_by_name():
    env = iv.make("blocks/observed-3-v1")
    env.reset(seed=0)
    before = env.snapshot().arrays
    cell = env.values["block_2/position"]
    for field in ("position", "target"):
        cell = env.values[f"block_2/{field}"]
        with pytest.raises(iv.InterventionError, match=f"block_0/{field} and block_2/{field}"):
            env.do({f"block_0/{field}": cell})
    for name, array in env.snapshot().arrays.items():
        np.testing.assert_array_equal(array, before[name])
    with pytest.raises(iv.InterventionError, match="block_0/position is"):
        env.do({"block_0/position": [0, 5]})


def test_two_blocks_can_swap_places_at_once():
    env = iv.make("blocks/observed-3-v1")
    env.reset(seed=0)
    a, b = env.values["block_0/position"], env.values["block_1/position"]
    env.do({"block_0/position": b, "block_1/position": a})
    np.testing.assert_array_equal(env.values["block_0/position"], b)


def test_masked_worlds_change_and_infeasible_ones_are_told():
    venv = iv.make_vec("blocks/observed-3-v1", num_envs=64)
    venv.reset(seed=0)
    before = values(venv)
    mask = np.arange(64) % 2 == 0
    outcome = venv.do({"block_0/position": [2, 2]}, worlds=mask)
    others = np.stack([before[f"block_{i}/position"] for i in (1, 2)], axis=1)
    taken = (others == 2).all(axis=2).any(axis=1)
    assert taken[mask].any()
    np.testing.assert_array_equal(outcome.applied, mask & ~taken)
    assert set(outcome.reasons) == set(np.flatnonzero(mask & taken))
    after = values(venv)["block_0/position"]
    assert (after[outcome.applied] == 2).all()
    np.testing.assert_array_equal(
        after[~outcome.applied], before["block_0/position"][~outcome.applied]
    )


def test_a_weight_set_at_reset_is_in_force_when_the_target_is_drawn():
    light = {"block_0/weight": 0.0}
    venv = iv.make_vec("blocks/observed-3-v1", num_envs=500, target_steps=40)
    venv.reset(seed=0)
    before = values(venv)
    venv.reset(seed=0, options={"do": light})
    after = values(venv)
    differing = changed(before, after)
    assert {"block_0/weight", "block_0/color", "block_1/target"} <= differing
    assert differing <= {"block_0/weight"} | venv.graph.effects_now("block_0/weight")
    venv.reset(seed=0)
    assert not any("target" in name for name in venv.do(light).changed)


def test_a_refused_start_leaves_the_default_one():
    env = iv.make("blocks/observed-3-v1")
    env.reset(seed=0)
    start, cell = values(env), env.values["block_1/position"]
    with pytest.raises(iv.InterventionError, match="block_0/position and block_1/position"):
        env.reset(seed=0, options={"do": {"block_0/position": cell, "block_0/weight": 9.0}})
    assert changed(start, values(env)) == set()


def test_default_positions_hold_at_every_reset():
    env = iv.make("blocks/observed-3-v1", objects=1, defaults={"block_0/position": [4, 1]})
    for seed in range(5):
        env.reset(seed=seed)
        assert env.values["block_0/position"].tolist() == [4, 1]


# --------------------------------------------------------------------------- graph


def test_one_block_pushes_nobody():
    graph = iv.make("blocks/observed-3-v1", objects=1).graph
    assert graph.children("block_0/weight") == {"block_0/color"}
    assert graph.parents("block_0/position'") == {"block_0/position"}


# ----------------------------------------------------------------- forms and devices


def test_the_plain_form_has_four_moves_no_target_and_no_reward():
    env = iv.make("blocks/observed-3-v1", plain=True)
    observation, info = env.reset(seed=0)
    assert set(observation) == {"image", "state"}
    assert set(info) == {"invalid_push"}
    assert env.action_space.n == 12
    assert not any("target" in name for name in env.variables)
    env.do({"block_1/position": [2, 2], "block_0/position": [0, 0], "block_2/position": [4, 4]})
    for move, cell in ((0, [1, 2]), (1, [1, 3]), (2, [2, 3]), (3, [2, 2])):
        observation, reward, *_ = env.step(4 + move)
        assert observation["state"][1].tolist() == cell
        assert reward == 0


def test_the_episode_is_truncated_at_100_steps_and_never_terminated():
    env = iv.make("blocks/observed-3-v1")
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(100)]
    assert [truncated for _, truncated in ends] == [False] * 99 + [True]
    assert not any(terminated for terminated, _ in ends)


def test_no_target_steps_start_at_the_target():
    env = iv.make("blocks/observed-3-v1", target_steps=0)
    observation, info = env.reset(seed=0)
    assert info["success"]
    np.testing.assert_array_equal(observation["image"], observation["target"])


def test_the_target_picture_shows_the_blocks_at_their_targets():
    env = iv.make("blocks/observed-4-v1")
    observation, _ = env.reset(seed=3)
    goals = {f"block_{i}/position": env.values[f"block_{i}/target"] for i in range(4)}
    outcome = env.do(goals)
    np.testing.assert_array_equal(outcome.observation["image"], observation["target"])
    painted = env.do({"block_0/color": [0.2, 0.9, 0.1]}).observation
    np.testing.assert_array_equal(painted["image"], painted["target"])
    assert (painted["target"] != observation["target"]).any()


def test_a_grid_full_of_blocks_does_not_move():
    env = iv.make("blocks/observed-3-v1", objects=25)
    observation, _ = env.reset(seed=0)
    after, reward, _, _, info = env.step(5 * 3 + 2)
    assert info["success"]
    assert reward == 0
    np.testing.assert_array_equal(after["state"], observation["state"])


# ---------------------------------------------------------------- baselines and goals


def test_the_scripted_policy_is_greedy_and_reaches_near_targets():
    venv = iv.make_vec("blocks/observed-5-v1", num_envs=300, target_steps=5)
    observation, _ = venv.reset(seed=0)
    policy = venv.world.scripted_policy()
    for _ in range(5):
        observation, _, _, _, info = venv.step(policy(observation))
    assert info["success"].mean() > 0.97
    assert iv.make("blocks/observed-3-v1", plain=True).world.scripted_policy() is None


def test_sampled_goals_are_where_random_play_leads_and_can_be_set():
    venv = iv.make_vec("blocks/observed-3-v1", num_envs=40)
    venv.reset(seed=0)
    chosen = np.arange(0, 40, 2)
    noise = Noise(np.full(20, 5), np.arange(20), np.zeros(20, dtype=np.int64))
    goals = venv.world.sample_goal(chosen, noise, "A")
    assert set(goals) == {f"block_{i}/target" for i in range(3)}
    outcome = venv.do(goals, worlds=chosen)
    np.testing.assert_array_equal(np.flatnonzero(outcome.applied), chosen)
    with pytest.raises(InvalidValueError, match="no goal sampler"):
        iv.make("blocks/observed-3-v1", plain=True).world.sample_goal(chosen[:1], noise, "A")


def test_scenes_are_what_the_pictures_are_drawn_from():
    venv = iv.make_vec("blocks/unobserved-4-v1", num_envs=6)
    observation, _ = venv.reset(seed=0)
    for key, scene in venv.world.scenes().items():
        np.testing.assert_array_equal(raster.draw(*scene), observation[key])
    np.testing.assert_array_equal(venv.world.state(), observation["state"])
