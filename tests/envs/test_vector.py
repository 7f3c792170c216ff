"""The vector form: autoreset, partial reset, masks, logs, snapshots."""

import gymnasium as gym
import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.envs.snapshot import Snapshot
from tests.conformance.cases import same
from tests.envs.toy import ID, ensure_registered

ensure_registered()
ZERO = np.zeros((3, 2), dtype=np.float32)


def make_vec(n=3, **options):
    return iv.make_vec(ID, num_envs=n, **options)


def test_world_i_equals_a_single_env_with_seed_plus_i():
    venv, env = make_vec(), iv.make(ID)
    batch, _ = venv.reset(seed=40)
    for i in range(3):
        assert np.array_equal(batch[i], env.reset(seed=40 + i)[0])
    batch, _ = venv.reset(seed=[9, 2, 9])
    assert np.array_equal(batch[0], batch[2])
    assert np.array_equal(batch[1], env.reset(seed=2)[0])


def test_without_a_seed_the_episode_index_rises():
    venv = make_vec()
    first, _ = venv.reset(seed=0)
    second, _ = venv.reset()
    assert venv.unwrapped.driver.episodes.tolist() == [1, 1, 1]
    assert not np.array_equal(first, second)
    again, _ = venv.reset(seed=0, options={"episode": 1})
    assert np.array_equal(second, again)


def test_the_first_reset_without_a_seed_draws_one():
    a, b = make_vec(), make_vec()
    assert not np.array_equal(a.reset()[0], b.reset()[0])


def test_next_step_autoreset():
    venv = make_vec(max_steps=4)
    assert venv.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP
    venv.reset(seed=0)
    for _ in range(4):
        *_, truncated, _ = venv.step(ZERO)
    assert truncated.all()
    observation, reward, _, truncated, _ = venv.step(ZERO)
    assert reward.tolist() == [0.0, 0.0, 0.0]
    assert not truncated.any()
    assert venv.unwrapped.driver.steps.tolist() == [0, 0, 0]
    fresh, _ = make_vec(max_steps=4).reset(seed=0, options={"episode": 1})
    assert np.array_equal(observation, fresh)


def test_only_ended_worlds_restart():
    venv = make_vec(max_steps=4)
    venv.reset(seed=0)
    venv.step(ZERO)
    venv.reset(options={"reset_mask": np.array([False, True, False])})
    for _ in range(3):
        *_, truncated, _ = venv.step(ZERO)
    assert truncated.tolist() == [True, False, True]
    venv.step(ZERO)
    assert venv.unwrapped.driver.steps.tolist() == [0, 4, 0]


@pytest.mark.parametrize("seed", [7, [7, 8, 9]])
def test_a_partial_reset_gives_each_world_its_own_seed(seed):
    venv, env = make_vec(), iv.make(ID)
    before, _ = venv.reset(seed=0)
    after, _ = venv.reset(seed=seed, options={"reset_mask": np.array([False, True, True])})
    assert np.array_equal(after[0], before[0])
    for i in (1, 2):
        assert np.array_equal(after[i], env.reset(seed=7 + i)[0])


def test_same_step_autoreset_keeps_the_final_observation():
    venv = make_vec(max_steps=2, autoreset_mode="same_step")
    venv.reset(seed=0)
    venv.step(ZERO)
    observation, _, _, truncated, info = venv.step(ZERO)
    assert truncated.all()
    assert info["_final_obs"].all()
    assert not np.array_equal(np.stack(info["final_obs"]), observation)
    assert info["final_info"]["distance"].shape == (3,)


def test_disabled_autoreset_leaves_worlds_alone():
    venv = make_vec(max_steps=2, autoreset_mode=gym.vector.AutoresetMode.DISABLED)
    venv.reset(seed=0)
    for _ in range(3):
        *_, truncated, _ = venv.step(ZERO)
    assert truncated.all()
    assert venv.unwrapped.driver.steps.tolist() == [3, 3, 3]


def test_do_with_a_mask_and_one_value_per_world():
    venv = make_vec()
    venv.reset(seed=0)
    outcome = venv.unwrapped.do({"gain": np.array([0.6, 1.9, 0.7])}, worlds=[True, False, True])
    assert venv.unwrapped.values["gain"].tolist() == [0.6, 1.0, 0.7]
    assert outcome.applied.tolist() == [True, False, True]
    assert outcome.changed == {"gain"}
    assert outcome.observation.shape == (3, 3)


def test_rows_of_values_for_worlds_in_another_order_are_refused_where_both_readings_fit():
    many, three = iv.make_vec("tutorial/slider-v1", 4), iv.make_vec("tutorial/slider-v1", 3)
    masses = [0.6, 0.7, 0.8]
    for venv in (many, three):
        venv.reset(seed=0)
    many.do({"box/mass": masses}, worlds=[2, 0, 1])
    assert many.values["box/mass"].tolist() == [0.7, 0.8, 0.6, 0.5]
    for given in ({"box/mass": masses}, iv.Shift({"box/mass": [0.1, 0.2, 0.3]})):
        with pytest.raises(iv.InterventionError, match=r"worlds \[2, 0, 1\], all there are"):
            three.do(given, worlds=[2, 0, 1])
    three.do({"box/mass": 0.6}, worlds=[2, 0, 1])
    three.do({"box/mass": masses}, worlds=[0, 1, 2])
    assert three.values["box/mass"].tolist() == masses


def test_three_numbers_for_boxes_of_three_worlds_are_edges_or_one_box():
    three, four = iv.make_vec("tutorial/slider-v1", 3), iv.make_vec("tutorial/slider-v1", 4)
    three.reset(seed=0)
    four.reset(seed=0)
    box = [0.1, 0.11, 0.12]
    with pytest.raises(iv.InterventionError, match="one box, or edges of cubes"):
        three.do({"box/size": box})
    assert three.do({"box/size": [box] * 3, "box/color": [0.1, 0.2, 0.3]}).applied.all()
    assert three.do({"box/size": [0.1] * 3}).applied.all()
    assert four.do({"box/size": box}).applied.all()


def test_infeasible_worlds_stay_and_say_why():
    venv = make_vec()
    venv.reset(seed=0)
    before = venv.unwrapped.values["x"]
    values = np.array([[1.25, 1.25], [4.0, 0.0], [2.0, 2.0]])
    outcome = venv.unwrapped.do({"x": values})
    assert outcome.applied.tolist() == [False, False, True]
    assert "toy's own rule" in outcome.reasons[0]
    assert "space A_B" in outcome.reasons[1]
    assert np.array_equal(venv.unwrapped.values["x"][:2], before[:2])


def test_all_or_nothing_per_world():
    venv = make_vec()
    venv.reset(seed=0)
    outcome = venv.unwrapped.do({"gain": 0.7, "x": np.array([[1.25, 1.25], [1, 1], [2, 2]])})
    assert outcome.applied.tolist() == [False, True, True]
    assert venv.unwrapped.values["gain"].tolist() == [1.0, 0.7, 0.7]


def test_bounds_follow_other_variables_of_the_same_do():
    env = iv.make(ID)
    env.reset(seed=0)
    with pytest.raises(iv.InterventionError, match="space A_B"):
        env.do({"x": [5.0, 5.0]})
    env.do({"x": [5.0, 5.0], "fence": 6})
    assert env.variables["x"].space_a.high.tolist() == [6.0, 6.0]


def test_a_present_value_outside_the_space_is_allowed():
    env = iv.make(ID)
    env.reset(seed=0)
    env.do({"gain": 4.0}, check=False)
    assert env.do({"gain": 4.0}).changed == frozenset()


def test_a_snapshot_of_one_world_goes_into_many():
    env, venv = iv.make(ID), make_vec()
    env.reset(seed=5)
    env.step(ZERO[0])
    venv.reset(seed=0)
    venv.unwrapped.restore(env.snapshot(), worlds=[0, 2])
    assert np.array_equal(venv.unwrapped.values["x"][2], env.values["x"])
    one = env.step(ZERO[0])[0]
    many = venv.step(ZERO)[0]
    assert np.array_equal(many[0], one)
    assert np.array_equal(many[2], one)


def test_gymnasium_makes_the_same_vector_env():
    venv = gym.make_vec(f"interverse:{ID}", num_envs=3, vectorization_mode="vector_entry_point")
    assert np.array_equal(venv.reset(seed=1)[0], make_vec().reset(seed=1)[0])


def test_gymnasium_makes_vectors_of_single_envs():
    venv = gym.make_vec(f"interverse:{ID}", num_envs=2, vectorization_mode="sync")
    assert np.array_equal(venv.reset(seed=1)[0], make_vec().reset(seed=1)[0][:2])


def test_shift_and_replace_act_per_world():
    venv = make_vec()
    venv.reset(seed=0)
    before = venv.unwrapped.values["x"]
    venv.unwrapped.do(iv.Shift({"x": 0.5}), worlds=[1])
    assert np.allclose(venv.unwrapped.values["x"][1], before[1] + 0.5)
    space = venv.unwrapped.variables["gain"].space_a
    outcome = venv.unwrapped.do(iv.Replace({"gain": space}), worlds=[0, 2])
    gains = venv.unwrapped.values["gain"]
    assert outcome.applied.tolist() == [True, False, True]
    assert gains[0] != gains[2]
    assert gains[1] == 1.0


def test_the_log_forgets_past_episodes():
    venv = make_vec()
    venv.reset(seed=0)
    venv.unwrapped.do({"gain": 0.7}, worlds=[0])
    venv.reset(options={"reset_mask": [True, False, False]})
    assert venv.unwrapped.driver.log(0) == []
    venv.unwrapped.do({"gain": 0.8}, worlds=[0, 1])
    assert [len(venv.unwrapped.driver.log(i)) for i in range(3)] == [1, 1, 0]


def test_the_batched_space_is_gymnasiums_own():
    from gymnasium.vector.utils import batch_space

    venv = iv.make_vec("chemistry/chain-v1", num_envs=3)
    ours, theirs = venv.observation_space, batch_space(venv.single_observation_space, 3)
    assert ours == theirs
    observation, _ = venv.reset(seed=0)
    assert ours.contains(observation)
    assert ours.contains(ours.sample())


@pytest.mark.parametrize("world", [ID, "blocks/observed-3-v1"])
def test_final_observations_have_gymnasiums_form(world):
    ours = iv.make_vec(world, num_envs=3, max_steps=2, autoreset_mode="same_step")
    mode = gym.vector.AutoresetMode.SAME_STEP
    makers = [lambda: iv.make(world, max_steps=2)] * 3
    theirs = gym.vector.SyncVectorEnv(makers, autoreset_mode=mode)
    ours.action_space.seed(0)
    actions = ours.action_space.sample()
    for venv in (ours, theirs):
        venv.reset(seed=0)
        venv.step(actions)
        venv.reset(options={"reset_mask": np.array([False, True, False])})
    mine, other = ours.step(actions)[-1], theirs.step(actions)[-1]
    assert mine["final_obs"].dtype == other["final_obs"].dtype == object
    np.testing.assert_array_equal(mine["_final_obs"], other["_final_obs"])
    assert mine["final_obs"][1] is None
    for i in (0, 2):
        assert same(mine["final_obs"][i], other["final_obs"][i])


@pytest.mark.parametrize("saved", ["now", "bytes"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_snapshot_of_ended_episodes_goes_on_with_their_autoreset(saved, elsewhere):
    venv = make_vec(max_steps=4)
    venv.reset(seed=0)
    venv.step(ZERO)
    venv.reset(options={"reset_mask": np.array([False, True, False])})
    for _ in range(3):
        venv.step(ZERO)
    snapshot = venv.snapshot()
    if saved == "bytes":
        snapshot = Snapshot.from_bytes(snapshot.to_bytes())
    expected = [venv.step(ZERO + 0.1 * k) for k in range(3)]
    other = make_vec(max_steps=4) if elsewhere else venv
    other.reset(seed=9)
    other.restore(snapshot)
    for k, wanted in enumerate(expected):
        found = other.step(ZERO + 0.1 * k)
        for a, b in zip(found[:4], wanted[:4], strict=True):
            np.testing.assert_array_equal(a, b)
    other.reset(options={"snapshot": snapshot})
    np.testing.assert_array_equal(other.step(ZERO)[0], expected[0][0])


def test_an_episode_that_ended_stays_so_in_a_snapshot_whatever_is_done_then():
    venv = iv.make_vec("tutorial/slider-v1", num_envs=1, max_steps=2)
    venv.reset(seed=0)
    still = np.zeros((1, 2), np.float32)
    venv.step(still)
    venv.step(still)
    venv.do({"box/position": [0.1, 0.1, 0.05]}, check=False)
    snapshot = venv.snapshot()
    venv.step(still)
    assert venv.driver.steps.tolist() == [0]
    venv.restore(snapshot)
    assert venv.resets_next.all()
    venv.step(still)
    assert venv.driver.steps.tolist() == [0]


def test_a_snapshot_of_an_ended_single_env_resets_in_a_vector():
    env, venv = iv.make(ID, max_steps=2), make_vec(max_steps=2)
    env.reset(seed=5)
    for _ in range(2):
        env.step(ZERO[0])
    venv.reset(seed=0)
    venv.restore(env.snapshot(), worlds=[1])
    venv.step(ZERO)
    assert venv.driver.steps.tolist() == [1, 0, 1]


def test_none_among_seeds_is_a_world_without_a_seed():
    venv, other = make_vec(), make_vec()
    seen, _ = venv.reset(seed=[1, None, 3])
    assert venv.driver.episodes.tolist() == [0, 0, 0]
    assert not np.array_equal(seen[1], other.reset(seed=[1, None, 3])[0][1])  # each draws its own
    drawn = int(venv.driver.seeds[1])
    again, _ = venv.reset(seed=[1, None, 4])
    assert np.array_equal(again[0], seen[0])
    assert venv.driver.seeds.tolist() == [1, drawn, 4]
    assert venv.driver.episodes.tolist() == [0, 1, 0]
    with pytest.raises(InvalidValueError, match=r"seed must be a whole number, got 'x'"):
        venv.reset(seed=[1, None, "x"])
    assert venv.driver.episodes.tolist() == [0, 1, 0]


@pytest.mark.parametrize("vector", [False, True])
def test_a_seed_beside_a_snapshot_is_not_the_worlds(vector):
    env = make_vec() if vector else iv.make(ID)
    env.reset(seed=0)
    snapshot = env.snapshot()
    env.step(ZERO if vector else ZERO[0])
    env.reset(seed=7, options={"snapshot": snapshot})
    assert env.snapshot().to_bytes() == snapshot.to_bytes()
    with pytest.raises(InvalidValueError, match="seed"):
        env.reset(seed=-3, options={"snapshot": snapshot})


@pytest.mark.parametrize("beside", [{"episode": 5}, {"do": {}}])
@pytest.mark.parametrize("vector", [False, True])
def test_what_a_snapshot_decides_is_refused_beside_it(beside, vector):
    env = make_vec() if vector else iv.make(ID)
    env.reset(seed=0)
    snapshot = env.snapshot()
    env.step(ZERO if vector else ZERO[0])
    before = env.snapshot().to_bytes()
    with pytest.raises(InvalidValueError, match=f"a snapshot and a {next(iter(beside))}"):
        env.reset(options={"snapshot": snapshot, **beside})
    assert env.snapshot().to_bytes() == before


def test_options_written_in_another_way_fit_a_snapshot():
    first = make_vec(spread=1)
    first.reset(seed=0)
    make_vec(spread=1.0).restore(first.snapshot())
    with pytest.raises(InvalidValueError, match="the snapshot's options"):
        make_vec(spread=2.0).restore(first.snapshot())
    pole = {"image_size": 24, "frame_stack": 1}
    env = iv.make("control/cartpole_balance-v1", vary=["floor", "camera"], **pole)
    env.reset(seed=0)
    other = iv.make("control/cartpole_balance-v1", vary=["camera", "floor"], **pole)
    assert np.array_equal(other.restore(env.snapshot()), env.observe())
    shuffled = env.snapshot().options.replace('"floor", "camera"', '"camera", "floor"')
    assert shuffled != env.snapshot().options
    other.restore(Snapshot(env.driver.id, shuffled, env.snapshot().arrays))  # means the same


def test_how_many_worlds_a_snapshot_may_hold_is_said_once():
    many, env = make_vec(), iv.make(ID)
    many.reset(seed=0)
    env.reset(seed=0)
    with pytest.raises(InvalidValueError, match=r"holds 3 worlds, 1 are selected. Allowed: 1\. "):
        env.restore(many.snapshot())
