"""The driver: each world judged for itself, asked values hold, errors change nothing."""

from __future__ import annotations

import copy
import json
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest

import interverse as iv
from interverse.core.errors import (
    ActionError,
    InterventionError,
    InterverseError,
    InvalidValueError,
    ResetNeededError,
)
from interverse.envs.driver import ActionChecker, Driver
from interverse.envs.snapshot import Snapshot
from interverse.sim import SimulationError

PUSHING = "trifinger/pushing-v1"
SLIDER = "tutorial/slider-v1"


def moment(env):
    """Everything that makes later steps what they are; fields never edited may be left out."""
    arrays = env.unwrapped.snapshot().arrays
    return {n: v.tobytes() for n, v in arrays.items() if not n.startswith("model/")}


def started(world_id, **options):
    env = iv.make(world_id, **options)
    env.reset(seed=0)
    return env


# ------------------------------------------------------------------ judged per world


@pytest.mark.parametrize("beside", [0.05, -1.0, 0.5])
def test_a_bad_value_elsewhere_does_not_switch_a_check_off(beside):
    venv = iv.make_vec(PUSHING, 2)
    venv.reset(seed=0)
    outcome = venv.do({"block_0/mass": [0.5, beside]})  # 0.5 kg lies in the domain, not in A_B
    assert outcome.applied.tolist() == [False, beside == 0.05]
    assert "space A_B" in outcome.reasons[0]
    assert venv.values["block_0/mass"][0] == 0.02


def test_bounds_that_depend_on_values_never_see_an_illegal_one():
    venv = iv.make_vec(SLIDER, 2)
    venv.reset(seed=0)
    sizes = [[0.1, 0.1, 0.1], [0.1, 0.1, -1.0]]
    outcome = venv.do({"box/size": sizes, "box/position": [0.1, 0.0, 0.05]})
    assert outcome.applied.tolist() == [True, False]
    assert "box/size" in outcome.reasons[1]


# ------------------------------------------------------------------- asked values hold


@pytest.mark.parametrize(
    ("task", "asked"),
    [
        (PUSHING, {"block_0/size": [0.06] * 3, "goal_0/size": [0.07] * 3}),
        (
            PUSHING,
            {
                "block_0/cartesian_position": [0.05, 0.0, 0.0325],
                "block_0/cylindrical_position": [0.05, 1.0, 0.0325],
            },
        ),
        ("chemistry/chain-v1", {"edge_0_1": 0, "graph/adjacency": np.eye(5, k=-1, dtype=int)}),
    ],
    ids=["sizes", "positions", "edges"],
)
def test_two_descriptions_that_disagree_are_refused_by_both_names(task, asked):
    env = started(task)
    before = moment(env)
    with pytest.raises(iv.InterventionError) as caught:
        env.do(asked)
    assert all(name in str(caught.value) for name in asked)
    assert moment(env) == before
    with pytest.raises(iv.InterventionError) as caught:
        env.reset(seed=0, options={"do": asked})
    assert all(name in str(caught.value) for name in asked)


def test_two_descriptions_that_agree_are_taken():
    env = started(PUSHING)
    env.do({"block_0/size": [0.06] * 3, "goal_0/size": [0.06] * 3})
    angle, radius = 0.7, 0.06
    flat = [radius * np.cos(angle), radius * np.sin(angle), 0.03]
    env.do(
        {
            "block_0/cartesian_position": flat,
            "block_0/cylindrical_position": [radius, angle, 0.03],
        }
    )
    assert np.allclose(env.values["block_0/cartesian_position"], flat, atol=1e-12)


def test_a_joint_do_cuts_the_edge_between_its_variables():
    env = started("trifinger/towers-v1")
    turned = [0.0, 0.0, np.sin(0.2), np.cos(0.2)]
    centre = env.values["tower/center"] + 0.01
    asked = {"tower/center": centre, "goal_1/orientation": turned}
    env.do(asked, check=False)
    assert np.allclose(env.values["tower/center"], centre)
    assert np.allclose(env.values["goal_1/orientation"], turned)
    env.reset(seed=0, options={"do": {"goal_1/orientation": turned}})
    assert np.allclose(env.values["goal_1/orientation"], turned)


def test_a_value_is_held_against_its_cause_even_if_it_is_the_present_one():
    """The size seats a block on the floor; a position asked for beside it stays."""
    env = started(PUSHING)
    env.do({"block_0/cartesian_position": [0.0, 0.0, 0.06]}, check=False)
    present = env.values["block_0/cartesian_position"]
    env.do({"block_0/size": [0.08] * 3, "block_0/cartesian_position": present}, check=False)
    assert env.values["block_0/cartesian_position"].tolist() == present.tolist()
    env.do({"block_0/size": [0.07] * 3}, check=False)
    assert env.values["block_0/cartesian_position"][2] == pytest.approx(0.035)


def test_a_value_is_handed_on_where_its_cause_changes():
    env = started(PUSHING)
    rules = env.driver.rules
    changed = {"block_0/size": np.array([True]), "block_0/cartesian_position": np.array([False])}
    assert rules._held("block_0/cartesian_position", changed).tolist() == [True]
    alone = {"block_0/cartesian_position": np.array([False])}
    assert rules._held("block_0/cartesian_position", alone).tolist() == [False]


@pytest.mark.parametrize("name", ["P10", "P11"])
def test_what_a_protocol_draws_is_what_holds(name):
    from interverse.protocols.protocol import select_protocols

    (protocol,) = select_protocols(PUSHING, name)
    venv = iv.make_vec(PUSHING, 40)
    venv.reset(seed=3)
    driver = venv.driver
    everyone = np.arange(40)
    drawn = protocol.draw(driver, everyone, 0)
    refused = protocol.apply(driver, everyone)
    first_try = [i for i in range(40) if len(driver.log(i)) == 1 and i not in refused]
    assert len(first_try) > 10
    for variable, rows in drawn.items():
        asked = ~np.ma.getmaskarray(rows).reshape(40, -1).any(axis=1)
        for i in (i for i in first_try if asked[i]):
            found = driver.values[variable][i]
            same = driver.world.same_values(variable, np.asarray(rows)[i : i + 1], found[None])
            assert same.all(), variable


def test_a_refused_rotation_is_told_that_its_norm_must_be_one():
    env = started(PUSHING)
    asked = {"block_0/orientation": np.ones(4)}
    with pytest.raises(iv.InterventionError, match="with a norm of 1"):
        env.do(asked)
    with pytest.raises(InvalidValueError, match="with a norm of 1"):
        iv.make(PUSHING, defaults=asked)


# ------------------------------------------------------------ errors change nothing


@pytest.mark.parametrize("episode", [-1, 1.5, [1, 2]])
def test_a_bad_episode_number_changes_nothing(episode):
    env = started(SLIDER)
    env.reset(seed=5)
    before = moment(env)
    with pytest.raises(InvalidValueError):
        env.reset(seed=7, options={"episode": episode})
    assert moment(env) == before
    env.step(env.action_space.sample())


def test_selecting_no_world_is_allowed():
    venv = iv.make_vec(SLIDER, 3)
    with pytest.raises(ResetNeededError):
        venv.reset(options={"reset_mask": np.zeros(3, dtype=bool)})
    venv.reset(seed=0)
    before = moment(venv)
    for nobody in (np.zeros(3, dtype=bool), [], np.array([], dtype=np.int64)):
        outcome = venv.do({"box/mass": 0.4}, worlds=nobody)
        assert not outcome.applied.any()
        assert outcome.changed == frozenset()
        venv.reset(options={"reset_mask": nobody})
    assert moment(venv) == before


def bad_snapshots(good):
    arrays = dict(good.arrays)
    name = next(n for n in arrays if not n.startswith("driver/"))
    yield "missing", {n: v for n, v in arrays.items() if n != name}
    yield "strange", arrays | {"other": arrays[name]}
    yield "shape", arrays | {name: arrays[name][..., None]}
    yield "rows", arrays | {name: np.concatenate([arrays[name]] * 2)}
    yield "counter", arrays | {"driver/steps": np.array([-3])}
    yield "no counter", {n: v for n, v in arrays.items() if n != "driver/seeds"}
    yield "no end", {n: v for n, v in arrays.items() if n != "driver/ended"}
    yield "empty", {}
    for own in (n for n in arrays if not n.startswith("driver/")):
        yield f"text in {own}", arrays | {own: np.full(arrays[own].shape, "no")}  # a load half done


def test_a_bad_snapshot_changes_nothing():
    env = started(SLIDER)
    good = env.snapshot()
    env.reset(seed=9)
    env.step(np.ones(2, dtype=np.float32))
    before = moment(env)
    for label, arrays in bad_snapshots(good):
        with pytest.raises(InvalidValueError):
            env.restore(Snapshot(good.id, good.options, arrays))
        assert moment(env) == before, label


# ------------------------------------------------------------------- broken physics


class Breaking:
    """Makes the physics of a world break down at a step, as the engine reports it."""

    def __init__(self, driver: Driver, world: int, step: int) -> None:
        inner = driver.world.step

        def step_or_break(actions, worlds, noise):
            if world in worlds and driver.steps[world] == step:
                raise SimulationError(f"the physics of world {world} broke down", [world])
            inner(actions, worlds, noise)

        driver.world.step = step_or_break


def test_after_a_breakdown_a_reset_is_needed():
    env = started(SLIDER)
    Breaking(env.driver, 0, 1)
    env.step(np.ones(2, dtype=np.float32))
    with pytest.raises(SimulationError):
        env.step(np.ones(2, dtype=np.float32))
    with pytest.raises(ResetNeededError):
        env.step(np.ones(2, dtype=np.float32))
    env.reset(seed=0)
    env.step(np.ones(2, dtype=np.float32))


def test_one_diverged_world_can_be_left_out():
    venv, plain = (iv.make_vec(SLIDER, 3, autoreset_mode="disabled") for _ in range(2))
    for v in (venv, plain):
        v.reset(seed=0)
    venv.driver.skips_diverged = True
    Breaking(venv.driver, 1, 2)
    for _ in range(4):
        push = np.ones((3, 2), dtype=np.float32)
        mine, theirs = venv.step(push), plain.step(push)
    assert list(venv.driver.diverged) == [1]
    assert mine[2].tolist() == [False, True, False]
    assert np.array_equal(mine[0][[0, 2]], theirs[0][[0, 2]])
    assert venv.driver.steps.tolist() == [4, 2, 4]
    venv.reset(seed=0)
    assert not venv.driver.diverged


# ----------------------------------------------------------------------- options, spec


def test_the_spec_rebuilds_the_environment_with_its_options():
    env = iv.make("chemistry/chain-v1", objects=3)
    again = gym.make(env.spec).unwrapped
    assert len(again.variables) == len(env.variables)
    assert again.world.options == env.world.options
    assert gym.spec("chemistry/chain-v1").kwargs == {"world_id": "chemistry/chain-v1"}


# ----------------------------------------------------------------------------- tensors


def test_worlds_on_another_device_keep_their_tensors():
    torch = pytest.importorskip("torch")
    venv = iv.make_vec("blocks/observed-3-v1", 4, device="torch")
    seen, _ = venv.reset(seed=0)
    assert isinstance(seen["state"], torch.Tensor)
    actions = torch.tensor([0, 1, 2, 3])
    seen, reward, terminated, truncated, _ = venv.step(actions)
    for part in (seen["state"], reward, terminated, truncated, *venv.values.values()):
        assert isinstance(part, torch.Tensor)
    plain = iv.make_vec("blocks/observed-3-v1", 4)
    plain.reset(seed=0)
    _, rewards, *_ = plain.step(actions.numpy())
    assert isinstance(rewards, np.ndarray)
    assert np.allclose(rewards, reward.numpy())
    outcome = venv.do({"block_0/weight": torch.tensor([1, 2, 3, 4])}, worlds=torch.tensor([0, 1]))
    assert outcome.applied.tolist() == [True, True, False, False]


def test_tensors_of_actions_are_checked_where_they_are():
    torch = pytest.importorskip("torch")
    box = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    checked = ActionChecker(box, 1, clip=False)
    inside = torch.tensor([[0.5, -0.5]])
    assert checked(inside) is inside
    clipped = ActionChecker(box, 1, clip=True)(torch.tensor([[3.0, 0.0]]))
    assert clipped.tolist() == [[1.0, 0.0]]
    assert checked(torch.tensor([[1, 0]])).tolist() == [[1.0, 0.0]]
    bad = [
        torch.tensor([[float("nan"), 0.0]]),
        torch.tensor([[3.0, 0.0]]),
        torch.tensor([[2, 0]]),
        torch.tensor([[True, False]]),
        torch.tensor([0.0]),
    ]
    for actions in bad:
        with pytest.raises(ActionError):
            checked(actions)
    assert issubclass(ActionError, InterverseError)


def test_what_numpy_and_hands_write_is_taken():
    """NumPy's whole numbers are seeds, whole numbers are actions, an edge is a cube."""
    env, same = iv.make("tutorial/slider-v1"), iv.make("tutorial/slider-v1")
    seen, _ = env.reset(seed=np.int64(3))
    assert np.array_equal(seen, same.reset(seed=3)[0])
    after = same.step(np.zeros(2, dtype=np.float32))[0]
    assert np.array_equal(env.step([0, 0])[0], after)
    assert np.array_equal(env.step(np.zeros(2, dtype=int))[0], same.step(np.zeros(2))[0])
    with pytest.raises(ActionError, match=r"reach from 0\.0 to 3\.0"):
        env.step([0, 3])
    env.do({"box/size": 0.1})
    assert env.values["box/size"].tolist() == [0.1, 0.1, 0.1]
    with pytest.raises(InterventionError, match=r"box/position has shape \(\)"):
        env.do({"box/position": 0.1})


def test_a_bound_in_float32_is_the_bound():
    """0.6 in float32 lies above 0.6: the last world of a linspace over A."""
    venv = iv.make_vec("tutorial/slider-v1", num_envs=5, space="A")
    venv.reset(seed=0)
    space = venv.unwrapped.world.variables["box/mass"].space_a
    wanted = np.linspace(space.low, space.high, 5, dtype=np.float32)
    assert wanted[-1] > space.high
    assert venv.unwrapped.do({"box/mass": wanted}).applied.all()
    assert venv.unwrapped.values["box/mass"][-1] == space.high
    above = np.nextafter(wanted[-1], np.float32(1))
    assert not venv.unwrapped.do({"box/mass": above}).applied.any()


def test_actions_in_other_units_are_told_and_clipped():
    env = iv.make("trifinger/pushing-v1", skip_frame=1)
    env.reset(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.step(np.full(9, 1.9, dtype=np.float32))
    for degrees in (np.full(9, 90.0, dtype=np.float32), [-100] * 9):
        with pytest.warns(
            UserWarning, match=r"beyond twice their range: they are clipped to -1 to"
        ):
            env.step(degrees)


def test_a_refused_reset_does_not_count_as_an_episode():
    env = iv.make("tutorial/slider-v1")
    env.reset(seed=3, options={"episode": 4})
    for wrong in ({"box/mass": -1.0}, {"box/mas": 1.0}, {"box/position": [9.0, 9.0, 9.0]}):
        for seed in (8, None):  # the count would begin anew, or rise
            with pytest.raises(iv.InterventionError):
                env.reset(seed=seed, options={"do": wrong})
            assert env.unwrapped.driver.seeds.tolist() == [3]
            assert env.unwrapped.driver.episodes.tolist() == [4]
    env.reset()
    assert env.unwrapped.driver.episodes.tolist() == [5]


def test_views_can_be_shown_copied_and_sent():
    env = iv.make("trifinger/pushing-v1")
    env.reset(seed=0)
    for view in (env.values, env.variables, env.unwrapped.driver.host_values):
        assert "block_0/mass" in repr(view)
        assert set(copy.deepcopy(view)) == set(copy.copy(view)) == set(view)
        assert set(pickle.loads(pickle.dumps(view))) == set(view)


def test_a_specification_with_arrays_has_a_json_form():
    place = np.array([0.1, 0.1, 0.025])
    env = iv.make(SLIDER, defaults={"box/position": place, "box/mass": np.float64(0.4)})
    written = json.loads(env.spec.to_json())["kwargs"]["defaults"]
    again = iv.make(SLIDER, defaults=written)
    assert np.array_equal(again.variables["box/position"].default, place)


class _StepsBack:
    """A hook that puts the start of the episode back after every step."""

    def __init__(self, start):
        self.start = start

    def on_reset(self, driver, worlds):
        """Leaves starts as they are."""

    def on_step(self, driver, moment):
        driver.restore(self.start, np.arange(1))
        return {}


def test_a_step_shows_what_a_hook_restored():
    env = started(SLIDER)
    seen = env.unwrapped.driver.world.observe()[0].copy()
    env.unwrapped.driver.hook = _StepsBack(env.unwrapped.snapshot())
    observation, *_ = env.step(np.ones(2))
    assert np.array_equal(observation, seen)


def test_a_vector_intervention_that_every_world_refuses_is_told():
    venv = iv.make_vec("tutorial/slider-v1", 3)
    venv.reset(seed=0)
    with pytest.warns(UserWarning, match=r"no world took the intervention: box/mass is 5\.0"):
        outcome = venv.unwrapped.do({"box/mass": 5.0})
    assert not outcome
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert venv.unwrapped.do({"box/mass": np.array([5.0, 0.6, 0.7])})
        assert not venv.unwrapped.do({"box/mass": 0.6}, worlds=[])


def test_an_intervention_on_an_ended_world_is_refused_where_the_next_step_resets_it():
    venv = iv.make_vec("tutorial/slider-v1", 2, max_steps=1)
    venv.reset(seed=0)
    venv.step(venv.action_space.sample())
    with pytest.warns(UserWarning, match="its episode has ended, and the next step starts another"):
        outcome = venv.unwrapped.do({"box/mass": 0.9})
    assert sorted(outcome.reasons) == [0, 1]
    assert venv.unwrapped.values["box/mass"].tolist() == [0.5, 0.5]
    venv.step(venv.action_space.sample())
    assert venv.unwrapped.do({"box/mass": 0.9}).applied.all()
