"""Law 9: every malformed id, value, shape, NaN, space, file or flag gets a typed error.

One table: what is tried, the error's type, and words its text must hold. After each try the world
is unchanged, bit for bit.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import interverse as iv
from interverse.cli import main
from interverse.core import errors
from interverse.envs.snapshot import Snapshot
from interverse.worlds import WORLDS
from tests.conformance.cases import same

CHEMISTRY, SLIDER = "chemistry/chain-v1", "tutorial/slider-v1"
NAN, INF = float("nan"), float("inf")


class Try(NamedTuple):
    """A mistake, the error it must meet, and words of the text."""

    name: str
    call: Callable[[Any], Any]
    error: type[Exception]
    match: str


def do(**values: Any) -> Callable[[Any], Any]:
    return lambda env: env.do({name.replace("__", "/"): v for name, v in values.items()})


ON_SLIDER = [
    Try("unknown variable", lambda e: e.do({"box/mas": 1.0}), iv.InterventionError, "box/mass"),
    Try(
        "unknown variable in Shift", lambda e: e.do(iv.Shift({"bx": 1})), iv.InterventionError, "bx"
    ),
    Try("no mapping", lambda e: e.do(3.0), iv.InterventionError, "cannot be a float"),
    Try("list of pairs", lambda e: e.do([("box/mass", 1)]), iv.InterventionError, "be a list"),
    Try("name no string", lambda e: e.do({3: 1.0}), iv.InterventionError, "mapping from variable"),
    Try("NaN", do(box__mass=NAN), iv.InterventionError, "box/mass holds NaN"),
    Try("infinity", do(gravity=INF), iv.InterventionError, "gravity holds NaN or inf"),
    Try("string value", do(box__mass="heavy"), iv.InterventionError, "box/mass"),
    Try("None value", do(box__mass=None), iv.InterventionError, "box/mass"),
    Try("complex value", do(box__mass=1j), iv.InterventionError, "box/mass"),
    Try("ragged value", do(box__position=[[1, 2], [3]]), iv.InterventionError, "box/position"),
    Try("wrong shape", do(box__mass=[1.0, 2.0]), iv.InterventionError, r"shape \(2,\)"),
    Try("too few numbers", do(box__position=[0.1]), iv.InterventionError, r"shape \(1,\)"),
    Try("negative mass", do(box__mass=-1.0), iv.InterventionError, "box/mass is -1"),
    Try("gravity upwards", do(gravity=9.81), iv.InterventionError, "space A_B|its domain"),
    Try("colour above one", do(box__color=[2, 0, 0]), iv.InterventionError, "box/color is"),
    Try(
        "box over the edge",
        lambda e: e.do({"box/position": [99.0, 0, 0.5]}, check=False),
        iv.InterventionError,
        "box/position",
    ),
    Try(
        "set twice",
        lambda e: e.do(iv.Do({"gravity": -5}) | iv.Do({"gravity": -6})),
        iv.InterventionError,
        "gravity is set twice",
    ),
    Try(
        "worlds out of range",
        lambda e: e.do({"gravity": -8.0}, worlds=[4]),
        errors.InvalidValueError,
        "worlds is",
    ),
    Try(
        "worlds of floats",
        lambda e: e.do({"gravity": -8.0}, worlds=[0.5]),
        errors.InvalidValueError,
        "worlds is",
    ),
    Try(
        "mask too long",
        lambda e: e.do({"gravity": -8.0}, worlds=[True, False]),
        errors.InvalidValueError,
        "worlds is",
    ),
    Try("action too short", lambda e: e.step(np.zeros(1, np.float32)), errors.ActionError, "shape"),
    Try("action a scalar", lambda e: e.step(0.5), errors.ActionError, "shape"),
    Try("action NaN", lambda e: e.step(np.array([NAN, 0], np.float32)), errors.ActionError, "NaN"),
    Try(
        "action infinite",
        lambda e: e.step(np.array([INF, 0.0], np.float32)),
        errors.ActionError,
        "NaN or infinity",
    ),
    Try("action of bools", lambda e: e.step(np.zeros(2, bool)), errors.ActionError, "bool"),
    Try("action of words", lambda e: e.step(["a", "b"]), errors.ActionError, "numbers"),
    Try("action None", lambda e: e.step(None), errors.ActionError, "actions"),
    Try(
        "action too large",
        lambda e: e.step(np.full(2, 3.0, np.float32)),
        errors.ActionError,
        "Clip them",
    ),
    Try("snapshot no snapshot", lambda e: e.restore(3), errors.InvalidValueError, "be a int"),
    Try(
        "snapshot of another world",
        lambda e: e.restore(_snapshot(CHEMISTRY)),
        errors.InvalidValueError,
        "same id and options",
    ),
    Try(
        "snapshot of other options",
        lambda e: e.restore(_snapshot(SLIDER, max_steps=7)),
        errors.InvalidValueError,
        "options",
    ),
    Try(
        "snapshot torn",
        lambda e: e.restore(Snapshot.from_bytes(e.snapshot().to_bytes()[:99])),
        errors.FileFormatError,
        "not a snapshot",
    ),
    Try(
        "episode file corrupt",
        lambda e: iv.Episode.load(_corrupt()),
        errors.FileFormatError,
        "episode",
    ),
    Try("snapshot empty", lambda e: Snapshot.from_bytes(b""), errors.FileFormatError, "0 bytes"),
]

ON_CHEMISTRY = [
    Try("colour out of range", do(object_0__color=5), iv.InterventionError, "object_0/color is 5"),
    Try("colour negative", do(object_0__color=-1), iv.InterventionError, "object_0/color is -1"),
    Try("colour no whole number", do(object_0__color=1.5), iv.InterventionError, "whole numbers"),
    Try("object too many", do(object_9__color=1), iv.InterventionError, "Did you mean"),
    Try("edge not 0 or 1", do(edge_0_1=2), iv.InterventionError, "edge_0_1 is 2"),
    Try(
        "adjacency of wrong shape",
        do(graph__adjacency=[[0, 1], [0, 0]]),
        iv.InterventionError,
        "graph/adjacency has shape",
    ),
    Try(
        "adjacency with a cycle",
        lambda e: e.do({"graph/adjacency": 1 - np.eye(5, dtype=int)}),
        iv.InterventionError,
        "graph/adjacency|cycle|edge",
    ),
    Try("action out of range", lambda e: e.step(25), errors.ActionError, "0 to 24"),
    Try("action negative", lambda e: e.step(-1), errors.ActionError, "0 to 24"),
    Try("action a float", lambda e: e.step(1.0), errors.ActionError, "whole numbers"),
    Try("action a list", lambda e: e.step([1, 2]), errors.ActionError, "shape"),
]

ON_RESET = [
    Try("seed negative", lambda e: e.reset(seed=-1), errors.InvalidValueError, "seed must be"),
    Try(
        "unknown reset option",
        lambda e: e.reset(options={"doo": {}}),
        errors.UnknownNameError,
        "Did you mean 'do'",
    ),
    Try("options no dict", lambda e: e.reset(options=[1]), errors.InvalidValueError, "a list"),
    Try(
        "refused do",
        lambda e: e.reset(seed=0, options={"do": {"gravity": 3.0}}),
        iv.InterventionError,
        "gravity is 3",
    ),
    Try(
        "unknown variable",
        lambda e: e.reset(options={"do": {"x": 1}}),
        iv.InterventionError,
        "unknown variable 'x'",
    ),
    Try(
        "do and snapshot",
        lambda e: e.reset(options={"do": {}, "snapshot": 1}),
        errors.InvalidValueError,
        "both a snapshot and a do",
    ),
    Try(
        "episode negative",
        lambda e: e.reset(options={"episode": -2}),
        errors.InvalidValueError,
        "episode must be",
    ),
    Try(
        "step before reset",
        lambda e: iv.make(SLIDER).step(np.zeros(2, np.float32)),
        errors.ResetNeededError,
        "step before reset",
    ),
    Try(
        "do before reset",
        lambda e: iv.make(SLIDER).do({"gravity": -8.0}),
        errors.ResetNeededError,
        "do before reset",
    ),
    Try(
        "snapshot before reset",
        lambda e: iv.make(SLIDER).snapshot(),
        errors.ResetNeededError,
        "snapshot before reset",
    ),
]

ON_MAKE = [
    Try("unknown id", lambda e: iv.make("chemistry/chian-v1"), errors.UnknownNameError, "chain"),
    Try("id without version", lambda e: iv.make("chemistry/chain"), errors.UnknownNameError, "-v1"),
    Try("id empty", lambda e: iv.make(""), errors.UnknownNameError, "unknown world ''"),
    Try(
        "unknown option", lambda e: iv.make(CHEMISTRY, object=3), errors.UnknownNameError, "objects"
    ),
    Try(
        "unknown space", lambda e: iv.make(SLIDER, space="C"), errors.UnknownNameError, "space 'C'"
    ),
    Try("unknown device", lambda e: iv.make(SLIDER, device="tpu"), errors.UnknownNameError, "cuda"),
    Try("threads negative", lambda e: iv.make(SLIDER, threads=-1), errors.InvalidValueError, "-1"),
    Try("max_steps zero", lambda e: iv.make(SLIDER, max_steps=0), errors.InvalidValueError, "is 0"),
    Try(
        "max_steps a float",
        lambda e: iv.make(SLIDER, max_steps=1.5),
        errors.InvalidValueError,
        "max_steps is 1.5",
    ),
    Try(
        "unknown default",
        lambda e: iv.make(SLIDER, defaults={"box/mas": 1}),
        errors.UnknownNameError,
        "box/mass",
    ),
    Try(
        "default out of domain",
        lambda e: iv.make(SLIDER, defaults={"box/mass": -1}),
        errors.InvalidValueError,
        "default of box/mass",
    ),
    Try(
        "unknown render mode",
        lambda e: iv.make(SLIDER, render_mode="hologram"),
        errors.UnknownNameError,
        "rgb_array",
    ),
    Try(
        "a window of many worlds",
        lambda e: iv.make_vec(SLIDER, num_envs=2, render_mode="human"),
        errors.UnknownNameError,
        "rgb_array",
    ),
    Try(
        "no worlds", lambda e: iv.make_vec(SLIDER, num_envs=0), errors.InvalidValueError, "num_envs"
    ),
    Try(
        "half a world",
        lambda e: iv.make_vec(SLIDER, num_envs=1.5),
        errors.InvalidValueError,
        "num_envs is 1.5",
    ),
    Try(
        "unknown autoreset",
        lambda e: iv.make_vec(SLIDER, num_envs=2, autoreset_mode="never"),
        errors.UnknownNameError,
        "next_step",
    ),
    Try(
        "graph with a cycle",
        lambda e: iv.make("chemistry/custom-v1", graph="0->1->0"),
        errors.InterverseError,
        "0",
    ),
    Try(
        "edge out of range",
        lambda e: iv.make("chemistry/custom-v1", graph="0->9"),
        errors.InterverseError,
        "9",
    ),
    Try("no objects", lambda e: iv.make(CHEMISTRY, objects=0), errors.InterverseError, "objects"),
    Try(
        "too many objects",
        lambda e: iv.make(CHEMISTRY, objects=26),
        errors.InterverseError,
        "objects",
    ),
    Try(
        "seeds of wrong count",
        lambda e: iv.make_vec(SLIDER, num_envs=2).reset(seed=[1]),
        errors.InvalidValueError,
        "one per world",
    ),
    Try(
        "id registered twice",
        lambda e: iv.register(SLIDER, "a:b"),
        errors.InvalidValueError,
        "registered already",
    ),
]

ON_COMMAND_LINE = [
    (["lst"], "Did you mean 'list'"),
    (["describe"], "ID is missing"),
    (["describe", "chemistry/chian-v1"], "Did you mean 'chemistry/chain-v1'"),
    (["describe", CHEMISTRY, "--jsn"], "jsn"),
    (["doctor", "now"], "now"),
    (["new", "world", "mine", "--folder", "a\0b"], "a name is"),
    (["report", "a\ud800b"], "a name is"),
    (["evaluate", "--task", ""], "unknown world ''"),
    (["evaluate", "--task", SLIDER, "--option", "seed=1"], "See --seed"),
    (["evaluate", "--task", SLIDER, "--option", f"max_steps={10**20}"], "from 1 to 10,000,000"),
    (["check", SLIDER, "--option", "seed=1"], "See --seed"),
    (["explain", "random", "--task", SLIDER, "--option", "policy=3"], "See --policy"),
    (["explain", "random", "--task", SLIDER, "--option", "num_envs=3"], "unknown option"),
    (["explain", "random", "--task", SLIDER, "--episodes", "9" * 14], "episodes is"),
    (["collect", SLIDER, "--out", "c", "--twin", "block_0/mass=zzz"], "unknown variable"),
    (["collect", SLIDER, "--out", "c", "--twin", "box/mass=zzz"], "Allowed: numbers"),
    (["collect", SLIDER, "--out", "c", "--twin", "box/mass=[1,2]"], "box/mass has shape (2,)"),
    (["collect", SLIDER, "--out", "c", "--twin", "push=B", "push=B"], "push=B is given twice"),
    (
        ["evaluate", "--task", SLIDER, "--option", "max_steps=3", "max_steps=9"],
        "max_steps is given twice: max_steps=3 max_steps=9",
    ),
    (
        ["explain", "random", "--task", SLIDER, "--factors", "box=box/mass", "box=box/size"],
        "box is given twice: box=box/mass box=box/size",
    ),
]


def _corrupt() -> Path:
    path = Path(tempfile.mkdtemp()) / "torn.h5"
    path.write_bytes(b"not HDF5")
    return path


def _snapshot(world_id: str, **options: Any) -> Snapshot:
    env = iv.make(world_id, **options)
    env.reset(seed=0)
    return env.snapshot()


@pytest.fixture(scope="module")
def slider():
    env = iv.make(SLIDER)
    yield env
    env.close()


@pytest.fixture(scope="module")
def chemistry():
    return iv.make(CHEMISTRY)


def check(env, attempt):
    env.reset(seed=3)
    before = dict(env.snapshot().arrays)
    with pytest.raises(attempt.error, match=attempt.match):
        attempt.call(env)
    assert same(before, dict(env.snapshot().arrays)), "the world changed"


@pytest.mark.parametrize("attempt", ON_SLIDER, ids=lambda t: t.name)
def test_slider(slider, attempt):
    check(slider, attempt)


@pytest.mark.parametrize("attempt", ON_CHEMISTRY, ids=lambda t: t.name)
def test_chemistry(chemistry, attempt):
    check(chemistry, attempt)


@pytest.mark.parametrize("attempt", ON_RESET, ids=lambda t: t.name)
def test_reset(slider, attempt):
    with pytest.raises(attempt.error, match=attempt.match):
        attempt.call(slider)


@pytest.mark.parametrize("attempt", ON_MAKE, ids=lambda t: t.name)
def test_make(attempt):
    with pytest.raises(attempt.error, match=attempt.match) as caught:
        attempt.call(None)
    assert isinstance(caught.value, errors.InterverseError)


@pytest.mark.parametrize(("args", "match"), ON_COMMAND_LINE, ids=lambda v: " ".join(v)[:20])
def test_command_line(args, match, capsys):
    assert main(args) == 2
    printed = capsys.readouterr()
    assert match in printed.err
    assert printed.err.count("\n") == 1, "one clear line"
    assert printed.out == ""


def test_a_refused_reset_needs_another(slider):
    with pytest.raises(iv.InterventionError):
        slider.reset(seed=0, options={"do": {"gravity": 3.0}})
    with pytest.raises(errors.ResetNeededError):
        slider.step(np.zeros(2, np.float32))


def test_the_table_is_long_enough():
    rows = [*ON_SLIDER, *ON_CHEMISTRY, *ON_RESET, *ON_MAKE, *ON_COMMAND_LINE]
    assert len(rows) >= 60


HUGE = [10**30, 10**400, 1e300, -np.inf, [10**30]]
ODD = [None, [], {}, -1, 0, 3.5, "x", NAN, object(), True, [[1]], 10**12, np.zeros(2), ("x",), 1j]
ODD += HUGE
WITH_OPTIONS = {
    "blocks/observed-3-v1": {},
    "chemistry/chain-v1": {},
    "control/cartpole_balance-v1": {"observation": "state"},
    "rooms/single-v1": {"image_size": 24, "objects": 1},
    "trifinger/pushing-v1": {},
    SLIDER: {},
}


@pytest.mark.parametrize("world_id", WITH_OPTIONS)
def test_an_odd_value_of_any_option_is_taken_or_refused_with_a_reason(world_id):
    for name in (option.name for option in fields(WORLDS.load(world_id).options_type)):
        for value in ODD:
            try:
                env = iv.make(world_id, **{**WITH_OPTIONS[world_id], name: value})
            except errors.InterverseError:
                continue
            env.reset(seed=0)
            env.close()


@pytest.mark.parametrize("world_id", [3, None, [], "", ":", "x:"])
def test_what_is_no_id_is_refused(world_id):
    with pytest.raises(errors.InterverseError):
        iv.make(world_id)


def test_an_odd_argument_of_the_public_functions_is_taken_or_refused_with_a_reason():
    fact = iv.rollout(SLIDER, "random", seed=0, max_steps=2)
    tried = {
        iv.rollout: ({"env": SLIDER, "policy": "random", "max_steps": 1}, ("env", "seed", "do")),
        iv.counterfactual: ({"episode": fact, "do": {}}, ("episode", "do", "at")),
        iv.register: ({"id": SLIDER, "target": ""}, ("id", "target")),  # refused in any case
        iv.evaluate: (
            {"policy": "random", "task": SLIDER, "episodes": 1, "max_steps": 1},
            ("task", "protocols", "metrics", "episodes", "seed", "seeds"),
        ),
    }
    for function, (usual, names) in tried.items():
        for name, value in ((name, value) for name in names for value in ODD):
            try:
                function(**{**usual, name: value})
            except errors.InterverseError:
                continue


def test_a_number_beyond_all_whole_ones_is_refused_without_a_warning():
    env = iv.make("blocks/observed-3-v1")
    env.reset(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(iv.InterventionError, match="whole numbers"):
            env.do({"block_0/shape": 1e30})
