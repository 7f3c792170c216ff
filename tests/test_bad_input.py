"""Law 9: every malformed id, value, shape, NaN, space, file or flag gets a typed error.

One table: the error's type, words that its text must hold, and what is tried. After each try the
world is unchanged, bit for bit.
"""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import interverse as iv
from interverse.cli import main
from interverse.core.errors import (
    ActionError,
    FileFormatError,
    InterventionError,
    InterverseError,
    InvalidValueError,
    ResetNeededError,
    UnknownNameError,
)
from interverse.envs.snapshot import Snapshot
from interverse.worlds import WORLDS
from tests.conformance.cases import same

CHEMISTRY, SLIDER = "chemistry/chain-v1", "tutorial/slider-v1"
NAN, INF = float("nan"), float("inf")


def f32(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


# What `do` is given and what the refusal says, by world.
DO = {
    SLIDER: [
        ({"box/mas": 1.0}, "box/mass"),
        (iv.Shift({"bx": 1}), "bx"),
        (3.0, "cannot be a float"),
        ([("box/mass", 1)], "be a list"),
        ({3: 1.0}, "mapping from variable"),
        ({"box/mass": NAN}, "box/mass holds NaN"),
        ({"gravity": INF}, "gravity holds NaN or inf"),
        ({"box/mass": "heavy"}, "box/mass"),
        ({"box/mass": None}, "box/mass"),
        ({"box/mass": 1j}, "box/mass"),
        ({"box/position": [[1, 2], [3]]}, "box/position"),
        ({"box/mass": [1.0, 2.0]}, r"shape \(2,\)"),
        ({"box/position": [0.1]}, r"shape \(1,\)"),
        ({"box/mass": -1.0}, "box/mass is -1"),
        ({"gravity": 9.81}, "space A_B|its domain"),
        ({"box/color": [2, 0, 0]}, "box/color is"),
    ],
    CHEMISTRY: [
        ({"object_0/color": 5}, "object_0/color is 5"),
        ({"object_0/color": -1}, "object_0/color is -1"),
        ({"object_0/color": 1.5}, "whole numbers"),
        ({"object_9/color": 1}, "Did you mean"),
        ({"edge_0_1": 2}, "edge_0_1 is 2"),
        ({"graph/adjacency": [[0, 1], [0, 0]]}, "graph/adjacency has shape"),
        ({"graph/adjacency": 1 - np.eye(5, dtype=int)}, "graph/adjacency|cycle|edge"),
    ],
}
STEP = {
    SLIDER: [
        (np.zeros(1, np.float32), "shape"),
        (0.5, "shape"),
        (f32(NAN, 0), "NaN"),
        (f32(INF, 0), "NaN or infinity"),
        (np.zeros(2, bool), "bool"),
        (["a", "b"], "numbers"),
        (None, "actions"),
        (f32(3, 3), "Clip them"),
    ],
    CHEMISTRY: [(25, "0 to 24"), (-1, "0 to 24"), (1.0, "whole numbers"), ([1, 2], "shape")],
}


GRAVITY = {"gravity": -8.0}
ON_SLIDER = [
    (InterventionError, "box/position", lambda e: e.do({"box/position": [99, 0, 0]}, check=False)),
    (InterventionError, "set twice", lambda e: e.do(iv.Do(GRAVITY) | iv.Do({"gravity": -6}))),
    (InvalidValueError, "worlds is", lambda e: e.do(GRAVITY, worlds=[4])),
    (InvalidValueError, "worlds is", lambda e: e.do(GRAVITY, worlds=[0.5])),
    (InvalidValueError, "worlds is", lambda e: e.do(GRAVITY, worlds=[True, False])),
    (InvalidValueError, "be a int", lambda e: e.restore(3)),
    (InvalidValueError, "same id and options", lambda e: e.restore(_saved(CHEMISTRY))),
    (InvalidValueError, "options", lambda e: e.restore(_saved(SLIDER, max_steps=7))),
    (
        FileFormatError,
        "not a snapshot",
        lambda e: Snapshot.from_bytes(_saved(SLIDER).to_bytes()[:99]),
    ),
    (FileFormatError, "0 bytes", lambda e: Snapshot.from_bytes(b"")),
    (FileFormatError, "episode", lambda e: iv.Episode.load(__file__)),
]
CALLS = [(SLIDER, *row) for row in ON_SLIDER] + [
    (id, error, match, lambda env, verb=verb, given=given: getattr(env, verb)(given))
    for verb, error, table in (("do", InterventionError, DO), ("step", ActionError, STEP))
    for id, rows in table.items()
    for given, match in rows
]
RESET = [
    (InvalidValueError, "seed must be", {"seed": -1}),
    (UnknownNameError, "Did you mean 'do'", {"options": {"doo": {}}}),
    (InvalidValueError, "a list", {"options": [1]}),
    (InterventionError, "gravity is 3", {"seed": 0, "options": {"do": {"gravity": 3.0}}}),
    (InterventionError, "unknown variable 'x'", {"options": {"do": {"x": 1}}}),
    (
        InvalidValueError,
        "both a snapshot and a do",
        {"options": {"do": {}, "snapshot": 1}},
    ),
    (InvalidValueError, "episode must be", {"options": {"episode": -2}}),
]
BEFORE_RESET = {
    "step": lambda env: env.step(f32(0, 0)),
    "do": lambda env: env.do({"gravity": -8.0}),
    "snapshot": lambda env: env.snapshot(),
}
MAKE = {
    UnknownNameError: [
        ("chain", "chemistry/chian-v1", {}),
        ("-v1", "chemistry/chain", {}),
        ("unknown world ''", "", {}),
        ("objects", CHEMISTRY, {"object": 3}),
        ("space 'C'", SLIDER, {"space": "C"}),
        ("cuda", SLIDER, {"device": "tpu"}),
        ("box/mass", SLIDER, {"defaults": {"box/mas": 1}}),
        ("rgb_array", SLIDER, {"render_mode": "hologram"}),
        ("rgb_array", SLIDER, {"num_envs": 2, "render_mode": "human"}),
        ("next_step", SLIDER, {"num_envs": 2, "autoreset_mode": "never"}),
    ],
    InvalidValueError: [
        ("-1", SLIDER, {"threads": -1}),
        ("is 0", SLIDER, {"max_steps": 0}),
        ("max_steps is 1.5", SLIDER, {"max_steps": 1.5}),
        ("default of box/mass", SLIDER, {"defaults": {"box/mass": -1}}),
        ("num_envs", SLIDER, {"num_envs": 0}),
        ("num_envs is 1.5", SLIDER, {"num_envs": 1.5}),
    ],
    InterverseError: [
        ("0", "chemistry/custom-v1", {"graph": "0->1->0"}),
        ("9", "chemistry/custom-v1", {"graph": "0->9"}),
        ("objects", CHEMISTRY, {"objects": 0}),
        ("objects", CHEMISTRY, {"objects": 26}),
    ],
}

EXTRAS = {"train": "stable_baselines3", "view": "viser"}  # what a verb's words are read with
PLAY = f"evaluate --task {SLIDER} --option"
EXPLAIN = f"explain random --task {SLIDER}"
COLLECT, GRID = f"collect {SLIDER} --out c", "collect blocks/observed-3-v1 --out"
PAIRS = "collect rooms/multi-v1 --out c"
TRAIN = f"train --task {SLIDER} --out t"
ON_COMMAND_LINE = [
    ("lst", "Did you mean 'list'"),
    ("describe", "ID is missing. Give it: interverse describe ID"),
    ("describe chemistry/chian-v1", "Did you mean 'chemistry/chain-v1'"),
    (f"describe {CHEMISTRY} --jsn", "jsn"),
    ("describe :", "cannot be imported"),
    (f"describe {'x' * 5000}", "unknown world 'xxx"),
    ("doctor now", "now"),
    (["new", "world", "mine", "--folder", "a\0b"], "a name is"),
    (["new", "world", "not a name"], "name is 'not a name'"),
    ("new world ../up", "name is '../up'"),
    ("check no_such_module:lab/x-v1", "module 'no_such_module' cannot be imported"),
    ("check json:lab/x-v1", "unknown world 'json:lab/x-v1'"),
    (f"check {SLIDER} --option seed=1", "See --seed"),
    (["report", "a\ud800b"], "a name is"),
    (["evaluate", "--task", ""], "unknown world ''"),
    ("evaluate --tsk x", "unknown flag 'tsk'. Did you mean 'task'?"),
    ("evaluate --episodes many", "--episodes is 'many'. Allowed: a whole number"),
    (f"{PLAY} seed=1", "See --seed"),
    (f"{PLAY} max_steps={10**20}", "from 1 to 10,000,000"),
    (f"{PLAY} max_steps=3 max_steps=9", "max_steps is given twice: max_steps=3 max_steps=9"),
    (f"{PLAY} defaults=[1]", "defaults is [1]"),
    (f"{PLAY} world_id=x", "unknown option 'world_id'"),
    ([*PLAY.split(), 'defaults={"box/mass": "heavy"}'], "default of box/mass"),
    (f"{EXPLAIN} --option policy=3", "See --policy"),
    (f"{EXPLAIN} --option num_envs=3", "unknown option"),
    (f"{EXPLAIN} --episodes {'9' * 14}", "episodes is"),
    (
        f"{EXPLAIN} --factors box=box/mass box=box/size",
        "box is given twice: box=box/mass box=box/size",
    ),
    (f"{COLLECT} --twin block_0/mass=zzz", "unknown variable"),
    (f"{COLLECT} --twin box/mass=zzz", "Allowed: numbers"),
    (f"{COLLECT} --twin box/mass=[1,2]", "box/mass has shape (2,)"),
    (f"{COLLECT} --twin push=B push=B", "push=B is given twice"),
    (f"{GRID} d.h5 --episodes 99999999999999", "episodes is 99999999999999"),
    (f"{GRID} d.h5 --steps 9999999", "episodes x steps is"),
    (f"{GRID} /proc/x.h5 --episodes 1", "/proc/"),
    (f"{GRID} . --episodes 1", "out is ."),
    (f"{GRID} c --pairs 5", "--pairs has no meaning for blocks"),
    ("collect chemistry/chain-v1 --out c --depth", "--depth has no meaning for chemistry"),
    ("collect rooms/multy-v1 --out c", "Did you mean 'rooms/multi-v1'"),
    (f"{PAIRS} --episodes 5", "--episodes has no meaning for rooms/multi-v1"),
    (f"{PAIRS} --images", "--images has no meaning"),
    (f"{PAIRS} --pairs 0", "pairs is 0"),
    (f"{PAIRS} --option qualty=high", "Did you mean 'quality'"),
    (f"{TRAIN} --threads 1000000000", "threads is 1000000000"),
    (f"{TRAIN} --steps {10**30}", "steps is 1000"),
    (f"{TRAIN} --num-envs {10**9}", "num_envs is 1000000000"),
    ("train --algorithm pppo", "value of --algorithm 'pppo'. Did you mean 'ppo'"),
    (f"train {SLIDER}", f"'{SLIDER}' belongs to no flag"),
    ("view chemistry/chan-v1", "chemistry/chain-v1"),
    (f"view {SLIDER} --policy nobody", "unknown policy 'nobody'"),
    (f"view {SLIDER} --option depth", "NAME=VALUE"),
    (f"view {SLIDER} --port 70000", "1 to 65,535"),
    (f"view {SLIDER} --seed -1", "seed"),
]


def _saved(world_id: str, **options: Any) -> Snapshot:
    env = iv.make(world_id, **options)
    env.reset(seed=0)
    return env.snapshot()


@pytest.fixture(scope="module")
def running():
    envs = {name: iv.make(name) for name in (SLIDER, CHEMISTRY)}
    yield envs
    envs[SLIDER].close()


@pytest.mark.parametrize(("world_id", "error", "match", "call"), CALLS)
def test_a_refused_call_changes_nothing(running, world_id, error, match, call):
    env = running[world_id]
    env.reset(seed=3)
    before = dict(env.snapshot().arrays)
    with pytest.raises(error, match=match):
        call(env)
    assert same(before, dict(env.snapshot().arrays)), "the world changed"


@pytest.mark.parametrize(("error", "match", "given"), RESET)
def test_reset(running, error, match, given):
    with pytest.raises(error, match=match):
        running[SLIDER].reset(**given)


@pytest.mark.parametrize("what", BEFORE_RESET)
def test_nothing_is_done_before_a_reset(what):
    with pytest.raises(ResetNeededError, match=f"{what} before reset"):
        BEFORE_RESET[what](iv.make(SLIDER))


@pytest.mark.parametrize(
    ("error", "match", "id", "given"),
    [(error, *row) for error, rows in MAKE.items() for row in rows],
)
def test_make(error, match, id, given):
    with pytest.raises(error, match=match) as caught:
        (iv.make_vec if {"num_envs"} & set(given) else iv.make)(id, **given)
    assert isinstance(caught.value, InterverseError)


def test_seeds_are_one_per_world_and_an_id_has_one_owner():
    with pytest.raises(InvalidValueError, match="one per world"):
        iv.make_vec(SLIDER, num_envs=2).reset(seed=[1])
    with pytest.raises(InvalidValueError, match="registered already"):
        iv.register(SLIDER, "a:b")


@pytest.mark.parametrize(("line", "match"), ON_COMMAND_LINE, ids=lambda part: str(part)[-40:])
def test_command_line(line, match, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = line.split() if isinstance(line, str) else line
    if words[0] in EXTRAS:
        pytest.importorskip(EXTRAS[words[0]])
    assert main(words) == 2
    printed = capsys.readouterr()
    assert match in printed.err
    assert printed.err.count("\n") == 1, "one clear line"
    assert len(printed.err) < 1000
    assert printed.err.count("--help") <= 1
    assert "--help" in printed.err or "flag" not in match, "where all flags are told"
    assert printed.out == ""
    assert not list(tmp_path.iterdir())


def test_a_refused_reset_needs_another(running):
    with pytest.raises(InterventionError):
        running[SLIDER].reset(seed=0, options={"do": {"gravity": 3.0}})
    with pytest.raises(ResetNeededError):
        running[SLIDER].step(f32(0, 0))


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
            except InterverseError:
                continue
            env.reset(seed=0)
            env.close()


@pytest.mark.parametrize("world_id", [3, None, [], "", ":", "x:"])
def test_what_is_no_id_is_refused(world_id):
    with pytest.raises(InterverseError):
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
            except InterverseError:
                continue


def test_a_number_beyond_all_whole_ones_is_refused_without_a_warning():
    env = iv.make("blocks/observed-3-v1")
    env.reset(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InterventionError, match="whole numbers"):
            env.do({"block_0/shape": 1e30})
