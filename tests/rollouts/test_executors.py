"""Units in processes: the same results as in this one, through deaths, mistakes and Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from itertools import count

import numpy as np
import pytest

from interverse.core.errors import InterventionError, InterverseError, InvalidValueError
from interverse.rollouts import executors
from interverse.rollouts.executors import run_units
from tests.rollouts import labour


@pytest.mark.parametrize("workers", [1, 2])
def test_every_unit_once(workers):
    done = list(run_units(labour.times, range(7), 10, workers=workers))
    assert sorted(done) == [(unit, 10 * unit) for unit in range(7)]


def test_nothing_to_do_starts_nothing():
    assert list(run_units(labour.times, [], 10, workers=2)) == []


def test_units_are_taken_as_workers_get_free():
    """Endlessly many units are no trouble: few are taken ahead, and closing ends it."""
    taken = []
    units = (taken.append(unit) or unit for unit in count())
    with closing(run_units(labour.whereabouts, units, None, workers=2)) as done:
        pids = {next(done)[1] for _ in range(4)}
    assert len(taken) <= 4 + 4
    assert os.getpid() not in pids
    labour.wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


@pytest.mark.parametrize("closings", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_closing_never_waits_for_a_result_that_is_half_written(closings):
    """At any moment: while workers start, and while each writes 20 MB, 2 MB or 200 kB."""
    rng = np.random.default_rng(0)
    for number in range(closings):
        size = [20_000_000, 2_000_000, 200_000][number % 3]
        units = run_units(labour.heavy, count(), size, workers=2)
        for _ in range(rng.integers(1, 4)):
            next(units)
        time.sleep(rng.uniform(0, 0.02))
        closing_thread = threading.Thread(target=units.close, daemon=True)
        closing_thread.start()
        closing_thread.join(executors.PATIENCE + 50)
        assert not closing_thread.is_alive(), f"closing {number} hangs"


def test_a_process_that_does_not_end_is_killed_and_that_is_said(monkeypatch, caplog):
    monkeypatch.setattr(executors, "PATIENCE", 0.2)
    pool = executors.Processes(labour.leave_slowly, None, 1)
    ticket = pool.start(1)
    assert pool.wait([ticket]) is ticket
    pid = pool.result(ticket)
    pool.close()
    assert f"process {pid} did not end in 0.2 s and is killed" in caplog.text
    assert not os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_units_error_comes_back_as_it_was(workers):
    with pytest.raises(InterventionError, match=r"block/mass is 7 kg\. Allowed") as caught:
        list(run_units(labour.refuse, range(5), 0, workers=workers))
    assert caught.value.variables == ("block/mass",)


def test_a_unit_whose_process_died_is_done_again(tmp_path, caplog):
    done = dict(run_units(labour.die_once, range(6), tmp_path, workers=2))
    assert done == {unit: unit * unit for unit in range(6)}
    assert (tmp_path / "died").exists()
    assert "a worker was lost" in caplog.text


def test_a_unit_that_kills_is_given_up():
    with pytest.raises(InterverseError, match=r"ended by itself 3 times.*with fewer workers"):
        list(run_units(labour.die, range(4), None, workers=2))


def test_a_unit_that_kills_may_have_a_result_and_takes_no_other_along():
    done = run_units(labour.die, range(4), None, workers=2, on_lost=lambda unit, error: -unit)
    assert sorted(done) == [(0, 0), (1, 1), (2, -2), (3, 3)]


def test_what_cannot_be_sent_is_told():
    with pytest.raises(InvalidValueError, match=r"cannot be sent.*workers=1"):
        list(run_units(labour.times, range(4), threading.Lock(), workers=2))


_LONG = """
import sys
from pathlib import Path
from interverse.rollouts.executors import run_units
from tests.rollouts import labour
if __name__ == "__main__":
    list(run_units(labour.dawdle, range(9), Path(sys.argv[1]), workers=2))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_no_process_outlives_the_first(how, tmp_path, repository):
    """Ctrl-C, which a terminal sends to all, ends units that would take minutes; so does kill."""
    script = tmp_path / "run.py"
    script.write_text(_LONG)
    run = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(repository)},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        labour.wait_for(lambda: len(list(tmp_path.glob("began-*"))) == 2)
        os.killpg(run.pid, how) if how == signal.SIGINT else run.kill()
        said = run.communicate(timeout=60)[1]
        labour.wait_for(lambda: not labour.group_alive(run.pid))
    finally:
        if labour.group_alive(run.pid):
            os.killpg(run.pid, signal.SIGKILL)
    assert said.count("KeyboardInterrupt") == (1 if how == signal.SIGINT else 0)


def test_ctrl_c_while_workers_start_prints_one_traceback(tmp_path, repository):
    """A terminal sends it to every process; one that is still importing must not answer."""
    script = tmp_path / "run.py"
    script.write_text(_LONG)
    for wait in np.linspace(0.0, 0.5, 6):
        run = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(repository)},
            start_new_session=True,
            stderr=subprocess.PIPE,
            text=True,
        )
        labour.wait_for(lambda run=run: "spawn_main" in str(labour.descendants(run.pid)))
        time.sleep(wait)
        os.killpg(run.pid, signal.SIGINT)
        said = run.communicate(timeout=60)[1]
        assert said.count("Traceback") == 1, said
        labour.wait_for(lambda run=run: not labour.group_alive(run.pid))


# What a script without a guard defines works in other processes.
SCRIPT = """
import numpy as np
import interverse as iv

GAIN = 0.5

class Still:
    def __call__(self, seen):
        return np.full((len(seen), 2), GAIN, np.float32)

def effort(steps):
    return float(np.abs(steps.actions).sum())

settings = dict(task="tutorial/slider-v1", protocols="P0", episodes=60, max_steps=3)
one = iv.evaluate(Still(), metrics=[effort], **settings)
inner = lambda seen: Still()(seen)
two = iv.evaluate(POLICY, metrics=[effort], workers=2, experiment="Still", **settings)
assert one.data.equals(two.data)
print("ran")
"""


def test_a_script_without_a_guard_uses_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("POLICY", "Still()"))
    for words in ([str(script)], ["-c", SCRIPT.replace("POLICY", "inner")]):
        command = [sys.executable, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=140)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout == "ran\n", "the script ran once"
