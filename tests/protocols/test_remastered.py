"""DMC Remastered's protocols: seeds never meet, one factor varies, E_G comes out of the results."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import interverse as iv
from interverse.core.errors import InvalidValueError
from interverse.protocols import PROTOCOLS
from interverse.protocols.protocol import Protocol, select_protocols
from interverse.protocols.remastered import (
    CONTROL,
    REMASTERED,
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALID_SEEDS,
)
from interverse.results import Results, tables
from interverse.rollouts.policy_world import policy_world
from interverse.worlds import WORLDS

TASK = "control/cartpole_balance-v1"
BY_NAME = {protocol.name: protocol for protocol in REMASTERED}
FACTORS = ("none", "light", "camera", "body", "floor", "background", "all")


def test_every_control_task_has_the_table():
    control = [task for task in WORLDS if task.startswith("control/")]
    assert len(control) == 24
    assert all(PROTOCOLS.load(task)[: len(CONTROL)] == CONTROL for task in control)
    turned = [task for task in control if len(PROTOCOLS.load(task)) == len(CONTROL) + 6]
    assert {task.split("/")[1].rpartition("_")[0] for task in turned} >= {"walker", "cheetah"}
    assert "control/fish_swim-v1" not in turned, "DMC-GB2 has no fish"
    assert select_protocols(TASK, "all") == REMASTERED, "others are asked for by name"


def test_seed_ranges_are_disjoint_and_leave_the_default_look_out():
    ranges = (range(1), TRAIN_SEEDS, VALID_SEEDS, TEST_SEEDS)
    for one, other in itertools.pairwise(ranges):
        assert one.stop == other.start
    kinds = {"few_shot_train": TRAIN_SEEDS, "few_shot_valid": VALID_SEEDS, "all": TEST_SEEDS}
    for name, inside in kinds.items():
        assert all(seed in inside for seed in BY_NAME[name].grid["visual_seed"])


@pytest.mark.parametrize("name", FACTORS)
def test_a_factor_is_tested_on_100_looks_and_3_starts_of_each(name):
    drawn = BY_NAME[name].start(np.arange(300))
    counts = [len(set(drawn[key].tolist())) for key in ("visual_seed", "dynamics_seed")]
    assert counts == [100, 300]
    first = [len(set(drawn[key][:50].tolist())) for key in ("visual_seed", "dynamics_seed")]
    assert first == [50, 50], "looks and starts vary together"


def still(seen):
    return np.zeros((len(seen), 1), np.float32)


SMALL = {"observation": "state", "max_steps": 5}


def test_fifty_episodes_in_which_no_factor_varies_are_fifty_starts():
    results = iv.evaluate(still, task=TASK, protocols="none", episodes=20, **SMALL)
    assert len(results.distinct()) == 20
    assert len(set(results.scores("return").tolist())) == 20


def test_an_episode_repeated_counts_every_time_and_has_no_interval():
    grid = {"visual_seed": range(6), "dynamics_seed": (3,)}
    same = Protocol(name="same", grid=grid, options={"vary": ()})
    results = iv.evaluate(still, task=TASK, protocols=["none", same], episodes=6, **SMALL)
    assert len(results.distinct()) == 7
    table = tables.scores(results)
    rows = {row[2]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert [rows["same"][name] for name in ("scored", "repeats")] == [6, 5]
    assert [rows["none"][name] for name in ("scored", "repeats")] == [6, 0]
    assert np.isnan(rows["same"]["return"].low), "one episode has no interval"
    assert rows["none"]["return"].low < rows["none"]["return"].high
    assert "repeats" in str(results.table())
    assert tables.aggregates(results, "return").rows[0][2] == 12


def test_the_optimality_gap_of_returns_is_a_share_of_the_task_s_range():
    results = iv.evaluate(still, task=TASK, protocols="none", episodes=4, frame_skip=8, **SMALL)
    assert results.provenance["ranges"] == {TASK: {"return": [0.0, 40.0]}}
    table = tables.aggregates(results, "return")
    gap = table.rows[0][table.header.index("optimality gap")]
    assert gap.value == pytest.approx(1 - results.scores("return").mean() / 40.0)
    free = Results(data=results.data)
    assert np.isnan(tables.aggregates(free, "return").rows[0][-1].value), "no range, no gap"
    whole = iv.make(TASK, observation="state", frame_skip=3)
    assert whole.unwrapped.world.return_range == (0.0, 1000.0)


def look_under(name):
    protocol: Protocol = BY_NAME[name]
    env = iv.make(TASK, image_size=16, frame_stack=1, **protocol.options)
    do = {key: rows[0] for key, rows in protocol.start(np.arange(1)).items()}
    seen, _ = env.reset(seed=0, options={"do": do})
    values = {key: env.values[key] for key in env.variables}
    env.close()
    return seen, values


def test_only_the_named_factor_leaves_its_default():
    default, base = look_under("none")
    seeds = {"visual_seed", "dynamics_seed"}
    moved = {}
    for name in FACTORS[1:]:
        seen, values = look_under(name)
        moved[name] = {k for k in base if not np.array_equal(base[k], values[k])} - seeds
        assert not np.array_equal(seen, default), name
    expected = {"light": "light", "camera": "camera", "body": "body", "floor": "floor"}
    for name, owner in (expected | {"background": "background"}).items():
        owners = {variable.partition("/")[0] for variable in moved[name]}
        assert owner in owners, (name, owners)
        assert owners <= {owner, "effector"}, (name, owners)  # a body may have two parts
    assert set().union(*(moved[n] for n in FACTORS[1:-1])) <= moved["all"]
    assert "qpos" not in moved["all"], "a look changes no state"


def test_the_generalisation_error_is_in_the_results():
    rows = [
        {"task": TASK, "protocol": name, "seed": 0, "episode": i, "return": value + i}
        for name, value in (("train", 995.0), ("camera", 245.0), ("light", 995.0))
        for i in range(11)
    ]
    table = tables.generalisation_errors(Results.from_rows(rows), "return")
    found = {row[2]: row[3] for row in table.rows}
    assert found.keys() == {"camera", "light"}
    assert found["camera"].value == pytest.approx(0.75)
    assert found["light"].value == pytest.approx(0.0)
    assert found["camera"].low < 0.75 < found["camera"].high
    assert tables.generalisation_errors(Results.from_rows(rows), "return", base="none").rows == ()


class Trained:
    """A policy that pushes by the brightness of its picture, with a card of its training."""

    def __init__(self, task=TASK, **options):
        self.card = SimpleNamespace(trained={"config": {"task": task, "options": options}})

    def __call__(self, seen):
        light = np.asarray(seen, np.float64).reshape(len(seen), -1).mean(axis=1)
        return np.clip(light[:, None] / 64 - 1, -1, 1).astype(np.float32)


TINY = {"image_size": 16, "frame_stack": 1, "quality": "fast", "max_steps": 3, "frame_skip": 8}
PLACE = {"visual_seed": [1, 999], "vary": ["floor"], "pictures": "A"}


def test_where_a_policy_was_trained_is_no_part_of_a_test(capsys):
    tests = "train,floor,all,few_shot_test"
    there = iv.evaluate(Trained(**TINY, **PLACE), TASK, tests, episodes=4)
    told = capsys.readouterr().err
    assert "pictures='A', vary=['floor'], visual_seed=[1, 999], which no test takes over" in told
    assert "few_shot_train is about drawn looks" in told
    plain = iv.evaluate(Trained(**TINY), TASK, tests, episodes=4)
    assert capsys.readouterr().err == ""
    assert there.data.equals(plain.data)
    floor, every = (there.select(protocol=n).scores("return").tolist() for n in ("floor", "all"))
    assert floor != every
    assert there.provenance["options"] == plain.provenance["options"] == TINY
    assert there.provenance["runs"][0]["training_place"] == PLACE
    assert "training_place" not in plain.provenance["runs"][0]


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "train"])
def test_a_test_says_what_it_varies_and_from_which_pictures(name):
    assert BY_NAME[name].options.keys() == {"vary", "pictures"}


def test_options_that_are_the_world_s_own_are_no_other_place():
    known = policy_world(Trained(vary="all", visual_seed=0, pictures="A_B", distraction=None))
    assert known.place == {}
    assert known.for_tests().options == {}


@pytest.mark.parametrize(
    ("task", "place"),
    [
        ("blocks/unobserved-3-v1", {"mode": "FewShot-v1", "palette_seed": 3}),
        ("blocks/observed-3-v1", {"mode": "ZeroShot"}),
        ("rooms/single-v1", {"confounder": True, "lamps": "original", "pair_nuisance": "both"}),
        (TASK, {"distraction": "easy", "dynamic": False, "distract": ["color"]}),
        (TASK, {"dynamics_seed": 5, "vary_dynamics": ["dynamics/damping"]}),
    ],
)
def test_places_of_every_family(task, place):
    known = policy_world(Trained(task, **place, max_steps=7))
    assert known.place == place
    assert known.for_tests().options == {"max_steps": 7}


def test_a_place_is_read_with_the_options_beside_it():
    options = {"setting": "unobserved", "mode": "FewShot-v1"}
    known = policy_world(Trained("blocks/observed-3-v1", **options))
    assert known.place == {"mode": "FewShot-v1"}


def test_the_mode_of_chemistry_is_its_task():
    known = policy_world(Trained("chemistry/chain-v1", mode="moving", graph_seed=3))
    assert known.place == {}
    assert known.for_tests().options == {"mode": "moving", "graph_seed": 3}


@pytest.mark.parametrize(
    ("protocol", "option"),
    [
        ("none", {"dynamics_seed": 3}),
        ("train", {"visual_seed": 7}),
        ("floor", {"vary": "body"}),
        ("few_shot_valid", {"pictures": "A"}),
        ("color_easy", {"distraction": "hard"}),
    ],
)
def test_an_option_that_a_protocol_sets_is_refused(protocol, option):
    (name,) = option
    told = rf"{name}=.* is asked for, and protocol {protocol} sets {name} itself.*Leave {name} out"
    with pytest.raises(InvalidValueError, match=told):
        iv.evaluate(still, TASK, protocol, episodes=1, **SMALL, **option)


def test_a_place_may_be_asked_for_where_no_protocol_sets_it(capsys):
    own = Protocol(name="own", grid={"visual_seed": (5, 6)})
    policy = Trained(**TINY, vary=["floor"])
    asked = iv.evaluate(policy, TASK, [own], episodes=2, vary=["floor"])
    assert capsys.readouterr().err == ""
    assert asked.provenance["options"]["vary"] == ["floor"]
    assert "training_place" not in asked.provenance["runs"][0]
    plain = iv.evaluate(policy, TASK, [own], episodes=2)
    assert "vary=['floor']" in capsys.readouterr().err
    assert asked.scores("return").tolist() != plain.scores("return").tolist()


@pytest.mark.parametrize(
    ("looks", "more", "base", "told"),
    [
        (0, {}, "train", "training is the score under train"),
        (7, {}, "train", "policy was trained with visual_seed=7, and train, look 0, is not its"),
        ([1, 999_999], {}, "few_shot_train", "trained with visual_seed=[1, 999999]"),
        ([1, 999], {}, "few_shot_train", "and few_shot_train is not its training score"),
        ([1, 999_999], {"vary": "floor"}, "few_shot_train", "few_shot_train is not its training"),
    ],
)
def test_the_base_of_an_error_is_the_training_s_own_where_there_is_one(looks, more, base, told):
    policy = Trained(observation="state", max_steps=3, visual_seed=looks, **more)
    names = "train,few_shot_train,all"
    results = iv.evaluate(policy, TASK, names, episodes=3, experiment="policy")
    table = tables.generalisation_errors(results, "return")
    assert {row[2] for row in table.rows} == {*names.split(",")} - {base}
    assert told in table.caption
    assert ("is not its" in table.caption) == ("is not its" in told)


def test_other_defaults_are_another_world_and_told(capsys):
    policy = Trained(observation="state", defaults={"reflectance": 0.5}, max_steps=2)
    iv.evaluate(policy, TASK, "train", 1)
    told = "Its world has defaults={'reflectance': 0.5}, and so have the tests"
    assert told in capsys.readouterr().err
    iv.evaluate(policy, TASK, "train", 1, defaults={})
    assert capsys.readouterr().err == ""


def test_a_policy_of_another_look_is_told_what_train_is(capsys):
    iv.evaluate(Trained(observation="state", visual_seed=7, max_steps=2), TASK, "train", 1)
    told = capsys.readouterr().err
    assert "visual_seed=7" in told
    assert "`train` and the one-factor tests are about look 0, not look 7." in told


def turn(yaw, pitch, roll):
    """Returns the product of three plane rotations, as DMC-GB2's code writes them out."""
    (cy, sy), (cp, sp), (cr, sr) = ((np.cos(a), np.sin(a)) for a in np.radians([yaw, pitch, roll]))
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    return about_z @ about_y @ about_x


def cameras(name, task=TASK):
    (protocol,) = select_protocols(task, name)
    return Rotation.from_rotvec(protocol.start(np.arange(100))["camera/rotation"]).as_matrix()


def holds(matrices, wanted):
    return bool((np.abs(matrices - wanted).max(axis=(1, 2)) < 1e-9).any())


@pytest.mark.parametrize(("level", "most"), [("easy", 90.0), ("hard", 180.0)])
def test_dmc_gb2_rotates_about_the_line_of_sight(level, most):
    seen = cameras(f"rotate_{level}")
    assert all(holds(seen, turn(-most + 2 * most * k / 100, 0, 0)) for k in range(100))


def test_dmc_gb2_shifts_along_four_edges():
    seen = cameras("shift_hard")
    assert all(holds(seen, turn(0, *c)) for c in [(-8, -10), (8, -10), (8, 10), (-8, 10)])
    assert holds(seen, turn(0, 8, -10 + 20 * 7 / 25))
    easy = cameras("shift_easy", "control/ball_in_cup_catch-v1")
    assert all(holds(easy, turn(0, *c)) for c in [(-4, -4), (4, -4), (4, 8), (-4, 8)])


def test_dmc_gb2_does_both_and_the_state_does_not_notice():
    both, shifted, rotated = (cameras(f"{n}_hard") for n in ("rotate_shift", "shift", "rotate"))
    np.testing.assert_allclose(both, shifted @ rotated, atol=1e-12)
    found = iv.evaluate(still, TASK, "rotate_shift_hard,train", episodes=3, **SMALL)
    first, second = np.split(found.scores("return"), 2)
    np.testing.assert_array_equal(np.sort(first), np.sort(second))
