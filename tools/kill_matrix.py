"""Kills every long verb at random moments and compares its end with that of an unbroken run.

Usage: python tools/kill_matrix.py [CASE ...] [--kills 10] writes results/kill_matrix.json;
       python tools/kill_matrix.py --table prints it as the table of docs/cluster.md.

The driver is ended and started again, in the same folder, until that happened as often as asked; or
one of its workers is killed while it goes on. It is ended by a kill, by SIGTERM, by Ctrl-C for all
its processes, or by a power cut, after which files that were not synced are empty; or the kill
leaves a flipped bit in a file. Then the next start may refuse, in one line: the folder begins anew.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
FILE = ROOT / "results" / "kill_matrix.json"
_OF_THE_RUN = ("runs", "seconds")
LIMIT = 900.0  # seconds that an unbroken run may take
_TO_REST = 120.0  # seconds in which SIGTERM and Ctrl-C end a run, on a busy machine
_UNSYNCED = 5.0  # seconds after which a file system has written what nobody synced

EVALUATE = """
import sys, interverse as iv
iv.evaluate("random", "tutorial/slider-v1", "P0-P5", episodes=100, max_steps=40,
            workers={workers}, cluster={cluster}, out=sys.argv[1])
"""
COLLECT = """
import sys
from pathlib import Path
from interverse.data.generate import Collect, collect
out = Path(sys.argv[1]) / "data.h5"
collect(Collect(id="blocks/observed-3-v1", out=out, episodes=600, steps=100, images={images},
                workers={workers}, cluster={cluster}))
"""
VERB = """
import sys
from pathlib import Path
from interverse.cli import main
folder = Path(sys.argv[1])
(folder / "sweep.yaml").write_text(
    "tasks: [tutorial/slider-v1]\\nseeds: 3\\n"
    "train: {{steps: 1024, num_envs: 2, checkpoint_every: 256, option: {{max_steps: 20}}}}\\n"
    "evaluate: {{protocols: P0-P1, episodes: 20}}\\n")
sys.exit(main([word.replace("OUT", str(folder / "o")) for word in {words!r}]))
"""


@dataclass(frozen=True, kw_only=True)
class KillCase:
    """A script, what is killed, and the files that must be equal in the end."""

    code: str
    files: tuple[str, ...]
    how: str = "kill"


def _verb(line: str) -> str:
    return VERB.format(words=line.split())


SCORES = ("results.parquet", "index.json")
SWEPT = ("o/results.parquet", "o/cells/*/policy/*", "o/cells/*/scores/results.parquet")
TRAIN = _verb(
    "train --task trifinger/reaching-v1 --algorithm sb3_ppo --out OUT --steps 512 --num-envs 2"
    " --checkpoint-every 256 --option max_steps=20"
)
DEVICE = _verb(
    "train --task trifinger/pushing-v1 --device cpu --out OUT --steps 3200 --num-envs 8 --option"
    " max_steps=20 --hyper starts=8 horizon=2 epochs=1 minibatches=1 hidden=[8]"
)
FIT = _verb("fit blocks/observed-3-v1 --model ae --budget smoke --epochs 1 --out OUT")
REPRODUCE = _verb("reproduce --benchmark causalworld --task pushing --curriculum 1 --out OUT")
CASES = {
    "evaluate": KillCase(code=EVALUATE.format(workers=1, cluster=None), files=SCORES),
    "evaluate, 2 processes": KillCase(code=EVALUATE.format(workers=2, cluster=None), files=SCORES),
    "evaluate, Ray": KillCase(code=EVALUATE.format(workers=2, cluster="'local'"), files=SCORES),
    "evaluate, a process of 2": KillCase(
        code=EVALUATE.format(workers=2, cluster=None), files=SCORES, how="kill a worker"
    ),
    "evaluate, a Ray worker": KillCase(
        code=EVALUATE.format(workers=2, cluster="'local'"), files=SCORES, how="kill a worker"
    ),
    "collect": KillCase(
        code=COLLECT.format(images=False, workers=1, cluster=None), files=("data.h5",)
    ),
    "collect, pictures": KillCase(
        code=COLLECT.format(images=True, workers=1, cluster=None), files=("data.h5",)
    ),
    "collect, Ray": KillCase(
        code=COLLECT.format(images=False, workers=2, cluster="'local'"), files=("data.h5",)
    ),
    "collect, 2 processes": KillCase(
        code=COLLECT.format(images=True, workers=2, cluster=None), files=("data.h5",)
    ),
    "train": KillCase(code=TRAIN, files=("o/policy/*", "o/evaluation.parquet")),
    "train, worlds on a device": KillCase(code=DEVICE, files=("o/policy/*",)),
    "fit": KillCase(code=FIT, files=("o/*.json", "o/training/seed-1/*", "o/data/*")),
    "reproduce": KillCase(code=REPRODUCE, files=("o/summary.md", "o/runs/*/scores.json")),
    "sweep": KillCase(code=_verb("sweep FOLDER/sweep.yaml --out OUT"), files=SWEPT),
    "sweep, 2 processes": KillCase(
        code=_verb("sweep FOLDER/sweep.yaml --out OUT --workers 2"), files=SWEPT
    ),
    "sweep, Ray": KillCase(
        code=_verb("sweep FOLDER/sweep.yaml --out OUT --workers 2 --cluster local"), files=SWEPT
    ),
    "sweep, a Ray worker": KillCase(
        code=_verb("sweep FOLDER/sweep.yaml --out OUT --workers 2 --cluster local").replace(
            "seeds: 3", "seeds: 2"
        ),
        files=SWEPT,
        how="kill a worker",
    ),
}
HOWS = ("SIGTERM", "Ctrl-C", "power cut", "flipped bit")
for _name in (
    "evaluate, 2 processes",
    "collect, 2 processes",
    "train",
    "train, worlds on a device",
    "fit",
    "reproduce",
    "sweep, 2 processes",
):
    CASES |= {f"{_name}: {how}": replace(CASES[_name], how=how) for how in HOWS}
# Put before the code of a power cut: writes down which files were on the disk.
_WATCHED = """
import os, sys
_sync, _put, _safe = os.fsync, os.replace, set()
def _fsync(file):
    _safe.add(os.readlink(f"/proc/self/fd/{file}"))
    _sync(file)
def _replace(source, target, **more):
    _put(source, target, **more)
    with open(sys.argv[1] + ".synced", "a") as synced:
        print(os.path.abspath(target), os.path.abspath(source) in _safe, file=synced, flush=True)
os.fsync, os.replace = _fsync, _replace
"""


def kill_case(name: str, folder: Path, kills: int = 10) -> dict[str, Any]:
    """Returns how often a case was killed and how many ends were compared; raises if one differs.

    Args:
        name: of the case.
        folder: an empty folder.
        kills: how often to kill.
    """
    case = CASES[name]
    started = time.monotonic()
    assert _run(replace(case, how="kill"), folder / "whole") == "ended"
    whole = time.monotonic() - started
    rng = np.random.default_rng(sorted(CASES).index(name))
    killed = ends = refused = 0
    while True:
        mine = folder / f"end-{ends + refused}"
        wait = float(rng.uniform(0.1, 1.0)) * whole if killed < kills else None
        outcome = _run(case, mine, wait)
        killed += outcome in ("killed", "survived")
        if outcome == "killed":
            if case.how == "power cut":
                _cut_power(mine)
            if case.how == "flipped bit":
                _flip_bit(mine, rng)
            continue
        if outcome == "refused":
            refused += 1
        else:  # it came to its end, a worker's death notwithstanding
            compared = _compare(case, mine, folder / "whole")
            ends += 1
        if killed >= kills and ends:
            row = {"kills": killed, "equal_ends": ends, "files": compared}
            return row | ({"refused": refused} if refused else {})


def _run(case: KillCase, folder: Path, kill_after: float | None = None) -> str:
    """Runs a case; returns "ended", "killed", "refused", or "survived" the death of a worker."""
    folder.mkdir(exist_ok=True)
    code = case.code.replace("FOLDER", str(folder))
    process = subprocess.Popen(
        [sys.executable, "-c", _WATCHED * (case.how == "power cut") + code, str(folder)],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    outcome = "ended"
    try:
        _, told = process.communicate(timeout=LIMIT if kill_after is None else kill_after)
    except subprocess.TimeoutExpired:
        if case.how != "kill a worker":
            _end(process, case.how)
            return "killed"
        while process.poll() is None and outcome == "ended":  # a worker may not be there yet
            time.sleep(0.02)
            outcome = "survived" if _kill_worker(process.pid) else "ended"
        _, told = process.communicate(timeout=LIMIT)
    if process.returncode:
        said = told.decode()
        named = "interverse.core.errors." in said.splitlines()[-1] or process.returncode == 2
        if named and case.how in ("power cut", "flipped bit"):
            return "refused"
        raise RuntimeError(f"status {process.returncode}: {said[-2000:]}")
    return outcome


def _end(process: subprocess.Popen[bytes], how: str) -> None:
    """Ends a run and all that it started; raises if it hangs, or prints more than one traceback."""
    if how == "Ctrl-C":
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all
    else:
        os.kill(process.pid, signal.SIGTERM if how == "SIGTERM" else signal.SIGKILL)
    try:
        _, told = process.communicate(timeout=_TO_REST)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise RuntimeError(f"{how} did not end it in {_TO_REST:g} s") from None
    if told.count(b"Traceback") > 1:
        raise RuntimeError(f"more than one traceback after {how}: {told.decode()[-4000:]}")
    _reap(process.pid)


def _cut_power(folder: Path) -> None:
    """Empties the files that were written a moment ago and not synced."""
    log = folder.with_name(f"{folder.name}.synced")
    lines = log.read_text().splitlines() if log.exists() else []
    synced = dict(line.rsplit(" ", 1) for line in lines)
    files = [path for path in folder.rglob("*") if path.is_file()]
    last = max((path.stat().st_mtime for path in files), default=0.0)
    for path in files:
        if path.stat().st_mtime > last - _UNSYNCED and synced.get(str(path)) != "True":
            path.write_bytes(b"")


def _flip_bit(folder: Path, rng: np.random.Generator) -> None:
    """Changes one bit of one file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    if files:
        path = files[rng.integers(len(files))]
        content = bytearray(path.read_bytes())
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)


def _kill_worker(pid: int) -> bool:
    """Kills one process that works for another; returns whether there was one."""
    for child in _descendants(pid):
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if words.startswith(b"ray::_call") or b"spawn_main" in words:
            os.kill(child, signal.SIGKILL)
            return True
    return False


def _descendants(pid: int) -> Iterator[int]:
    """Yields the processes that a process started, and theirs."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from _descendants(child)


def _reap(session: int) -> None:
    """Waits until what a killed process started has ended by itself."""
    for _ in range(600):
        if not any(_session(entry) == session for entry in Path("/proc").glob("[0-9]*")):
            return
        time.sleep(0.1)
    raise RuntimeError("processes outlive the one that started them")


def _session(entry: Path) -> int:
    """Returns the session of a process that works; Ray's agents end by themselves, later."""
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        agent = b"Agent" in (entry / "cmdline").read_bytes()
    except OSError:
        return -1
    return -1 if agent or fields[0] == "Z" else int(fields[3])


def _compare(case: KillCase, ours: Path, theirs: Path) -> int:
    """Returns how many files were equal; raises where one differs or a half-written one is left."""
    names = sorted(
        path.relative_to(theirs).as_posix()
        for pattern in case.files
        for path in theirs.glob(pattern)
        if path.is_file()
    )
    assert names
    for name in names:
        if _content(ours / name) != _content(theirs / name):
            raise RuntimeError(f"{name} differs in {ours}")
    left = [path.name for path in ours.rglob("*") if ".partial" in path.name]
    if left:
        raise RuntimeError(f"{left} are left in {ours}")
    return len(names)


def _content(file: Path) -> Any:
    """Returns what a file holds; in JSON without what a run took and who ran it."""
    if file.suffix != ".json":
        return file.read_bytes()

    def kept(entry: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in entry.items() if name not in _OF_THE_RUN}

    return json.loads(file.read_text(), object_hook=kept)


def table(record: dict[str, Any]) -> str:
    """Returns the record as a Markdown table.

    >>> case = {"how": "kill", "kills": 10, "equal_ends": 3, "files": 2, "commit": "d"}
    >>> print(table({"cases": {"train": case}, "command": "c"}).splitlines()[2])
    | train | kill | 10 | 3 of 3 | 0 | 2 | d |
    """
    titles = ("verb", "how", "times", "equal ends", "refused", "files compared", "commit")
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name, row in record["cases"].items():
        ends = f"{row['equal_ends']} of {row['equal_ends']}"
        verb, refused = name.partition(":")[0], row.get("refused", 0)
        cells = (verb, row["how"], row["kills"], ends, refused, row["files"], row["commit"])
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, "", f"`{record['command']}`"])


def main() -> None:
    """Runs the cases that are named, or all, and writes their figures as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    held: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"cases": {}}
    if given.table:
        print(table(held))
        return
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in given.cases:
        with tempfile.TemporaryDirectory() as folder:
            row = kill_case(name, Path(folder), given.kills)
        print(name, row, flush=True)
        row |= {"how": CASES[name].how, "commit": found.stdout.strip()}
        cases = {**held["cases"], name: row}
        held = {
            "cases": {known: cases[known] for known in CASES if known in cases},
            "command": "python tools/kill_matrix.py",
        }
        FILE.write_text(json.dumps(held, indent=1) + "\n")


if __name__ == "__main__":
    main()
