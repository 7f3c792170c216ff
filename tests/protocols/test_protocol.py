"""Protocols: every draw is kept, grids list what episodes start with, legacy follows the quirks."""

import json
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.wrappers import CurriculumVectorEnv
from interverse.core.errors import InterverseError, InvalidValueError, UnknownNameError
from interverse.protocols.protocol import (
    Protocol,
    Region,
    describe,
    protocol_from,
    select_protocols,
)
from interverse.reports.plots.bars import protocol_grid
from interverse.results import tables

SLIDER = "tutorial/slider-v1"
ORACLE = Path(__file__).parent.parent / "parity" / "data" / "trifinger.json"
RECORDED = json.loads(ORACLE.read_text())["protocol_acceptance"]["protocols"]


def test_every_draw_within_an_episode_is_kept():
    gusts = Protocol(name="gusts", variables={"box/mass": "B"}, at=(0, 10, 20))
    results = iv.evaluate("random", task=SLIDER, protocols=[gusts], episodes=40, max_steps=30)
    assert results.variables == ["box/mass@0", "box/mass@10", "box/mass@20"]
    drawn = np.hstack([results.values(name) for name in results.variables])
    assert ((drawn > 0.6) & (drawn <= 0.9)).all()
    assert len(np.unique(drawn)) == drawn.size, "three draws an episode, all different"
    late = Protocol(name="late", variables={"box/mass": "B"}, at=(10,))
    once = iv.evaluate("random", task=SLIDER, protocols=[late], episodes=3, max_steps=20)
    assert once.variables == ["box/mass"], "one draw needs no step"


@pytest.mark.parametrize(
    "silent",
    [
        Protocol(name="late", variables={"box/mass": "B"}, at=(5000,)),
        Protocol(name="never", variables={"box/mass": "B"}, at=()),
        Protocol(name="nothing", everything="A", without=tuple(iv.make(SLIDER).variables)),
        Protocol(name="other", variables={"box/mass": "B"}, ranges={"box/friction": {0: (0, 1)}}),
        Protocol(name="typing error", everything="A", without=("box/mas",)),
    ],
    ids=lambda protocol: protocol.name,
)
def test_a_protocol_that_would_change_nothing_is_refused(silent):
    with pytest.raises(InterverseError):
        iv.evaluate("random", task=SLIDER, protocols=[silent], episodes=1)


@pytest.mark.parametrize("rows", [np.zeros((1, 2), np.float32), np.zeros(2, np.float32), 0.5])
def test_a_policy_that_forgets_worlds_is_told_so(rows):
    with pytest.raises(InterverseError, match="the policy returned actions of shape"):
        iv.evaluate(lambda seen: rows, task=SLIDER, protocols="P0", episodes=3, max_steps=3)


def test_an_episode_that_ends_before_a_draw_lacks_it():
    gusts = Protocol(name="gusts", variables={"box/mass": "B"}, at=(0, 50))
    results = iv.evaluate("random", task=SLIDER, protocols=[gusts], episodes=3, max_steps=30)
    assert results.variables == ["box/mass@0"]


def test_a_coin_that_leaves_a_variable_alone_leaves_its_column_empty():
    results = iv.evaluate(
        "random", task="trifinger/pushing-v1", protocols="P10", episodes=30, max_steps=2
    )
    sized = ~np.isnan(results.values("block_0/size")[:, 0])
    placed = ~np.isnan(results.values("block_0/cylindrical_position")[:, 0])
    assert (sized ^ placed).all()
    assert 5 < sized.sum() < 25


def test_a_grid_lists_what_episodes_start_with():
    listed = Protocol(
        name="listed",
        grid={"box/mass": (0.5, 0.7, 0.9), "box/friction": (0.2, 0.3)},
        options={"max_steps": 4},
    )
    results = iv.evaluate("random", task=SLIDER, protocols=[listed], episodes=7)
    assert results.values("box/mass")[:, 0].tolist() == [0.5, 0.7, 0.9, 0.5, 0.7, 0.9, 0.5]
    assert results.values("box/friction")[:, 0].tolist() == [0.2, 0.2, 0.2, 0.3, 0.3, 0.3, 0.2]
    assert (results.column("length") == 4).all(), "the protocol's own options hold"
    assert results.about("box/mass") == {"listed": True}
    assert tables.gaps(results, "return").rows == ()
    assert protocol_grid(results).rows[0][1] == ("\N{BULLET}",)


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(name="a", everything="A", variables={"block_*/mass": "B"}, at=(0, 9)),
        Protocol(name="b", grid={"x": range(3)}, options={"vary": ["light"]}, note="n"),
        select_protocols("trifinger/picking-v1", "P7_legacy")[0],
    ],
    ids=lambda p: p.name,
)
def test_a_protocol_can_be_read_back_from_the_results(protocol):
    text = json.dumps(describe(protocol))
    again = protocol_from(protocol.name, json.loads(text))
    assert describe(again) == describe(protocol)
    assert again.start(np.arange(5)).keys() == protocol.start(np.arange(5)).keys()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Protocol(name="p", variables={"x": "C"}), "region of x is 'C'"),
        (lambda: Protocol(name="p", everything="C"), "region of"),
        (lambda: Protocol(name="p", grid={"x": ()}), "at least one value"),
        (lambda: Protocol(name="p", at=(-1,)), "steps from 0"),
    ],
)
def test_mistakes_in_a_protocol(make, match):
    with pytest.raises(InvalidValueError, match=match):
        make()


def test_a_grid_of_an_unknown_variable_shows_before_any_work():
    with pytest.raises(UnknownNameError, match="box/mas"):
        iv.evaluate("random", task=SLIDER, protocols=[Protocol(name="g", grid={"box/mas": (1,)})])


# ------------------------------------------------------------------ regions


def test_a_everywhere_but_b_for_the_mass_is_one_expression():
    heavy = Region({"block_*/mass": "B"}, rest="A")
    assert heavy == Region(rest="A") | Region({"block_*/mass": "B"})
    venv = iv.make_vec("trifinger/pushing-v1", num_envs=20, threads=1)
    venv.reset(seed=0)
    driver = venv.unwrapped.driver
    drawn = heavy.protocol("heavy").draw(driver, np.arange(20), 0)
    spaces = driver.variables
    for name, rows in drawn.items():
        if name.endswith(("size", "position", "orientation")):
            continue  # their spaces depend on what was drawn before them
        space = spaces[name].space_b if name == "block_0/mass" else spaces[name].space_a
        assert space.inside(np.asarray(rows)).all(), name
    assert {"block_0/mass", "floor/friction", "goal_0/color"} <= drawn.keys()
    venv.close()


def test_a_region_to_train_in_is_a_stage():
    train = Region({"box/mass": "A"}) | Region({"gravity": "B"})
    curriculum = Curriculum(stages=(Stage(actor=train.actor()),))
    venv = CurriculumVectorEnv(iv.make_vec(SLIDER, num_envs=5), curriculum)
    venv.reset(seed=0)
    now, spaces = venv.unwrapped.values, venv.unwrapped.variables
    assert spaces["box/mass"].space_a.inside(now["box/mass"]).all()
    assert spaces["gravity"].space_b.inside(now["gravity"]).all()


# ------------------------------------------------------------------- legacy


@pytest.mark.parametrize("number", range(4, 10))
@pytest.mark.parametrize("task", ["pushing", "picking", "pick_and_place"])
def test_legacy_heights_are_those_recorded_in_benchmark_order(task, number):
    world = f"trifinger/{task}-v1"
    (protocol,) = select_protocols(world, f"P{number}_legacy")
    (modern,) = select_protocols(world, f"P{number}")
    assert protocol.variables == modern.variables
    venv = iv.make_vec(world, num_envs=60, threads=1)
    venv.reset(seed=0)
    refused = protocol.apply(venv.unwrapped.driver, np.arange(60))
    assert len(refused) <= 6
    kept = [w for w in range(60) if w not in refused]
    record = RECORDED[f"{task.upper()}_BENCHMARK/P{number}"]
    for name, key in (("block_0", "tool_z_minmax"), ("goal_0", "goal_z_minmax")):
        heights = venv.unwrapped.values[f"{name}/cartesian_position"][kept, 2]
        low, high = record[key]
        # The ends of 60 uniform draws lie within 15% of the range of the recorded ones.
        slack = 1e-9 + 0.15 * (high - low)
        assert abs(heights.min() - low) <= slack, (name, heights.min(), record)
        assert abs(heights.max() - high) <= slack, (name, heights.max(), record)
    venv.close()


def test_all_leaves_legacy_out_and_legacy_names_them():
    task = "trifinger/stacking2-v1"
    assert not any(p.legacy for p in select_protocols(task, "all"))
    assert [p.name for p in select_protocols(task, "legacy")] == [
        f"P{i}_legacy" for i in range(6, 12)
    ]
    names = [p.name for p in select_protocols("trifinger/pushing-v1", "legacy")]
    assert names == [f"P{i}_legacy" for i in range(4, 10)]
    for name in ("pushing", "picking", "pick_and_place", "stacking2"):
        for protocol in select_protocols(f"trifinger/{name}-v1", "legacy"):
            assert protocol.note
    with pytest.raises(InvalidValueError, match="no protocol"):
        select_protocols(SLIDER, "legacy")


def test_a_resized_block_of_picking_keeps_its_centre_in_legacy():
    (protocol,) = select_protocols("trifinger/picking-v1", "P3_legacy")
    venv = iv.make_vec("trifinger/picking-v1", num_envs=40, threads=1)
    venv.reset(seed=0)
    assert not protocol.apply(venv.unwrapped.driver, np.arange(40))
    values = venv.unwrapped.values
    assert np.ptp(values["block_0/size"][:, 2]) > 0.01
    assert np.array_equal(values["block_0/size"], values["goal_0/size"])
    assert np.allclose(values["block_0/cartesian_position"], (0.0, 0.0, 0.0325), atol=1e-12)
    venv.close()


def drawn_masses(**given):
    protocol = Protocol(name="g", **given)
    return iv.evaluate("random", task=SLIDER, protocols=[protocol], episodes=4, max_steps=2)


def test_a_grid_that_would_be_drawn_over_is_refused():
    with pytest.raises(InvalidValueError, match="the grid lists box/mass and box/mass is drawn"):
        drawn_masses(grid={"box/mass": (0.5,)}, variables={"box/m*": "A"})
    later = drawn_masses(grid={"box/mass": (0.5,)}, variables={"box/mass": "B"}, at=(1,))
    assert (later.values("box/mass") > 0.6).all(), "the start is listed, what is set later drawn"
    twin = {"grid": {"block_0/cartesian_position": ((0.1, 0.0, 0.0325),)}}
    twin |= {"variables": {"block_0/cylindrical_position": "A"}}
    with pytest.raises(InvalidValueError, match="lists block_0/cartesian_position and block_0/cyl"):
        iv.evaluate("random", "trifinger/pushing-v1", Protocol(name="g", **twin), episodes=1)


def test_everything_leaves_what_a_grid_lists_alone():
    results = drawn_masses(grid={"box/mass": (0.5, 0.55)}, everything="A")
    assert results.values("box/mass")[:, 0].tolist() == [0.5, 0.55, 0.5, 0.55]
    assert len(np.unique(results.values("box/friction"))) == 4
    whose = iv.make("trifinger/pushing-v1")
    whose.reset(seed=0)
    sized = Protocol(name="g", grid={"goal_0/size": ([0.06] * 3,)}, everything="A")
    drawn = sized.draw(whose.driver, np.arange(1), 0)
    assert not {"block_0/size", "goal_0/size"} & drawn.keys(), "one size by two names"
    assert "block_0/mass" in drawn


def test_numpy_is_taken_in_protocols(tmp_path):
    listed = Protocol(name="g", grid={"box/mass": np.linspace(0.3, 0.6, 3)}, at=np.array([0, 1]))
    assert listed.grid["box/mass"][0] == 0.3
    assert listed.at == (0, 1)
    given = {"task": SLIDER, "protocols": [listed], "max_steps": np.int64(2), "out": tmp_path / "a"}
    results = iv.evaluate("random", **given, episodes=np.int64(2), seed=np.int64(3))
    again = iv.evaluate("random", **given, episodes=2, seed=3)
    assert results.data.equals(again.data)
    sizes = Protocol(name="s", grid={"box/size": np.full((2, 3), 0.2)}, options={"max_steps": 1})
    assert json.dumps(describe(sizes))
    ranged = Protocol(name="r", variables={"x": "A"}, ranges={"x": {0: np.array([0.1, 0.2])}})
    assert protocol_from("r", json.loads(json.dumps(describe(ranged)))).ranges["x"][0] == (0.1, 0.2)


@pytest.mark.parametrize(
    "given",
    [
        {"at": 0},
        {"at": (0.5,)},
        {"at": (True,)},
        {"at": "0"},
        {"grid": {"box/mass": 0.4}},
        {"grid": {"box/mass": "0.4"}},
        {"grid": ["box/mass"]},
        {"variables": ["box/mass"]},
        {"variables": "box/mass"},
        {"variables": {"box/mass": ["A"]}},
        {"everything": "A", "without": "gravity"},
        {"options": ["max_steps"]},
        {"ranges": {"box/size": (0.1, 0.2)}},
        {"ranges": {"box/size": {0: 0.1}}},
    ],
    ids=str,
)
def test_malformed_protocols_are_refused(given):
    with pytest.raises(InvalidValueError):
        Protocol(name="g", **given)


@pytest.mark.parametrize(
    "parts", [{5: (0.1, 0.2)}, {-1: (0.1, 0.2)}, {"x": (0.1, 0.2)}, {0: (0.2, 0.1)}, {0: (0.1,)}]
)
def test_a_range_of_a_component_that_is_not_there_is_refused(parts):
    ranged = Protocol(name="g", variables={"box/size": "A"}, ranges={"box/size": parts})
    with pytest.raises(InvalidValueError, match="the range of box/size is"):
        iv.evaluate("random", task=SLIDER, protocols=[ranged], episodes=1, max_steps=1)


@pytest.mark.parametrize("values", [((0.1, 0.1, 0.1), (0.1,)), ((0.1, (0.1,)),), (0.1,)])
def test_a_grid_of_other_shapes_is_refused(values):
    with pytest.raises(InvalidValueError, match=r"for box/size\. Allowed: values of shape \(3,\)"):
        drawn_masses(grid={"box/size": values})


def test_a_protocol_that_comes_too_late_says_so(capsys):
    late = Protocol(name="late", variables={"box/mass": "A"}, at=(1, 50))
    results = iv.evaluate("random", task=SLIDER, protocols=[late], episodes=60, max_steps=20)
    said = "Protocol late does not act before action 50: episodes have 20 actions."
    assert capsys.readouterr().err.count(said) == 1
    assert results.provenance["notes"] == [said]


@pytest.mark.parametrize("task", ["tutorial/slder-v1", None, 3])
def test_an_unknown_task_is_told_before_its_protocols(task):
    with pytest.raises(InterverseError, match="unknown world"):
        iv.evaluate("random", task=task, protocols="P0,P3")


def test_a_protocol_of_looks_that_no_observation_shows_says_so(capsys):
    look = Protocol(name="floors", variables={"floor/color": "B"})
    given = {"episodes": 1, "max_steps": 2}
    found = iv.evaluate("random", "trifinger/reaching-v1", look, **given)
    assert "Protocol floors changes looks alone, and observations show none" in (
        capsys.readouterr().err
    )
    assert any("looks alone" in note for note in found.provenance["notes"])
    heavy = Protocol(name="heavy", variables={"gravity": "B"})
    iv.evaluate("random", "trifinger/reaching-v1", heavy, **given)
    assert "looks" not in capsys.readouterr().err


def test_protocols_whose_episodes_score_as_those_where_nothing_is_set_are_told(capsys):
    still = lambda seen: np.zeros((len(seen), 2), dtype=np.float32)  # noqa: E731
    given = {"episodes": 3, "max_steps": 5}
    found = iv.evaluate(still, "tutorial/slider-v1", "P0-P3", **given)
    said = "Returns under P1, P2, P3 are those of P0, episode for episode, to the last digit"
    assert said in capsys.readouterr().err
    assert any(said in note for note in found.provenance["notes"])
    iv.evaluate("random", "tutorial/slider-v1", "P0,P2", **{**given, "max_steps": 20})
    assert capsys.readouterr().err == ""
