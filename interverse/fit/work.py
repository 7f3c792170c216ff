"""Work that can be stopped: a clock, failures that wait, records at rest, what made them."""

from __future__ import annotations

import functools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import torch

from interverse._version import __version__
from interverse.core.code import code_hash, installed
from interverse.core.errors import InterverseError, InvalidValueError
from interverse.core.files.atomic import write_json
from interverse.core.files.json_text import read_json_object
from interverse.models.fit import Listener, Row

_NAMED, _DIGITS = 5, 12  # records that a line names, and digits of a commit
_LINES = 5  # per stage of training, where no terminal shows a bar
_PACKAGE = Path(__file__).parents[1]
_PACKAGES = ("gymnasium", "h5py", "numpy", "torch")


class OutOfTimeError(Exception):
    """The time limit has passed; what was done is on disk."""


@final
class Clock:
    """Counts from its making; writes to standard error.

    Args:
        limit: seconds after which `check` raises; None never.
        now: where the time comes from.
    """

    def __init__(self, limit: float | None, now: Callable[[], float] = time.monotonic) -> None:
        if limit is not None and not limit >= 0:
            raise InvalidValueError(f"time_limit is {limit}", allowed="seconds from 0 on")
        self._limit, self._now, self._began = limit, now, now()

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return self._now() - self._began

    def check(self) -> None:
        """Raises if the time is up."""
        if self._limit is not None and self.elapsed > self._limit:
            raise OutOfTimeError

    def say(self, text: str) -> None:
        """Writes one line with the time it was written at."""
        sys.stderr.write(f"[{self.elapsed:7.1f} s] {text}\n")
        sys.stderr.flush()

    def ends(self, work: Callable[[], None]) -> bool:
        """Does the work; returns whether it came to its end, and says so where time did first."""
        try:
            work()
        except OutOfTimeError:
            self.say("time is up; the same command goes on from here")
            return False
        return True

    @contextmanager
    def timed(self, text: str) -> Iterator[None]:
        """Says afterwards what was done and how long it took."""
        began = self.elapsed
        yield
        self.say(f"{text}: {self.elapsed - began:.1f} s")

    def watch(self, name: str, epochs: int, *, saved_every: int) -> Listener:
        """Returns a listener of training that tells a few times per stage, and minds the limit.

        It stops training only after an epoch whose end was saved.
        """
        spent: dict[str, float] = {}

        def listener(row: Row) -> None:
            stage, epoch, seconds = row["stage"], row["epoch"], row["seconds"]
            spent[stage] = seconds + (0.0 if epoch == 1 else spent.get(stage, 0.0))
            if epoch % max(1, epochs // _LINES) == 0 or epoch == epochs:
                valid = " ".join(f"{value:.4g}" for value in row["valid"])
                self.say(
                    f"{name}: {stage} {epoch}/{epochs} epochs, {spent[stage]:.1f} s"
                    f" ({seconds:.2f} s the last), valid {valid}"
                )
            if epoch % saved_every == 0 or epoch == epochs:
                self.check()

        return listener


@final
class Failures:
    """Failures that must not cost hours of other work: told when they happen, raised at the end."""

    def __init__(self, clock: Clock, *kinds: type[Exception]) -> None:
        """Takes the kinds of error to wait with; else those of ours and a full memory."""
        self._clock, self._found = clock, dict[str, Exception]()
        self._kinds = kinds or (InterverseError, torch.OutOfMemoryError)

    @contextmanager
    def kept(self, name: str) -> Iterator[None]:
        """Goes on after an error."""
        try:
            yield
        except self._kinds as error:
            self._clock.say(f"{name} failed: {error!r}")
            self._found[name] = error

    def raise_all(self) -> None:
        """Raises if some of a reproduction failed: the rest is done and written."""
        if self._found:
            lines = "; ".join(f"{name}: {error}" for name, error in self._found.items())
            raise InvalidValueError(f"all is written but what failed: {lines}")


@final
class Record:
    """The results of one row and seed: a JSON file that is complete after every change.

    Args:
        path: the file.
        asked: what decides the numbers; a file that was made otherwise is refused.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path = path
        self.content: dict[str, Any] = {**asked, "made_by": versions(), "scores": {}}
        if path.exists():
            self.content = read_json_object(path)
            asked = json.loads(json.dumps(dict(asked)))
            other = {n: self.content.get(n) for n in asked if self.content.get(n) != asked[n]}
            if other:
                told = ", ".join(f"{name} was {value}" for name, value in other.items())
                raise InvalidValueError(
                    f"{path} was made with other settings: {told}",
                    fix="Choose another folder with --out, or remove the file",
                )

    def has(self, variant: str, kind: str) -> bool:
        """Whether a score is there."""
        return kind in self.content["scores"].get(variant, {})

    def put(self, variant: str, kind: str, score: Mapping[str, Any]) -> None:
        """Adds a score and writes the file."""
        self.content["scores"].setdefault(variant, {})[kind] = dict(score)
        self.write()

    def made_by_run(self, run: Mapping[str, Any]) -> None:
        """Adds the run (commit, command, device) that the next scores come from, once."""
        runs = self.content.setdefault("runs", [])
        if dict(run) not in runs:
            runs.append(dict(run))

    def trained_as(self, training: Mapping[str, Any]) -> None:
        """Notes the training that the scores are of; scores of another training are dropped."""
        if self.content.get("training", training) != training:
            self.content["scores"] = {}
        self.content["training"] = dict(training)

    def note(self, name: str, value: Any) -> None:
        """Adds something else worth knowing and writes the file."""
        self.content[name] = value
        self.write()

    def write(self) -> None:
        """Writes the file, all or nothing."""
        write_json(self.path, self.content, sort_keys=False)


def other_code(records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns a line that says which records other code or packages made than run now, or none.

    They are not refused, for a record is worth keeping; but who asks again after a change must not
    take what is printed for what the changed code gives.
    """
    known = {name: one for name, one in records.items() if "made_by" in one}
    told = []
    for name, one in known.items():
        runs = one.get("runs", [])
        same = all(run.get("source") == code_hash()[:16] for run in runs)
        if same and one["made_by"] == versions():
            continue
        commits = dict.fromkeys(run.get("commit", "unknown")[:_DIGITS] for run in runs)
        by = f"interverse {one['made_by'].get('interverse', 'unknown')}"
        by = f"commit {', '.join(commits)}; {by}" if commits else by
        told.append(f"{name} ({by})")
    if not told:
        return []
    shown = ", ".join(told[:_NAMED]) + (" and more" if len(told) > _NAMED else "")
    return [
        f"{len(told)} of {len(known)} results are kept from other code or packages than run now"
        f" (commit {commit()[:_DIGITS]}, interverse {__version__}): {shown}. They were not made"
        " anew: for that choose another folder with --out, or remove their files."
    ]


def versions() -> dict[str, str]:
    """Returns the versions of this package and of those that its numbers depend on."""
    found = installed(*_PACKAGES)
    return {"interverse": __version__, "python": platform.python_version(), **found}


@functools.cache
def commit() -> str:
    """Returns the commit of the checkout that this package lies in.

    Local changes to the package add "+changes". Outside a checkout the environment variable
    GIT_COMMIT is taken, and without it "unknown"; a run's stamp has a hash of the code too.
    """

    def git(*words: str) -> str:
        command = ["git", "-C", str(_PACKAGE), *words]
        try:
            return subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""

    head = git("rev-parse", "HEAD")
    if not head:
        return os.environ.get("GIT_COMMIT", "unknown")
    return head + ("+changes" if git("status", "--porcelain", "--", str(_PACKAGE)) else "")


def run_stamp(command: str, device: str) -> dict[str, str]:
    """Returns what says where a run's numbers come from: code, command, and the device's name."""
    code = {"commit": commit(), "source": code_hash()[:16]}
    return {**code, "command": command, "device": device_name(device)}


def device_name(device: str) -> str:
    """Returns the name of the machine part that computes."""
    return torch.cuda.get_device_name(device) if device != "cpu" else "CPU"


def fit_seeds(
    settings: Any,
    asked: Mapping[str, Any],
    clock: Clock,
    *,
    work: Callable[[Mapping[int, Record]], None],
    page: Callable[[list[dict[str, Any]]], None],
    first: Callable[[dict[str, Any]], Mapping[str, Any]] = dict,
) -> dict[str, Any]:
    """Returns scores of the first seed, whether all is complete, the folder, a record per seed.

    `asked` is what decides the numbers beside the world and the seed. `work` does all that the
    records lack, `page` writes the page of complete ones, and `first` picks the scores to show of
    those of the first seed.
    """
    folder: Path = settings.folder
    about = {"world": settings.id, "options": dict(settings.options), **asked}
    records = {
        seed: Record(folder / f"seed-{seed}.json", {**about, "seed": seed})
        for seed in range(1, settings.seeds + 1)
    }
    complete = clock.ends(lambda: work(records))
    found = [record.content for record in records.values()]
    for line in other_code({one.path.name: one.content for one in records.values()}):
        clock.say(line)
    if complete:
        page(found)
        clock.say(f"written: {folder / 'index.html'}")
    scores = first(found[0]["scores"].get("model", {}))
    return {**scores, "complete": complete, "folder": str(folder), "seeds": found}
