"""Units on a Ray cluster of two nodes: the bytes of one process, through deaths and mistakes."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

import interverse as iv
from interverse.cli import main
from interverse.core.errors import InterventionError, InterverseError, InvalidValueError
from interverse.data import Collect, collect, generate
from interverse.data.pairs import CollectPairs, collect_pairs
from interverse.rollouts.executors import run_units
from interverse.rollouts.saved import pack_policy
from tests.data.pairs.factory import Source
from tests.rollouts import labour

pytestmark = pytest.mark.ray
SLIDER = {"task": "tutorial/slider-v1", "protocols": "P0,P3", "episodes": 60, "max_steps": 10}
TWO = {"workers": 2, "cluster": "auto"}
RESULTS = "results.parquet"


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one CPU each: processes of this machine, but nodes to Ray."""
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"include_dashboard": False})
    made.add_node(num_cpus=1)
    made.wait_for_nodes(timeout=300)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def connected(cluster):
    """A connection that the tests share, since each new one starts new workers."""
    import ray

    if not ray.is_initialized():
        ray.init(cluster.address, log_to_driver=False)
    return cluster


@pytest.fixture
def apart(cluster):
    """No connection."""
    import ray

    ray.shutdown()
    return cluster


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    out = tmp_path_factory.mktemp("serial")
    iv.evaluate("random", out=out, **SLIDER)
    return (out / RESULTS).read_bytes()


# --------------------------------------------------------------------------- by address


_SCRIPT = """
import sys, interverse as iv
iv.evaluate("random", out=sys.argv[1], workers=2, cluster=sys.argv[2], **{settings})
"""


@pytest.mark.slow
def test_a_killed_driver_goes_on_where_it_was(cluster, tmp_path, capsys):
    script = _SCRIPT.format(settings=SLIDER | {"protocols": "P0-P3", "max_steps": 120})
    command = [sys.executable, "-c", script, str(tmp_path / "a"), cluster.address]
    process = subprocess.Popen(command)
    units = tmp_path / "a" / "units"
    labour.wait_for(lambda: len(list(units.glob("*.parquet"))) >= 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {path: path.stat().st_mtime_ns for path in units.glob("[!.]*.parquet")}
    assert len(kept) < 8
    assert not (tmp_path / "a" / RESULTS).exists()
    flags = ["--protocols", "P0-P3", "--episodes", "60", "--option", "max_steps=120"]
    flags += ["--task", "tutorial/slider-v1"]
    again = ["--workers", "2", "--cluster", cluster.address, "--json"]
    assert main(["evaluate", *flags, *again, "--out", str(tmp_path / "a")]) == 0
    assert [row["episodes"] for row in json.loads(capsys.readouterr().out)] == [60] * 4
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert main(["evaluate", *flags, "--out", str(tmp_path / "b")]) == 0
    assert (tmp_path / "a" / RESULTS).read_bytes() == (tmp_path / "b" / RESULTS).read_bytes()


def test_a_connection_of_its_own_is_closed(apart):
    import ray

    before = signal.getsignal(signal.SIGTERM), dict(os.environ)
    with pytest.raises(InvalidValueError, match="cannot be sent to a cluster"):
        list(run_units(labour.times, [1, 2], threading.Lock(), cluster=apart.address))
    assert not ray.is_initialized()
    assert (signal.getsignal(signal.SIGTERM), dict(os.environ)) == before


@pytest.mark.parametrize("given", ["", 5], ids=["empty", "number"])
def test_what_is_no_address_is_refused(given):
    with pytest.raises(InvalidValueError, match=r"cluster is .*Allowed: 'local', 'auto', HOST"):
        list(run_units(labour.times, [1, 2], 3, cluster=given))


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:9"])
def test_no_cluster_gets_one_line(apart, address, tmp_path, capsys):
    args = ["--task", "tutorial/slider-v1", "--episodes", "2", "--out", str(tmp_path)]
    assert main(["evaluate", *args, "--cluster", address]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"no Ray cluster at '{address}'" in said
    assert "ray start --head" in said


# --------------------------------------------------------------------------- by one connection


def test_a_connection_of_the_callers_is_used_and_left(connected):
    import ray

    assert dict(run_units(labour.times, [1, 2], 3, cluster="auto")) == {1: 3, 2: 6}
    assert dict(run_units(labour.times, [4], 3, cluster=connected.address)) == {4: 12}
    with pytest.raises(InvalidValueError, match=r"connected to Ray at .*ray\.shutdown\(\)"):
        list(run_units(labour.times, [1, 2], 3, cluster="local"))
    assert ray.is_initialized()


def test_every_unit_once_and_on_both_nodes(connected, tmp_path):
    done = dict(run_units(labour.node, range(9), tmp_path, **TWO))
    assert {unit: result for unit, (result, _) in done.items()} == {u: 10 * u for u in range(9)}
    assert len({node for _, node in done.values()}) == 2


def test_what_is_shared_is_sent_once(connected):
    labour.Shipment.packed = 0
    done = dict(run_units(labour.open_shipment, range(7), labour.Shipment(), **TWO))
    assert done == {unit: 3 * unit for unit in range(7)}
    assert labour.Shipment.packed == 1


def test_an_evaluation_has_the_bytes_of_one_process(connected, serial, tmp_path):
    iv.evaluate("random", out=tmp_path, **TWO, **SLIDER)
    assert (tmp_path / RESULTS).read_bytes() == serial


def test_a_policy_of_this_file_needs_no_module(connected, tmp_path):
    gain = 4.0
    policy = labour.steer(gain)  # a closure, which processes refuse
    iv.evaluate(policy, out=tmp_path / "one", **SLIDER)
    iv.evaluate(policy, out=tmp_path / "ray", **TWO, **SLIDER)
    assert (tmp_path / "one" / RESULTS).read_bytes() == (tmp_path / "ray" / RESULTS).read_bytes()


def test_a_policy_is_sent_by_its_files(connected, tmp_path, monkeypatch):
    """A path that only this process can follow: workers are in another folder."""
    pytest.importorskip("torch")
    labour.save_policy(tmp_path / "policy")
    monkeypatch.chdir(tmp_path)
    iv.evaluate("policy", out="one", **SLIDER)
    iv.evaluate("policy", out="ray", **TWO, **SLIDER)
    assert (tmp_path / "one" / RESULTS).read_bytes() == (tmp_path / "ray" / RESULTS).read_bytes()


@pytest.mark.slow
def test_a_node_that_dies_on_the_way_changes_no_byte(connected, tmp_path, caplog):
    """The second node is killed in the middle of a unit; the first does that unit again."""
    victim = next(iter(connected.worker_nodes))
    policy = labour.Staller(tmp_path / "mark", victim.node_id)

    def kill() -> None:
        labour.wait_for(policy.mark.exists)
        connected.remove_node(victim, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        iv.evaluate(policy, out=tmp_path / "ray", **TWO, **SLIDER)
    finally:
        killer.join()
        connected.add_node(num_cpus=1)
        connected.wait_for_nodes()
    assert "a worker was lost" in caplog.text
    iv.evaluate(policy, out=tmp_path / "one", **SLIDER)
    assert (tmp_path / "one" / RESULTS).read_bytes() == (tmp_path / "ray" / RESULTS).read_bytes()


def test_a_worker_that_dies_is_replaced(connected, tmp_path, caplog):
    done = dict(run_units(labour.die_once, range(5), tmp_path, **TWO))
    assert done == {unit: unit * unit for unit in range(5)}
    assert "a worker was lost" in caplog.text


def test_a_unit_that_kills_is_given_up(connected):
    with pytest.raises(InterverseError, match=r"ended by itself 3 times.*WorkerCrashedError"):
        list(run_units(labour.die, range(4), None, **TWO))


def test_a_units_error_comes_back_as_it_was(connected):
    with pytest.raises(InterventionError, match=r"^block/mass is 7 kg\. Allowed") as caught:
        list(run_units(labour.refuse, range(5), 0, **TWO))
    assert caught.value.variables == ("block/mass",)


def test_the_files_of_a_policy_travel_with_it(connected, tmp_path):
    (tmp_path / "policy" / "more").mkdir(parents=True)
    (tmp_path / "policy" / "card.json").write_text("{}")
    (tmp_path / "policy" / "more" / "weights").write_bytes(b"\x00\x01")
    (tmp_path / "one.zip").write_bytes(b"zip")
    for name, files in (
        ("policy", {"card.json": b"{}", "more/weights": b"\x00\x01"}),
        ("one.zip", {".": b"zip"}),
    ):
        for _, (root, found) in run_units(
            labour.unpack, range(2), pack_policy(tmp_path / name), **TWO
        ):
            assert root.name == name
            assert root != tmp_path / name
            assert not root.exists(), "what was unpacked stays behind"
            assert found == files


def test_a_data_set_has_the_bytes_of_one_process(connected, tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "_UNIT_FRAMES", 12)  # four units of two episodes
    config = {"id": "blocks/observed-3-v1", "episodes": 7, "steps": 5, "seed": 3}
    hands = {"one": {}, "two": {"workers": 2}, "ray": TWO}
    for ending in ("", ".h5"):
        outs = {name: tmp_path / f"{name}{ending}" for name in hands}
        made = [collect(Collect(out=out, **config, **hands[n])) for n, out in outs.items()]
        held = [sorted(path.iterdir()) if path.is_dir() else [path] for path in made]
        contents = [[file.read_bytes() for file in files] for files in held]
        assert contents[0] == contents[1] == contents[2]


def test_pairs_have_the_bytes_of_one_process(connected, tmp_path):
    config = {"id": "rooms/multi-v1", "pairs": 10}
    one, ray = tmp_path / "one", tmp_path / "ray"
    collect_pairs(CollectPairs(out=one, **config), Source())
    collect_pairs(CollectPairs(out=ray, **TWO, **config), Source())
    content = [{path.name: path.read_bytes() for path in out.iterdir()} for out in (one, ray)]
    assert content[0] == content[1]


# --------------------------------------------------------------------------- a cluster of its own


_LOCAL = """
import sys
from pathlib import Path
from interverse.rollouts.executors import run_units
from tests.rollouts import labour
list(run_units(labour.dawdle, range(9), Path(sys.argv[1]), workers=2, cluster="local"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_a_local_cluster_ends_with_the_process_that_started_it(how, tmp_path, repository):
    command = [sys.executable, "-c", _LOCAL, str(tmp_path)]
    run = subprocess.Popen(command, cwd=repository, start_new_session=True)
    labour.wait_for(lambda: len(list(tmp_path.glob("began-*"))) == 2)
    # Ray's two agents notice only after a minute that their node is gone; they do no work.
    family = [pid for pid, name in labour.descendants(run.pid).items() if "Agent" not in name]
    assert len(family) > 3
    os.killpg(run.pid, how) if how == signal.SIGINT else run.kill()
    run.wait(timeout=60)
    labour.wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in family))


# --------------------------------------------------------------------------- nodes that differ


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("numpy", r"numpy \d.* instead of other"),
        ("mujoco", r"mujoco \d.* instead of other"),
        ("interverse's files", r"interverse's files \w{32} instead of other"),
        ("friction solver", r"friction solver \w{16} instead of other"),
    ],
)
def test_a_node_of_other_versions_says_so(name, said):
    from interverse.rollouts.cluster import check_versions, versions

    check_versions(versions())
    with pytest.raises(InterverseError, match=rf"node \S+ of the cluster has {said}.*every node"):
        check_versions({**versions(), name: "other"})


def test_a_node_without_the_solver_of_the_process_that_asks_says_why(monkeypatch, tmp_path):
    from interverse.rollouts.cluster import check_versions, versions
    from interverse.sim import coulomb

    assert coulomb.missing() is None
    asked = versions()
    monkeypatch.setenv("INTERVERSE_CACHE", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    coulomb._loaded.cache_clear()
    try:
        with pytest.raises(InterverseError, match=r"solver missing \(.* no C compiler"):
            check_versions(asked)
    finally:
        coulomb._loaded.cache_clear()
