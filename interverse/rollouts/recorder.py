"""Many episodes at rest: recorded as they happen, a file for every so many, read one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import gymnasium as gym
import h5py

from interverse.core.errors import FileFormatError, InvalidValueError, check_whole, explain
from interverse.core.files.atomic import make_folder
from interverse.core.files.hdf5 import HDF5_ERRORS, new_hdf5, open_hdf5
from interverse.core.type_checks import blames_types
from interverse.rollouts.episode import Episode
from interverse.rollouts.runner import Recorder, world_env

_NAME = "episodes_{:08d}_{:08d}.h5"  # first and last index in the file
_PATTERN = re.compile(r"episodes_(\d{8,})_(\d{8,})\.h5")


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
                    explain(
                        f"{path.name} starts at {first} where {len(self)} is next",
                        fix="Put the missing file back, or record into a new folder",
                    )
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
        raise FileFormatError(explain(f"{path.name} cannot be read: {error}")) from error


def _read(file: h5py.File, index: int, path: Path) -> Episode:
    try:
        return Episode.read(file[str(index)])
    except HDF5_ERRORS as error:
        raise FileFormatError(
            explain(f"episode {index} in {path.name} cannot be read: {error}")
        ) from error


@final
class RecordEpisodes(gym.Wrapper[Any, Any, Any, Any]):
    """Records every episode of an environment, below any wrapper inside it, as it is played.

    An episode goes to the writer when it ends, or with the reset or the close that cuts it short.
    `gym.make(env.spec)` cannot make another one: a folder has one writer.

    Args:
        env: an environment of interverse, wrapped or not.
        writer: where episodes go; a path is a folder without episodes, so that a program that is
            run twice does not keep everything twice. An `EpisodeWriter` goes on with a folder.
    """

    def __init__(
        self, env: gym.Env[Any, Any], writer: EpisodeWriter | str | os.PathLike[str]
    ) -> None:
        super().__init__(env)
        given = isinstance(writer, EpisodeWriter)
        self.writer: EpisodeWriter = writer if given else EpisodeWriter(writer)  # type: ignore[assignment,arg-type]
        if not given and len(self.writer):
            raise InvalidValueError(
                explain(
                    f"{self.writer.folder} holds {len(self.writer)} episodes already",
                    fix="Choose another folder, or pass EpisodeWriter(folder) to add to them",
                )
            )
        self._inner = world_env(env)
        self._recorder: Recorder | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode and its record."""
        self._finish()
        seen, info = self.env.reset(seed=seed, options=options)
        start = None if options is None else options.get("snapshot")
        self._recorder = Recorder(self._inner, self._inner.observe(), start).__enter__()
        return seen, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Advances the environment by one action."""
        out = self.env.step(action)
        if self._recorder is not None and self._recorder.ended:
            self._finish()
        return out

    def close(self) -> None:
        """Writes what is pending and closes the environment."""
        self._finish()
        self.writer.close()
        self.env.close()

    def _finish(self) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.__exit__()
            if recorder.steps:
                self.writer.add(recorder.episode())
