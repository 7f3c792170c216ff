"""Units in processes: the same results as in this one, through deaths, mistakes and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from itertools import count

import pytest

from interverse.core.errors import InterventionError, InterverseError, InvalidValueError
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


def test_without_ray_one_line_names_the_extra():
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from interverse.cli import main\n"
        "flags = '--task tutorial/slider-v1 --protocols P0 --episodes 2 --cluster local'\n"
        "sys.exit(main(['evaluate', *flags.split()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "interverse evaluate: ray is not installed. Install it with: pip install 'interverse[ray]'."
    )


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
