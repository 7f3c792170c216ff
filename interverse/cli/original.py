"""`interverse export_original` and `import_original`: files of CausalMBRL's layout, out and in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from interverse.cli.evaluate import parse_pairs
from interverse.cli.json_output import print_json
from interverse.core.errors import InvalidValueError, explain
from interverse.data import export_original as write_original
from interverse.data import import_original as read_original
from interverse.data import load_dataset
from interverse.data.dataset import Dataset


@dataclass(frozen=True, kw_only=True)
class ExportOriginal:
    """Writes data in CausalMBRL's layout, which its trainer and its evaluation read."""

    data: Annotated[str, tyro.conf.Positional]
    """What `interverse collect` wrote for blocks or chemistry, or an id, such as
    blocks/observed-3-v1, whose published split is made first."""
    out: Path
    """The file to write; a transition takes 60 kB."""
    split: str | None = None
    """Of an id: train (by default), valid, test, test-v1, zero-shot, few-shot-v1, ..."""
    episodes: int | None = None
    """Of an id: only the first so many of the split's."""
    option: tuple[str, ...] = ()
    """Of an id: options of the world, as NAME=VALUE (JSON values)."""
    json: bool = False
    """Write one JSON document to standard output."""


@dataclass(frozen=True, kw_only=True)
class ImportOriginal:
    """Reads a file of CausalMBRL's layout into a data set that `load_dataset` opens."""

    source: Annotated[Path, tyro.conf.Positional]
    """The original's file."""
    id: str
    """The world it was made in, such as blocks/observed-3-v1: the file does not name it."""
    out: Path
    """The data set to write, FILE.h5."""
    order: Literal["number", "text"] = "number"
    """Episodes by their number, or as the original's reader has them: 0, 1, 10, 100, ..."""
    option: tuple[str, ...] = ()
    """Options of the world, as NAME=VALUE (JSON values), such as cmap=Reds."""
    json: bool = False
    """Write one JSON document to standard output."""


def export_original(config: ExportOriginal) -> None:
    """Writes the file and says where it is."""
    data: Any = load_dataset(
        config.data,
        config.split,
        episodes=config.episodes,
        progress=True,
        **parse_pairs(config.option),
    )
    if not isinstance(data, Dataset):
        told = f"{config.data} is no play of blocks or chemistry"
        raise InvalidValueError(explain(told, allowed="their data and ids"))
    _tell({"path": write_original(data, config.out), "episodes": len(data)}, as_json=config.json)


def import_original(config: ImportOriginal) -> None:
    """Reads the file and says where the data set is."""
    options = parse_pairs(config.option)
    path = read_original(config.source, config.out, id=config.id, order=config.order, **options)
    _tell({"path": path, "episodes": len(load_dataset(str(path)))}, as_json=config.json)


def _tell(made: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(made)
    else:
        Console().print(f"{made['path']}: {made['episodes']} episodes", soft_wrap=True)
