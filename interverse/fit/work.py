"""Work that can be stopped: a clock, failures that wait, records at rest, what made them."""

from __future__ import annotations

import functools
import hashlib
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
from interverse.core.code import installed
from interverse.core.errors import InterverseError, InvalidValueError, explain
from interverse.models.checkpoint import read_json, write_json
from interverse.models.fit import Epoch

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
            raise InvalidValueError(explain(f"time_limit is {limit}", allowed="seconds from 0 on"))
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

    def watch(self, name: str, epochs: int, *, saved_every: int) -> Callable[[Epoch], None]:
        """Returns a listener of training that tells a few times per stage, and minds the limit.

        It stops training only after an epoch whose end was saved.
        """
        spent: dict[str, float] = {}

        def listener(epoch: Epoch) -> None:
            before = 0.0 if epoch.epoch == 1 else spent.get(epoch.stage, 0.0)
            spent[epoch.stage] = before + epoch.seconds
            if epoch.epoch % max(1, epochs // _LINES) == 0 or epoch.epoch == epochs:
                valid = " ".join(f"{value:.4g}" for value in epoch.valid)
                self.say(
                    f"{name}: {epoch.stage} {epoch.epoch}/{epochs} epochs,"
                    f" {spent[epoch.stage]:.1f} s ({epoch.seconds:.2f} s the last), valid {valid}"
                )
            if epoch.epoch % saved_every == 0 or epoch.epoch == epochs:
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
            raise InvalidValueError(explain(f"all is written but what failed: {lines}"))


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
            self.content = read_json(path)
            _check_same(path, self.content, asked)

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
        write_json(self.path, self.content)


def _check_same(path: Path, found: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raises if a record was made with other settings."""
    asked = json.loads(json.dumps(dict(asked)))
    other = {name: found.get(name) for name in asked if found.get(name) != asked[name]}
    if other:
        told = ", ".join(f"{name} was {value}" for name, value in other.items())
        raise InvalidValueError(
            explain(
                f"{path} was made with other settings: {told}",
                fix="Choose another folder with --out, or remove the file",
            )
        )


def other_code(records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns a line that says which records other code or packages made than run now, or none.

    They are not refused, for a record is worth keeping; but who asks again after a change must not
    take what is printed for what the changed code gives.

    Args:
        records: the content of records by name.
    """
    known = {name: one for name, one in records.items() if "made_by" in one}
    others = [_code_of(one, name) for name, one in known.items() if _by_other_code(one)]
    if not others:
        return []
    told = ", ".join(others[:_NAMED]) + (" and more" if len(others) > _NAMED else "")
    return [
        f"{len(others)} of {len(known)} results are kept from other code or packages than run now"
        f" (commit {commit()[:_DIGITS]}, interverse {__version__}): {told}. They were not made"
        " anew: for that choose another folder with --out, or remove their files."
    ]


def _by_other_code(record: Mapping[str, Any]) -> bool:
    runs = record.get("runs", [])
    same = all(run.get("source") == source_digest() for run in runs)
    return not same or record["made_by"] != versions()


def _code_of(record: Mapping[str, Any], name: str) -> str:
    """Returns a record's name with the commits, else the version, that made it."""
    commits = dict.fromkeys(
        run.get("commit", "unknown")[:_DIGITS] for run in record.get("runs", [])
    )
    version = f"interverse {record['made_by'].get('interverse', 'unknown')}"
    return f"{name} (commit {', '.join(commits)}; {version})" if commits else f"{name} ({version})"


def versions() -> dict[str, str]:
    """Returns the versions of this package and of those that its numbers depend on."""
    found = installed(*_PACKAGES)
    return {"interverse": __version__, "python": platform.python_version(), **found}


@functools.cache
def source_digest() -> str:
    """Returns the first 16 digits of the SHA-256 of this package's Python files and their names."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@functools.cache
def commit() -> str:
    """Returns the commit of the checkout that this package lies in.

    Local changes to the package add "+changes". Outside a checkout the environment variable
    GIT_COMMIT is taken, and without it "unknown"; `source_digest` identifies the code in any case.
    """
    head = _git("rev-parse", "HEAD")
    if not head:
        return os.environ.get("GIT_COMMIT", "unknown")
    return head + ("+changes" if _git("status", "--porcelain", "--", str(_PACKAGE)) else "")


def run_stamp(command: str, device: str) -> dict[str, str]:
    """Returns what says where a run's numbers come from: code, command, and the device's name."""
    code = {"commit": commit(), "source": source_digest()}
    return {**code, "command": command, "device": device_name(device)}


def device_name(device: str) -> str:
    """Returns the name of the machine part that computes."""
    return torch.cuda.get_device_name(device) if device != "cpu" else "CPU"


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(_PACKAGE), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
