"""`interverse new`: the first files of a world, a task, an actor, a metric or a world model."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Literal

import tyro

from interverse.cli.flags import AsJson, tell
from interverse.core.errors import InvalidValueError

_TEMPLATES = "interverse.cli.templates"
_WORD = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class New:
    """Writes a working start: a world (a folder), a TriFinger task, an actor, a metric, a model."""

    kind: Annotated[Literal["world", "task", "actor", "metric", "model"], tyro.conf.Positional]
    """What to start: world, task, actor, metric or world model."""
    name: Annotated[str, tyro.conf.Positional]
    """Its name, a Python module's: lower case letters, digits and underscores."""
    folder: Path = Path()
    """Where to write it."""
    json: AsJson = False


def new(config: New) -> Path:
    """Writes the files and says what to do next."""
    if not _WORD.fullmatch(config.name):
        raise InvalidValueError(
            f"name is {config.name!r}",
            allowed="a module's name: lower case letters, digits and underscores",
        )
    target = config.folder / (config.name if config.kind == "world" else f"{config.name}.py")
    if target.exists():
        raise InvalidValueError(f"{target} exists", fix="Choose another name or folder")
    config.folder.mkdir(parents=True, exist_ok=True)
    if config.kind == "world":
        _world(target, config.name)
    else:
        text = files(_TEMPLATES).joinpath(f"{config.kind}.py.txt").read_text(encoding="utf-8")
        target.write_text(text.replace("NAME", config.name), encoding="utf-8")
    written = sorted(target.rglob("*")) if target.is_dir() else [target]
    made = {"path": target, "files": [path for path in written if path.is_file()]}
    tell(config, made, str(target), f"Next: {_NEXT[config.kind].format(name=config.name)}")
    return target


_NEXT = {
    "world": "interverse check {name}:lab/{name}-v1",
    "task": "interverse check {name}:lab/{name}-v1",
    "actor": "from {name} import InTurn, for a stage of a curriculum; see docs/evaluation.md",
    "model": "interverse fit blocks/observed-3-v1 --model {name}:Own --out runs/{name}",
    "metric": "iv.evaluate(..., metrics=[{name}.effort]); see docs/evaluation.md",
}


def _world(target: Path, name: str) -> None:
    """Copies the tutorial's world and registers it in the copy's own package file."""
    with as_file(files("interverse.worlds.tutorial")) as source:
        shutil.copytree(
            source, target, ignore=shutil.ignore_patterns("__pycache__", "witnesses.json")
        )
    (target / "__init__.py").write_text(
        f'"""lab/{name}-v1: a world of one\'s own, begun as a box on a table."""\n\n'
        "import interverse as iv\n\n"
        f'iv.register("lab/{name}-v1", "{name}.world:Slider")\n',
        encoding="utf-8",
    )
