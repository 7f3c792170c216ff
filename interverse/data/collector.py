"""One way to collect: a folder of shards, written where they are made, under one header.

    FOLDER/collect.json     the header: what the data depend on; at the end the manifest's hash, too
    FOLDER/shards.jsonl     the manifest: a line for each finished shard, with its size and hash
    FOLDER/*.h5             the shards, each whole or not at all

A shard is a function of the header and of its own place, so that workers, kills and restarts change
no byte. Asked for more later, a folder keeps its shards and gets new ones. Data of two settings, or
of two versions of the code, never share a folder. Started again, whatever is not there with the
bytes that were written down is made again.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, final

from filelock import FileLock

from interverse._version import __version__
from interverse.core.errors import FileFormatError, InvalidValueError, explain
from interverse.core.files.atomic import (
    check_path,
    make_folder,
    remove_stale,
    scratch_folder,
    storage,
    write_bytes,
    write_json,
)
from interverse.core.files.json_text import parse_json, plain, read_json_object
from interverse.core.run import Display
from interverse.core.type_checks import whole
from interverse.rollouts.executors import run_units
from interverse.worlds.own_code import data_code

HEADER = "collect.json"
FORMAT = "interverse-collection-1"
MOST_EPISODES = 10_000_000  # of one data set
Count = Annotated[int, whole(MOST_EPISODES)]
MANIFEST = "shards.jsonl"
_HASH, _SIGHT = "manifest", ".here"
_PATTERNS = ("grid_*.h5", "house_*.h5")  # names that nothing else in the package writes
Write = Callable[[Path, Any, Any], Mapping[str, Any]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One file of a folder: its size and hash, and what it holds, such as how many episodes."""

    file: str
    bytes: int
    hash: str
    held: Mapping[str, Any] = field(default_factory=dict)

    def is_whole(self, folder: Path) -> bool:
        """Returns whether the file is there with the bytes that were written."""
        path = folder / self.file
        return self.has_size(folder) and file_hash(path) == self.hash

    def has_size(self, folder: Path) -> bool:
        """Returns whether the file is there and as long as it was: all that an opening checks."""
        path = folder / self.file
        return path.is_file() and path.stat().st_size == self.bytes


def collection_header(
    kind: str, id: str, options: Mapping[str, Any], seed: int, **settings: Any
) -> dict[str, Any]:
    """Returns the header of a collection, JSON-ready.

    `kind` (episodes, grid or pairs) is also the name of the number that may grow; unit n of the
    data (an episode, a house) has the address (seed, n); `settings` are what else the data
    depend on.
    """
    return {
        "format": FORMAT,
        "kind": kind,
        "id": id,
        "options": plain(options),
        "seed": int(seed),
        **settings,
        "version": __version__,
        "code": data_code(id, options),
    }


def plain_options(value: Any) -> Any:
    """Returns options as JSON holds them: arrays and tuples as lists; what is neither raises."""

    def refuse(value: Any) -> Any:
        told = f"option of type {type(value).__name__}"
        raise InvalidValueError(told, allowed="numbers, text, lists, None")

    return plain(value, refuse)


def read_collection(folder: Path, kind: str) -> tuple[dict[str, Any], tuple[Shard, ...]]:
    """Returns header and shards of a finished folder; a shard that is not whole raises."""
    path = folder / HEADER
    if not path.is_file():
        raise FileNotFoundError(
            explain(
                f"there is no {path}",
                fix="Make it with `interverse collect`, which also finishes a half-made folder",
            )
        )
    held = read_json_object(path)
    if (held.get("format"), held.get("kind")) != (FORMAT, kind):
        raise FileFormatError(
            f"{path} has format {held.get('format')!r} and kind {held.get('kind')!r}",
            allowed=f"{FORMAT}, {kind}",
        )
    manifest = folder / MANIFEST
    if not manifest.is_file() or held.pop(_HASH, None) != file_hash(manifest):
        raise FileFormatError(
            f"{folder} is half-made, or its {MANIFEST} was changed",
            fix="Start the same `interverse collect` again: what is finished is kept",
        )
    shards = tuple(_manifest(folder))
    for shard in shards:
        if not shard.has_size(folder):
            raise FileFormatError(
                f"{folder / shard.file} is missing or truncated",
                fix="Start the same `interverse collect` again: it is made anew",
            )
    return held, shards


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the right to write a file or folder; the system takes it back from a killed process."""
    if not path.name:
        raise InvalidValueError(f"out is {path}", allowed="a name")
    check_path(path)
    with storage(path):
        make_folder(path.parent)
        lock = path.with_name(f".{path.name}.lock")
        lock.touch()  # raises where no file can be made; the lock would wait for ever
        with FileLock(lock):
            remove_stale(path.parent)
            remove_stale(path)
            yield
            lock.unlink(missing_ok=True)


@contextmanager
def collection(
    folder: Path,
    header: Mapping[str, Any],
    *,
    grows: str,
    overwrite: bool = False,
) -> Iterator[Collection]:
    """Yields a folder to collect into, for one process at a time.

    The number in the header that `grows` may be larger than before. Another data set that is
    there raises, or with `overwrite` goes.
    """
    with locked(folder):
        if (folder / HEADER).exists() and overwrite:
            listed = [folder / shard.file for shard in _manifest(folder)]
            listed = listed or list(folder.glob("episodes_*.h5"))  # from before the manifest
            for path in (*listed, *_files(folder), folder / HEADER, folder / MANIFEST):
                path.unlink(missing_ok=True)
        held = _held(folder, header, grows)
        make_folder(folder)
        if not held:
            write_json(folder / HEADER, header)
        found = Collection(folder, header)
        try:
            yield found
        finally:
            (folder / _SIGHT).unlink(missing_ok=True)


@final
class Collection:
    """A folder that is being written, see `collection`; `shards` are those that are whole."""

    def __init__(self, folder: Path, header: Mapping[str, Any]) -> None:
        self._folder, self._header = folder, dict(header)
        known = list(_manifest(folder))
        self.shards = {shard.file: shard for shard in known if shard.is_whole(folder)}
        self._mine = {shard.file for shard in known}  # and what is begun: other files are let be
        if (folder / MANIFEST).exists():  # without a line that a power cut tore
            _write_manifest(folder, self.shards.values())

    def make(
        self,
        write: Write,
        units: Iterable[tuple[str, Any]],
        shared: Any,
        *,
        workers: int,
        cluster: str | None,
    ) -> Generator[tuple[Any, Shard]]:
        """Yields units and their shards as they are finished; close it to stop early.

        `write(path, unit, shared)` is a function of a module; what it returns is the shard's
        `held`. Units, maybe endlessly many, are the name of a file and what is to be in it. The
        attribute `gpus` of `shared` says how many GPUs a unit takes.
        """
        run = uuid.uuid4().hex
        write_bytes(self._folder / _SIGHT, run.encode())
        work = _Work(write=write, shared=shared, folder=self._folder.resolve(), run=run)

        def begun() -> Iterator[tuple[str, Any]]:
            for name, unit in units:
                self._mine.add(name)
                yield name, unit

        made = run_units(_make, begun(), work, workers=workers, cluster=cluster)
        with closing(made) as finished:
            for (name, unit), (shard, content) in finished:
                if content is not None:
                    write_bytes(self._folder / name, content)
                with (self._folder / MANIFEST).open("a") as manifest:
                    manifest.write(_line(shard))
                self.shards[name] = shard
                yield unit, shard

    def make_all(
        self,
        write: Write,
        units: Mapping[str, range],
        shared: Any,
        advance: Callable[[int], None],
    ) -> None:
        """Makes the units that are missing, all of episodes, and finishes the folder with them.

        `write` and `shared` are as for `make`, `workers` and `cluster` of `shared` say who
        plays, `units` has the episodes of each file, and `advance` is told how many more
        episodes there are.
        """
        missing = [(name, unit) for name, unit in units.items() if name not in self.shards]
        advance(sum(len(unit) for name, unit in units.items() if name in self.shards))
        how = {"workers": shared.workers, "cluster": shared.cluster}
        with closing(self.make(write, missing, shared, **how)) as made:
            for unit, _ in made:
                advance(len(unit))
        self.finish(units)

    def finish(self, names: Iterable[str], **more: Any) -> None:
        """Writes the header with its shards, in order, and removes other ones.

        `more` is what only the finished shards tell, for the header.
        """
        chosen = {name: self.shards[name] for name in names}
        halves = self._folder.glob(".*.partial*")  # of workers that were not waited for
        begun = (self._folder / name for name in self._mine)
        for path in {*begun, *_files(self._folder), *halves}:
            if path.name not in chosen:
                path.unlink(missing_ok=True)
        _write_manifest(self._folder, chosen.values())
        told = {**self._header, **more, _HASH: file_hash(self._folder / MANIFEST)}
        if read_json_object(self._folder / HEADER) != json.loads(json.dumps(told)):
            write_json(self._folder / HEADER, told)


@dataclass(frozen=True, kw_only=True)
class _Work:
    """Makes units. A machine that finds `run` in the folder's `.here` writes there."""

    write: Write
    shared: Any
    folder: Path
    run: str

    @property
    def gpus(self) -> int:
        return getattr(self.shared, "gpus", 0)

    def shard(self, path: Path, unit: Any) -> Shard:
        """Writes a shard; returns what the manifest says of it."""
        held = dict(self.write(path, unit, self.shared))
        return Shard(file=path.name, bytes=path.stat().st_size, hash=file_hash(path), held=held)


def _make(named: tuple[str, Any], work: _Work) -> tuple[Shard, bytes | None]:
    """Writes a shard into the folder, or returns its bytes where the folder cannot be seen."""
    name, unit = named
    if _sees(work):
        return work.shard(work.folder / name, unit), None
    with scratch_folder() as folder:
        return work.shard(folder / name, unit), (folder / name).read_bytes()


def _sees(work: _Work) -> bool:
    sight = work.folder / _SIGHT
    return sight.is_file() and sight.read_text() == work.run


def file_hash(path: Path) -> str:
    """Returns the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _held(folder: Path, header: Mapping[str, Any], grows: str) -> dict[str, Any]:
    """Returns the header that is there, empty for none; raises for that of another data set."""
    if not (folder / HEADER).exists():
        other = next((path.name for path in folder.glob("*_*.h5")), None)
        if other is not None:  # such as recorded episodes, which would be taken for part of these
            what = f"{folder} holds {other}, which `interverse collect` did not write"
            raise InvalidValueError(what, fix="Choose another folder")
        return {}
    held = read_json_object(folder / HEADER)
    names = {name for name in header if name not in ("version", grows)}
    differing = sorted(name for name in names if held.get(name) != header[name])
    more = held.get(grows)
    if isinstance(more, int) and more > header[grows] and _HASH in held:
        differing = sorted([*differing, grows])
    if differing:
        told = {n: v for n, v in held.items() if n in differing and n not in ("format", "code")}
        there = f" (there: {plain(told)})" if told else ""
        raise InvalidValueError(
            f"{folder} holds another data set; it differs in {', '.join(differing)}{there}",
            fix="Choose another folder, or replace it with overwrite=True (--overwrite)",
        )
    return held


def _manifest(folder: Path) -> Iterator[Shard]:
    """Yields the shards written down so far; a line that is no shard's is left out."""
    path = folder / MANIFEST
    if not path.is_file():
        return
    with path.open("rb") as lines:  # a damaged byte may be no text
        for line in lines:
            try:
                shard = Shard(**parse_json(line, "a line"))
            except (ValueError, TypeError):
                continue
            name, types = shard.file, (shard.file, shard.bytes, shard.hash, shard.held)
            if tuple(map(type, types)) != (str, int, str, dict):
                continue
            if Path(name).name != name or name in ("", ".", ".."):
                raise FileFormatError(f"{path} names {name!r}, outside the folder")
            yield shard


def _write_manifest(folder: Path, shards: Iterable[Shard]) -> None:
    path, text = folder / MANIFEST, "".join(map(_line, shards)).encode()
    if not path.is_file() or path.read_bytes() != text:
        write_bytes(path, text)


def _line(shard: Shard) -> str:
    return json.dumps(asdict(shard), sort_keys=True) + "\n"


def _files(folder: Path) -> list[Path]:
    return [path for pattern in _PATTERNS for path in folder.glob(pattern)]


@contextmanager
def progress_bar(title: str, total: int, *, show: bool) -> Iterator[Callable[[int], None]]:
    """Yields a function that is told how many more are done; the bar is on standard error.

    It appears with the first of them, so that a mistake is one line.
    """
    with ExitStack() as stack:
        display, task, done = Display(show=show, unit="done"), None, 0

        def advance(count: int) -> None:
            nonlocal task, done
            if task is None:
                stack.enter_context(display)
                task = display.add(title, total)
                stack.callback(display.end, task)
            done += count
            display.update(task, done)

        yield advance
