"""`iv.evaluate`: worker count, restart and order never change a score; mistakes lose nothing."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import interverse as iv
from interverse.cli import main
from interverse.core.errors import InvalidValueError, StorageError, UnknownNameError
from interverse.protocols import unit as unit_module
from interverse.protocols.protocol import Protocol, Region, select_protocols
from interverse.protocols.unit import ROWS, Unit, play, run_unit
from interverse.results import Results
from tests.envs.toy import ID, ensure_registered

ensure_registered()
SLIDER = "tutorial/slider-v1"


def towards_goal(observations):
    """A slider policy: push the box towards the goal."""
    place, goal = observations[:, 0:2], observations[:, 9:11]
    return np.clip(4.0 * (goal - place), -1.0, 1.0).astype(np.float32)


def table(results):
    return results.to_pandas().drop(columns=["experiment"]).to_csv(index=False)


@pytest.fixture(scope="module")
def serial():
    return iv.evaluate("random", task=SLIDER, protocols="P0-P5", episodes=60, max_steps=30)


def test_rows_and_columns(serial):
    frame = serial.to_pandas()
    assert len(frame) == 6 * 60
    assert list(frame.columns[:11]) == [
        "task",
        "protocol",
        "seed",
        "episode",
        "last_fractional_success",
        "mean_fractional_success",
        "last20_fractional_success",
        "return",
        "length",
        "refused",
        "reason",
    ]
    assert frame["last_fractional_success"].isna().all()  # the slider has none: null, not zero
    assert (frame["length"] == 30).all()
    assert sorted(set(frame["protocol"])) == ["P0", "P1", "P2", "P3", "P4", "P5"]


def test_values_lie_in_the_protocols_regions(serial):
    mass = serial.select(protocol="P2").values("box/mass")[:, 0]
    assert ((mass > 0.6) & (mass <= 0.9)).all()
    assert len(np.unique(mass)) == 60
    assert np.isnan(serial.select(protocol="P0").values("box/mass")).all()


def test_a_protocol_alone_equals_itself_among_others(serial):
    alone = iv.evaluate("random", task=SLIDER, protocols="P3", episodes=60, max_steps=30)
    assert np.array_equal(alone.scores("return"), serial.select(protocol="P3").scores("return"))


def test_fewer_episodes_are_the_first_of_more(serial):
    few = iv.evaluate("random", task=SLIDER, protocols="P1", episodes=7, max_steps=30)
    many = serial.select(protocol="P1").scores("return")
    assert np.array_equal(few.scores("return"), many[:7])


def test_workers_do_not_change_a_byte(serial, tmp_path):
    one = iv.evaluate(
        "random", task=SLIDER, protocols="P1,P4", episodes=60, max_steps=30, out=tmp_path / "one"
    )
    two = iv.evaluate(
        "random",
        task=SLIDER,
        protocols="P1,P4",
        episodes=60,
        max_steps=30,
        workers=2,
        out=tmp_path / "two",
    )
    assert table(one) == table(two)
    name = "results.parquet"
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


TWELVE = {"task": SLIDER, "protocols": "P0-P5", "episodes": 100, "max_steps": 60}  # units
SCRIPT = f"import sys, interverse as iv; iv.evaluate('random', out=sys.argv[1], **{TWELVE})"


def test_killed_half_way_and_started_again_it_ends_the_same(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / "killed")])
    units = tmp_path / "killed" / "units"
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and len(list(units.glob("*.parquet"))) < 2:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 2 <= len(list(units.glob("*.parquet"))) < 12
    assert not (tmp_path / "killed" / "results.parquet").exists()
    for name in ("killed", "whole"):
        iv.evaluate("random", out=tmp_path / name, **TWELVE)
    name = "results.parquet"
    assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_torn_unit_is_run_again(tmp_path):
    def run():
        return iv.evaluate(
            "random", task=SLIDER, protocols="P1", episodes=60, max_steps=10, out=tmp_path
        )

    first = table(run())
    file = next((tmp_path / "units").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    assert table(run()) == first


def test_a_folder_of_another_evaluation_is_not_touched(tmp_path):
    iv.evaluate("random", task=SLIDER, protocols="P0", episodes=2, max_steps=5, out=tmp_path)
    before = (tmp_path / "results.parquet").read_bytes()
    with pytest.raises(InvalidValueError, match="holds another evaluation"):
        iv.evaluate("random", task=SLIDER, protocols="P0", episodes=2, max_steps=6, out=tmp_path)
    assert (tmp_path / "results.parquet").read_bytes() == before


def pushing(strength):
    """Two policies of one name: what they close over tells them apart."""

    def policy(observations):
        return np.full((len(observations), 2), strength, dtype=np.float32)

    return policy


def test_a_folder_holds_one_policy_whatever_its_name(tmp_path):
    settings = {"task": SLIDER, "protocols": "P0", "episodes": 2, "max_steps": 3, "out": tmp_path}
    first = iv.evaluate(pushing(0.0), version="still", **settings)
    assert table(iv.evaluate(pushing(0.0), version="still", **settings)) == table(first)
    with pytest.raises(InvalidValueError, match="holds another evaluation"):
        iv.evaluate(pushing(1.0), version="strong", **settings)
    with pytest.raises(InvalidValueError, match="holds another evaluation"):
        iv.evaluate("random", experiment="policy", **settings)


def test_a_policy_that_aims_beats_chance(serial):
    aimed = iv.evaluate(towards_goal, task=SLIDER, protocols="P0", episodes=60, max_steps=30)
    chance = serial.select(protocol="P0")
    assert aimed.experiments == ["towards_goal"]
    assert np.nanmean(aimed.scores("return")) > np.nanmean(chance.scores("return")) + 1.0


def test_refused_episodes_are_reported_and_never_scored():
    refusing = Protocol(name="on the edge", variables={"x": "A"})
    results = iv.evaluate("random", task=ID, protocols=[refusing], episodes=10)
    assert not results.refused.any()
    import tests.envs.toy as toy

    original = toy.Walk.intervene
    toy.Walk.intervene = lambda self, values, worlds: (
        {int(w): "no" for w in worlds if w % 2} if values else {}
    )
    try:
        results = iv.evaluate("random", task=ID, protocols=[refusing], episodes=10)
    finally:
        toy.Walk.intervene = original
    assert results.refused.tolist() == [False, True] * 5
    assert results.to_pandas()["return"].isna().tolist() == [False, True] * 5
    assert set(results.to_pandas()["reason"].dropna()) == {"no"}


def test_in_episode_protocols_act_at_their_steps():
    late = Protocol(name="late", variables={"gain": "B"}, at=(5,))
    early = Protocol(name="early", variables={"gain": "B"})
    results = iv.evaluate("random", task=ID, protocols=[early, late], episodes=20)
    a, b = (results.select(protocol=name).scores("return") for name in ("early", "late"))
    assert not np.array_equal(a, b)


def test_regions_combine():
    everywhere = Region({"gain": "A", "x": "A"})
    assert dict((everywhere | Region({"gain": "B"})).protocol("odd").variables) == {
        "gain": "B",
        "x": "A",
    }


def test_selection():
    names = [p.name for p in select_protocols("trifinger/stacking2-v1", "P0-P11")]
    assert names == ["P0", "P1", "P2", "P4", "P5", "P6", "P7", "P8", "P9", "P10", "P11"]
    assert [p.name for p in select_protocols(SLIDER, "P2,P0")] == ["P2", "P0"]
    assert [p.name for p in select_protocols("chemistry/chain-v1", "all")] == ["P0"]


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        ({"protocols": "P77"}, UnknownNameError, "unknown protocol 'P77'"),
        ({"protocols": "P50-P60"}, InvalidValueError, "no protocol"),
        ({"episodes": 0}, InvalidValueError, "episodes is 0"),
        ({"workers": 0}, InvalidValueError, "workers is 0"),
        ({"seed": -1}, InvalidValueError, "seed must be"),
        ({"task": "tutorial/slidr-v1"}, UnknownNameError, "slider"),
        ({"skip": 3}, UnknownNameError, "unknown option 'skip'"),
        ({"policy": "brilliant"}, UnknownNameError, "unknown policy"),
        (
            {"protocols": [Protocol(name="a", variables={"box/velocity": "B"})]},
            InvalidValueError,
            "box/velocity has no space B",
        ),
        (
            {"protocols": [Protocol(name="a", variables={"box/mas*": "B", "bx": "A"})]},
            UnknownNameError,
            "unknown variable pattern 'bx'",
        ),
        ({"policy": lambda seen: np.zeros((3, 2), np.float32)}, iv.InterverseError, "shape"),
    ],
    ids=lambda v: str(v)[:30],
)
def test_mistakes_show_before_any_work(call, error, match, tmp_path):
    settings = {"policy": "random", "task": SLIDER, "episodes": 2, "out": tmp_path} | call
    with pytest.raises(error, match=match):
        iv.evaluate(settings.pop("policy"), **settings)
    assert list(tmp_path.glob("units/*")) == []


def test_a_policy_that_cannot_be_sent_needs_one_worker():
    lock = threading.Lock()

    def locked(seen):
        with lock:
            return np.zeros((len(seen), 2), np.float32)

    with pytest.raises(InvalidValueError, match="workers=1"):
        iv.evaluate(locked, SLIDER, protocols="P0,P1", episodes=2, max_steps=3, workers=2)


def test_a_unit_is_always_fifty_rows():
    shapes = []

    def watch(observations):
        shapes.append(observations.shape)
        return np.zeros((len(observations), 2), np.float32)

    iv.evaluate(watch, task=SLIDER, protocols="P0", episodes=53, max_steps=2)
    assert set(shapes) == {(ROWS, 11)}


def network(inputs, outputs):
    """Returns a policy on Torch's own matrix products, and the sizes of the batches it saw."""
    torch = pytest.importorskip("torch")
    weights = torch.as_tensor(np.random.default_rng(0).normal(size=(inputs, outputs)))
    seen = []

    def act(observations):
        flat = np.asarray(observations, np.float32).reshape(len(observations), -1)
        seen.append(len(flat))
        return torch.tanh(torch.as_tensor(flat) @ weights.float()).numpy()

    return act, seen


IN_PART = [
    (SLIDER, "P1", {"max_steps": 4}, (11, 2)),
    ("trifinger/pushing-v1", "P4", {"max_steps": 3}, (56, 9)),
    ("control/walker_walk-v1", "train", {"max_steps": 3, "observation": "state"}, (24, 6)),
]


@pytest.mark.parametrize(("task", "name", "options", "sizes"), IN_PART, ids=[c[0] for c in IN_PART])
def test_a_unit_in_part_gives_the_same_rows(task, name, options, sizes):
    """Only the wanted worlds are played, but a network still sees fifty rows."""
    policy, seen = network(*sizes)
    (protocol,) = select_protocols(task, name)
    unit = Unit(task=task, options=options, protocol=protocol, seed=3, number=1, episodes=3)
    whole = play(unit, policy, np.arange(ROWS, 2 * ROWS))
    part = run_unit(unit, policy)
    alone = play(unit, policy, np.array([ROWS + 7]))
    assert set(seen) == {ROWS}
    assert part == whole[:3]
    assert alone == whole[7:8]
    assert len({row["return"] for row in whole[:3]}) == 3


def test_threads_can_be_given_and_change_nothing():
    given = {"task": SLIDER, "protocols": "P0", "episodes": 2, "max_steps": 3}
    assert table(iv.evaluate("random", **given, threads=2)) == table(iv.evaluate("random", **given))


def test_an_evaluation_in_part_steps_no_other_world(monkeypatch):
    counts = []
    made = unit_module.build_world
    monkeypatch.setattr(unit_module, "build_world", lambda *a: counts.append(a[1]) or made(*a))
    iv.evaluate("random", task=SLIDER, protocols="P0", episodes=53, max_steps=2)
    assert counts == [ROWS, 1, 3], "and the twin of one episode"


def test_the_command_line_writes_what_the_api_does(tmp_path):
    command = [Path(sys.executable).parent / "interverse", "evaluate", "--task", SLIDER]
    flags = ["--protocols", "P0-P2", "--episodes", "4", "--option", "max_steps=5"]
    done = subprocess.run(
        [*command, *flags, "--out", tmp_path / "cli", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "100"},
    )
    api = iv.evaluate(
        "random", task=SLIDER, protocols="P0-P2", episodes=4, max_steps=5, out=tmp_path / "api"
    )
    assert '"protocol": "P2"' in done.stdout
    name = "results.parquet"
    assert (tmp_path / "cli" / name).read_bytes() == (tmp_path / "api" / name).read_bytes()
    assert len(api) == 12


def test_the_device_is_an_argument_and_a_flag(capsys):
    results = iv.evaluate("random", SLIDER, "P0", episodes=1, max_steps=3, device="torch")
    assert results.provenance["engine"]["device"] == "torch"
    with pytest.raises(UnknownNameError, match="unknown device 'gpu'"):
        iv.evaluate("random", SLIDER, "P0", episodes=1, device="gpu")
    words = ["evaluate", "--task", SLIDER, "--protocols", "P0", "--episodes", "1"]
    assert main([*words, "--device", "gpu"]) == 2
    assert "unknown device 'gpu'" in capsys.readouterr().err


def test_a_file_is_no_folder_to_write_to(tmp_path):
    place = tmp_path / "a_file"
    place.write_text("mine")
    given = {"task": SLIDER, "protocols": "P0", "episodes": 1, "max_steps": 1}
    with pytest.raises(StorageError, match="a_file is a file"):
        iv.evaluate("random", **given, out=place)
    with pytest.raises(StorageError, match="a_file is a file"):
        iv.report(iv.evaluate("random", **given), place)
    assert place.read_text() == "mine"


@pytest.mark.parametrize(("words", "seeds"), [("2 --seed 3", [3, 4]), ("2 0 7", [2, 0, 7])])
def test_seeds_of_the_command_line_are_a_number_or_the_seeds(words, seeds, tmp_path):
    asked = f"--task {SLIDER} --protocols P0 --episodes 2 --option max_steps=3 --seeds {words}"
    assert main(["evaluate", *asked.split(), "--out", str(tmp_path)]) == 0
    found = Results.from_parquet(tmp_path / "results.parquet")
    assert list(dict.fromkeys(found.column("seed").tolist())) == seeds


def test_seeds_are_a_number_or_a_list():
    given = {"task": SLIDER, "protocols": "P0", "episodes": 2, "max_steps": 3}
    listed = iv.evaluate("random", seeds=[2, 0, np.int64(7)], **given)
    assert list(dict.fromkeys(listed.column("seed").tolist())) == [2, 0, 7]
    counted = iv.evaluate("random", seed=2, **given)
    assert listed.select(seed=2).data.equals(counted.data)
    for wrong in ({"seeds": [1, 1]}, {"seeds": []}, {"seeds": [1], "seed": 3}, {"seeds": [1.5]}):
        with pytest.raises(InvalidValueError, match=r"seeds (is|must)"):
            iv.evaluate("random", **given, **wrong)
