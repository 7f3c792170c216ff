"""Episodes at rest: what was seen, done and intervened on, what made it; one file, or folders.

A folder has a file for every so many episodes, each read when it is asked for.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

import h5py
import numpy as np
from numpy.typing import NDArray

from interverse._version import __version__
from interverse.core.errors import FileFormatError, check_whole, explain
from interverse.core.files.atomic import make_folder
from interverse.core.files.hdf5 import HDF5_ERRORS, new_hdf5, open_hdf5
from interverse.core.files.json_text import parse_json, plain
from interverse.core.notebook import curve_html, table_html
from interverse.core.type_checks import blames_types

_FORMAT = "interverse-episode-1"
_INFO, _COLUMNS = "info", "columns"  # the group of info, the names of an array's columns
Tree = Any  # an array, or a dict of them
_NAME = "episodes_{:08d}_{:08d}.h5"  # first and last index in the file
_PATTERN = re.compile(r"episodes_(\d{8,})_(\d{8,})\.h5")


@final
@dataclass(frozen=True, slots=True)
class AppliedDo:
    """An intervention that took effect before action `step` (at reset: before the first)."""

    step: int
    values: Mapping[str, Any]  # name -> nested lists
    at_reset: bool = False


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """An intervention that was refused before action `step`, with the reason."""

    step: int
    variables: tuple[str, ...]
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Episode:
    """One episode of one world, T actions long.

    Attributes:
        id: the world's id; `options`: what `make` was given.
        seed: the seed; `episode`: the number of the episode under that seed, from 0.
        observations: (T+1, ...) or a dict of such.
        actions: (T, ...). rewards, terminated, truncated: (T,).
        values: every variable, (T+1, *shape).
        info: arrays (T, ...) of `info`; `columns`: names of their columns, where they have names.
        interventions: those that took effect; `refusals`: those that did not.
        version: the package version that made it.
    """

    id: str
    options: Mapping[str, Any]
    seed: int
    episode: int
    observations: Tree
    actions: NDArray[Any]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    values: Mapping[str, NDArray[Any]]
    info: Mapping[str, NDArray[Any]]
    interventions: tuple[AppliedDo, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    start: bytes = b""  # a snapshot the episode started from, instead of a reset
    version: str = __version__
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many actions were taken."""
        return len(self.actions)

    def __repr__(self) -> str:
        """Names the world and the episode; the arrays stand in its fields."""
        told = f"{self.id}, seed {self.seed}, episode {self.episode}, {len(self)} steps"
        done = f", {len(self.interventions)} interventions, {len(self.refusals)} refusals"
        return f"Episode({told}, return {self.rewards.sum():.4g}{done})"

    def _repr_html_(self) -> str:
        """Shows the world, what was set and refused, and the rewards as a curve."""
        done = [("set", e.step, json.dumps(plain(e.values))) for e in self.interventions]
        done += [("refused", r.step, r.reason) for r in self.refusals]
        rows = [[how, f"before action {step}", what] for how, step, what in done]
        finite = [float(r) for r in self.rewards if np.isfinite(r)]
        curve = f"<div>reward {curve_html(finite, '#8b95a1')}</div>" if finite else ""
        below = table_html(("", "when", "what"), rows) if rows else ""
        return f"<b>{html.escape(repr(self))}</b>{curve}{below}"

    @property
    def fingerprint(self) -> str:
        """A hash of everything in it: equal for equal episodes, on any machine."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(json.dumps(self._header(), sort_keys=True).encode())
        for name, array in sorted(self.arrays().items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @blames_types
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the episode to an HDF5 file, whole or not at all; returns its path."""
        target = Path(path)
        with new_hdf5(target) as file:
            self.write(file)
        return target

    def write(self, group: h5py.Group) -> None:
        """Writes the episode into an empty HDF5 group."""
        group.attrs["format"] = _FORMAT
        group.attrs["header"] = json.dumps(self._header())
        group.attrs["fingerprint"] = self.fingerprint
        for name, array in self.arrays().items():
            packed = {"compression": "gzip"} if array.size > 64 else {}
            group.create_dataset(name, data=array, **packed)
        for name, titles in self.columns.items():
            group[f"{_INFO}/{name}"].attrs[_COLUMNS] = list(titles)

    @classmethod
    def read(cls, group: h5py.Group) -> Episode:
        """Returns the episode in an HDF5 group, or raises ValueError, KeyError or TypeError."""
        if group.attrs.get("format") != _FORMAT:
            raise ValueError(f"format {group.attrs.get('format')!r}")
        header = parse_json(group.attrs["header"], "the header")
        header["interventions"] = tuple(AppliedDo(**item) for item in header["interventions"])
        header["refusals"] = tuple(
            Refusal(item["step"], tuple(item["variables"]), item["reason"])
            for item in header["refusals"]
        )
        columns = {
            name: tuple(item.attrs[_COLUMNS])
            for name, item in group.get(_INFO, {}).items()
            if _COLUMNS in item.attrs
        }
        tree = _read_tree(group)
        start = tree.pop("start").tobytes()
        held = {"values": {}, "info": {}} | tree
        episode = cls(**header, **held, start=start, columns=columns)
        if episode.fingerprint != group.attrs["fingerprint"]:
            raise ValueError("the arrays do not match their fingerprint")
        return episode

    @classmethod
    @blames_types
    def load(cls, path: str | os.PathLike[str]) -> Episode:
        """Returns the episode in a file; a corrupt or foreign file raises FileFormatError."""
        try:
            with open_hdf5(path) as file:
                return cls.read(file)
        except FileNotFoundError:
            raise
        except HDF5_ERRORS as error:
            raise FileFormatError(
                f"{Path(path).name} is no episode: {error}",
                allowed=f"an HDF5 file of format {_FORMAT}",
                fix="Write it with Episode.save",
            ) from error

    def _header(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "options": plain(self.options),
            "seed": self.seed,
            "episode": self.episode,
            "interventions": [asdict(item) for item in self.interventions],
            "refusals": [asdict(item) for item in self.refusals],
            "version": self.version,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns everything measured, by path."""
        out = _flatten("observations", self.observations)
        out |= _flatten("values", dict(self.values)) | _flatten(_INFO, dict(self.info))
        for name in ("actions", "rewards", "terminated", "truncated"):
            out[name] = getattr(self, name)
        out["start"] = np.frombuffer(self.start, dtype=np.uint8)
        return out


def _flatten(prefix: str, tree: Tree) -> dict[str, NDArray[Any]]:
    if not isinstance(tree, Mapping):
        return {prefix: tree}
    out: dict[str, NDArray[Any]] = {}
    for name, value in tree.items():
        out |= _flatten(f"{prefix}/{name.replace('/', '|')}", value)
    return out


def _read_tree(group: h5py.Group) -> dict[str, Any]:
    return {
        name.replace("|", "/"): _read_tree(item) if isinstance(item, h5py.Group) else item[()]
        for name, item in group.items()
    }


@final
class EpisodeWriter:
    """Writes episodes to a folder, `every` of them to a file, each file whole or not at all.

    A folder that holds episodes already is continued: numbers go on where they ended. Episodes not
    yet in a file are lost if the process dies; `close`, or leaving the `with`, writes them.

    >>> import tempfile
    >>> from interverse.rollouts import rollout
    >>> folder = tempfile.mkdtemp()
    >>> with EpisodeWriter(folder, every=2) as writer:
    ...     for seed in range(3):
    ...         writer.add(rollout("chemistry/chain-v1", "random", seed=seed, max_steps=2))
    >>> [episode.seed for episode in EpisodeFolder(folder)]
    [0, 1, 2]
    """

    @blames_types
    def __init__(self, folder: str | os.PathLike[str], *, every: int = 100) -> None:
        check_whole(every, "every", 10**9)
        self.folder, self.every = Path(folder), every
        make_folder(self.folder)
        self._next = len(EpisodeFolder(self.folder))
        self._pending: list[Episode] = []

    def __enter__(self) -> EpisodeWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._next + len(self._pending)

    def add(self, episode: Episode) -> None:
        """Takes an episode; writes a file when there are enough."""
        self._pending.append(episode)
        if len(self._pending) >= self.every:
            self.close()

    def close(self) -> None:
        """Writes what is pending; the writer can go on."""
        if not self._pending:
            return
        last = self._next + len(self._pending) - 1
        target = self.folder / _NAME.format(self._next, last)
        with new_hdf5(target) as file:
            for i, episode in enumerate(self._pending):
                episode.write(file.create_group(str(self._next + i)))
        self._next, self._pending = last + 1, []


@final
class EpisodeFolder(Sequence[Episode]):
    """The episodes of a folder, read when asked for."""

    @blames_types
    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise FileNotFoundError(explain(f"there is no folder {self.folder}"))
        found = sorted(
            (int(match[1]), int(match[2]), path)
            for path in self.folder.iterdir()
            if (match := _PATTERN.fullmatch(path.name))
        )
        self._files: list[tuple[int, int, Path]] = []
        for first, last, path in found:
            if first != len(self) or last < first:
                raise FileFormatError(
                    f"{path.name} starts at {first} where {len(self)} is next",
                    fix="Put the missing file back, or record into a new folder",
                )
            self._files.append((first, last, path))

    def __len__(self) -> int:
        return self._files[-1][1] + 1 if self._files else 0

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        wanted = index + len(self) if index < 0 else index
        path = self.file_of(wanted)
        with opened_episodes(path) as file:
            return _read(file, wanted, path)

    def file_of(self, index: int) -> Path:
        """Returns the file an episode lies in."""
        for first, last, path in self._files:
            if first <= index <= last:
                return path
        raise IndexError(explain(f"there is no episode {index}", allowed=f"0 to {len(self) - 1}"))

    @staticmethod
    def file_name(first: int, last: int) -> str:
        """Returns the name of the file that holds some episodes."""
        return _NAME.format(first, last)

    def __iter__(self) -> Iterator[Episode]:
        for first, last, path in self._files:
            with opened_episodes(path) as file:
                for i in range(first, last + 1):
                    yield _read(file, i, path)


@contextmanager
def opened_episodes(path: Path) -> Iterator[h5py.File]:
    """Yields an open file of episodes; one that is corrupt raises FileFormatError with its name."""
    try:
        with open_hdf5(path) as file:
            yield file
    except FileFormatError:
        raise
    except HDF5_ERRORS as error:
        raise FileFormatError(f"{path.name} cannot be read: {error}") from error


def _read(file: h5py.File, index: int, path: Path) -> Episode:
    try:
        return Episode.read(file[str(index)])
    except HDF5_ERRORS as error:
        raise FileFormatError(f"episode {index} in {path.name} cannot be read: {error}") from error
