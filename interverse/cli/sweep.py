"""`interverse sweep`: tasks x algorithms x curricula x seeds from one file, then a report.

Each combination is a cell: a folder as `interverse train --out` writes it, with `scores/` as
`interverse evaluate --out` does. `finished.json` is written last and holds the hashes of the policy
and of the scores.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, final

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column, Table

from interverse.cli import UsageError, parse_flags
from interverse.cli.evaluate import Evaluate
from interverse.cli.flags import AsJson, flag_names, flag_words, parse_pairs, tell
from interverse.cli.train import parsed, training, usual_algorithm
from interverse.core.code import stamp
from interverse.core.errors import (
    FileFormatError,
    InterverseError,
    InvalidValueError,
    check_whole,
    explain,
)
from interverse.core.files.atomic import (
    alone_in,
    file_hash,
    remove_stale,
    scratch_folder,
    write_bytes,
    write_json,
)
from interverse.core.files.json_text import read_json_object
from interverse.core.files.yaml_text import check_keys, read_yaml
from interverse.core.rng import check_seed
from interverse.envs.build import build_world
from interverse.protocols.evaluate import RESULT_FILE, evaluate
from interverse.protocols.measures import select_metrics
from interverse.protocols.protocol import check_unset, select_protocols
from interverse.results import Results
from interverse.rollouts.executors import gpus_of, run_units
from interverse.rollouts.policy import load_policy
from interverse.worlds import WORLDS
from interverse.worlds.own_code import own_code
from interverse.worlds.world import engine_of

MOST_WORKERS = 10_000
_KEYS = ("algorithms", "curricula", "evaluate", "seeds", "tasks", "train")
_OTHERS = {"actor", "algorithm", "curriculum", "out", "seed", "seeds"} | {
    "json",
    "task",
}
_EVALUATE = ("device", "episodes", "metrics", "option", "protocols", "seed")
_MOST = 10_000
_NAME = re.compile(r"[\w.+-]{1,60}")
_CELL, FINISHED, FAILED, SCORES = "cell.json", "finished.json", "failed.json", "scores"
_KEPT = ("policy/*", f"{SCORES}/{RESULT_FILE}", f"{SCORES}/index.json")


@dataclass(frozen=True, kw_only=True)
class SweepCommand:
    """Trains and scores every cell of a file; started again, it goes on where it stopped."""

    file: Annotated[Path, tyro.conf.Positional]
    """A YAML file with tasks, algorithms, curricula, seeds, and flags of train and evaluate."""
    out: Path
    """A folder for the cells, the scores of all and the report."""
    workers: int = 1
    """How many cells run at a time."""
    cluster: str | None = None
    """A Ray cluster that runs the cells: local, auto or an address."""
    dry_run: bool = False
    """Show the cells and how far each is, and start none."""
    json: AsJson = False


class FailedCellsError(InterverseError, RuntimeError):
    """A sweep that ended with cells that failed; the others are finished."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCell:
    """One training run and its evaluation.

    Episodes have the training's seed, `seed` of evaluate added: rows of two runs differ in it.
    """

    task: str
    experiment: str  # of its rows, all seeds alike: algorithm and curriculum
    seed: int
    train: tuple[str, ...]  # flags, without --out
    evaluate: tuple[str, ...]

    @property
    def name(self) -> str:
        """A folder's name."""
        world = re.sub(r"[^\w.-]", "_", self.task)
        return f"{world}-{self.experiment}-s{self.seed}"

    def command(self, out: Path) -> Any:
        """Returns the training as a command that writes to a folder."""
        return parsed([*self.train, "--out", str(out)])

    @property
    def gpus(self) -> int:
        """How many GPUs of a cluster it takes."""
        devices = self.command(Path()).device, self.evaluation().get("device")
        return max(map(gpus_of, devices))

    def evaluation(self) -> dict[str, Any]:
        """Returns the arguments of `evaluate` that the file gives, and the seed of the episodes."""
        config = parse_flags(Evaluate, "evaluate", list(self.evaluate))
        given = {name: getattr(config, name) for name in _EVALUATE}
        given["seed"] = check_seed(config.seed) + self.seed
        if config.device is None:
            del given["device"]
        return given | parse_pairs(given.pop("option"), flag_names(config))


def read_plan(file: Path) -> tuple[SweepCell, ...]:
    """Returns the cells of a sweep's file; any mistake in it raises before any work starts."""
    given = read_yaml(file, _KEYS)
    for key in ("evaluate", "train"):
        if not isinstance(given.get(key) or {}, dict):
            raise InvalidValueError(f"{key} is {given[key]!r}", allowed="flags by name")
    scored, trained = (given.get(key) or {} for key in ("evaluate", "train"))
    check_keys(scored, _EVALUATE, f"{file.name}, evaluate")
    _check_free(trained, f"{file.name}, train")
    seeds = given.get("seeds", 1)
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds <= _MOST:
        seeds = list(range(seeds))
    if not (isinstance(seeds, list) and seeds and all(type(seed) is int for seed in seeds)):
        raise InvalidValueError(
            f"seeds is {seeds!r}", allowed=f"how many, from 1 to {_MOST:,}, or a list"
        )
    tasks = _listed(given, "tasks")
    algorithms = [_algorithm(entry) for entry in _listed(given, "algorithms", [None])]
    curricula = [_curriculum(entry) for entry in _listed(given, "curricula", [None])]
    grid = tasks, algorithms, curricula, list(dict.fromkeys(seeds))
    if (count := math.prod(map(len, grid))) > _MOST:
        raise InvalidValueError(f"{file} has {count:,} cells", allowed=f"at most {_MOST:,}")
    cells: dict[str, SweepCell] = {}
    for task, (label, flags), (suffix, stage), seed in product(*grid):
        words = {"task": task, **trained, **flags, **stage, "seed": seed}
        cell = SweepCell(
            task=task,
            experiment=f"{label or usual_algorithm(task)}{suffix}",
            seed=seed,
            train=tuple(flag_words(words)),
            evaluate=tuple(flag_words(scored)),
        )
        if cells.setdefault(cell.name, cell) is not cell:
            raise InvalidValueError(
                f"two cells of the sweep are called {cell.name}",
                fix="Give algorithms with the same algorithm names of their own",
            )
    for task in tasks:
        _ = WORLDS[task]
    for cell in cells.values():  # flags that do not parse or do not go together
        try:
            training(cell.command(Path(cell.name)))
            asked = cell.evaluation()
            check_unset(select_protocols(cell.task, asked["protocols"]), asked)
            select_metrics(asked["metrics"])
        except UsageError as error:
            raise InvalidValueError(f"{file.name}, {cell.name}: {error}") from None
    return tuple(cells.values())


def _algorithm(entry: Any) -> tuple[str, dict[str, Any]]:
    """Returns an algorithm's label and its flags of `train`; None is a task's usual one."""
    if entry is None:
        return "", {}
    if isinstance(entry, str):
        entry = {"algorithm": entry}
    if not isinstance(entry, dict) or not isinstance(entry.get("algorithm"), str):
        raise InvalidValueError(
            f"algorithms has {entry!r}",
            allowed="a name, or a mapping with algorithm, flags of train, and name",
        )
    _check_free({n: v for n, v in entry.items() if n != "algorithm"}, "an algorithm")
    label = entry.get("name", entry["algorithm"])
    if not isinstance(label, str) or not _NAME.fullmatch(label):
        raise InvalidValueError(f"an algorithm is named {label!r}", allowed="letters, - +")
    return label, {name: value for name, value in entry.items() if name != "name"}


def _check_free(flags: Mapping[str, Any], what: str) -> None:
    """Raises for a flag of `train` that the sweep gives itself."""
    for name in flags:
        if name in _OTHERS:
            raise InvalidValueError(
                f"{what} gives {name}, which the sweep gives", fix=f"Leave out {name}"
            )


def _curriculum(entry: Any) -> tuple[str, dict[str, Any]]:
    """Returns the suffix of a curriculum's label and its flags of `train`."""
    if entry is None:
        return "", {}
    if isinstance(entry, int) and not isinstance(entry, bool):
        return f"-c{entry}", {"curriculum": entry}
    words = entry if isinstance(entry, list) else [entry]
    if not words or not all(isinstance(word, str) for word in words):
        raise InvalidValueError(
            f"curricula has {entry!r}", allowed="null, 0, 1, 2, an actor, or a list of actors"
        )
    return "-" + re.sub(r"[^\w.+-]", "_", "+".join(words))[:60], {"actor": words}


def _listed(given: Mapping[str, Any], key: str, default: Sequence[Any] = ()) -> list[Any]:
    """Returns the entries of a key, each once."""
    value = given.get(key, default)
    listed = list(value) if isinstance(value, list | tuple) else [value]
    texts = key != "tasks" or all(isinstance(entry, str) for entry in listed)
    if not listed or not texts or len(listed) > _MOST:
        raise InvalidValueError(
            f"{key} is {str(value)[:80]!r}", allowed="a list", fix=f"Write {key}: [...]"
        )
    return [entry for place, entry in enumerate(listed) if entry not in listed[:place]]


def sweep_command(config: SweepCommand) -> None:
    """Runs the sweep and says where its report is; raises at the end if cells failed."""
    if config.dry_run:
        check_whole(config.workers, "workers", MOST_WORKERS)
        rows = [_planned(cell, folder_of(config.out, cell)) for cell in read_plan(config.file)]
        table = Table(Column("cell", overflow="fold"), "state", "steps", "episodes", "seconds")
        for row in rows:
            steps = "?" if row["steps"] is None else f"{row['steps']:,}"
            seconds = "" if row["seconds"] is None else f"{row['seconds']:.0f}"
            table.add_row(row["name"], row["state"], steps, f"{row['episodes']:,}", seconds)
        left = sum(row["state"] != "finished" for row in rows)
        table.add_section()
        table.add_row(f"{len(rows)} cells", f"{left} to do", "", "", "")
        tell(config, {"cells": rows}, table)
        return
    workers, cluster = config.workers, config.cluster
    outcome = sweep(config.file, config.out, workers=workers, cluster=cluster, progress=True)
    cells, failed, results = [], outcome.failed, outcome.results
    for cell in outcome.cells:
        run = folder_of(config.out, cell)
        told = {name: getattr(cell, name) for name in ("name", "task", "experiment", "seed")}
        error = failed.get(cell.name)
        end = {"results": run / SCORES} if error is None else {"error": error}
        cells.append({**told, "run": run, **end})
    made = {"results": config.out / RESULT_FILE, "report": config.out / "report" / "index.html"}
    shown: list[Any] = []
    if len(results):
        shown = [results.table(), f"Report in {config.out / 'report'}"]
    tell(config, {"cells": cells, **(made if shown else dict.fromkeys(made))}, *shown)
    if failed:
        errors = "; ".join(f"{name}: {error}" for name, error in sorted(failed.items()))
        raise FailedCellsError(
            explain(
                f"{len(failed)} cells failed ({errors[:800]})",
                fix="The others are finished; start the same command again for these",
            )
        )


def _planned(cell: SweepCell, folder: Path) -> dict[str, Any]:
    """Returns how far a cell is, how much it asks for, and the seconds it took if it is done."""
    record, asked = _record(folder), cell.evaluation()
    state = "begun" if (folder / "train.json").exists() else "new"
    if _is_finished(folder):
        state = "finished"
    elif (folder / FAILED).exists():
        state = "failed"
    return {
        "name": cell.name,
        "state": state,
        "steps": training(cell.command(folder))[0].steps,
        "episodes": asked["episodes"] * len(select_protocols(cell.task, asked["protocols"])),
        "seconds": sum(record["seconds"]) if record and record.get("seconds") else None,
    }


@final
class SweepOutcome(NamedTuple):
    """What a sweep came to: its cells, the scores of those that finished, errors by cell."""

    cells: tuple[SweepCell, ...]
    results: Results
    failed: dict[str, str]


def sweep(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    workers: int = 1,
    cluster: str | None = None,
    progress: bool = False,
) -> SweepOutcome:
    """Returns the scores of a sweep, and writes them with a report.

    A cell that fails is recorded and the others go on; started again, finished cells are skipped,
    failed ones tried again, and one that was interrupted goes on from its last checkpoint.

    Args:
        file: tasks, algorithms, curricula, seeds, and flags of train and evaluate; see docs/cli.md.
        out: a folder: `cells/NAME` for each, `results.parquet` and `report`.
        workers: how many cells run at a time, in processes of their own if more than one.
        cluster: a Ray cluster that runs the cells, as for `evaluate`; None stays on this machine.
        progress: whether to show a progress bar on standard error.
    """
    check_whole(workers, "workers", MOST_WORKERS)
    plan, root = read_plan(Path(file)), Path(out)
    with alone_in(root):
        for cell in plan:  # a folder that was begun as another cell's raises
            folder = folder_of(root, cell)
            code = own_code(cell.task, training(cell.command(folder))[0].options)
            words = {"train": list(cell.train), "evaluate": list(cell.evaluate)}
            stamp(folder / _CELL, {**words, "code": code}, "cell")
        missing = [cell for cell in plan if not _is_finished(folder_of(root, cell))]
        failed = _run_all(plan, missing, root, workers, cluster, progress=progress)
        files = [folder_of(root, c) / SCORES / RESULT_FILE for c in plan if c.name not in failed]
        results = Results.concat([Results.from_parquet(file) for file in files])
        if files:
            from interverse.reports.page import report  # loads matplotlib

            results.to_parquet(root / RESULT_FILE)
            report(results, root / "report", episodes=False, title="Sweep")
        return SweepOutcome(plan, results, failed)


def folder_of(root: Path, cell: SweepCell) -> Path:
    """Returns the folder of a cell in a sweep's folder."""
    return root / "cells" / cell.name


def _run_all(
    plan: Sequence[SweepCell],
    missing: list[SweepCell],
    root: Path,
    workers: int,
    cluster: str | None,
    *,
    progress: bool,
) -> dict[str, str]:
    """Runs the missing cells, with a bar on the way; returns the errors by cell."""
    failed: dict[str, str] = {}
    given: dict[str, Any] = {"workers": workers, "on_lost": lambda _, error: _describe(error)}
    finished: Generator[tuple[SweepCell, dict[str, bytes] | str | None]]
    if cluster is None:
        finished = run_units(_run_here, missing, root, **given)
    else:
        engines = {task: _engine(task) for task in {cell.task for cell in missing}}
        finished = run_units(_run_elsewhere, missing, engines, cluster=cluster, **given)
    failures = TextColumn("{task.fields[f]}")
    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), failures)
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not progress) as bar, closing(finished):
        done = len(plan) - len(missing)
        task = bar.add_task("cells", total=len(plan), completed=done, f="")
        for cell, found in finished:
            folder = folder_of(root, cell)
            if isinstance(found, dict):  # of another machine; the record that counts comes last
                for name in sorted(found, key=lambda name: name == FINISHED):
                    write_bytes(folder / name, found[name])
                (folder / FAILED).unlink(missing_ok=True)
            elif found:
                write_json(folder / FAILED, {"error": found})
                failed[cell.name] = found
            bar.update(task, advance=1, f=f"{len(failed)} failed" if failed else "")
    return failed


def _run_here(cell: SweepCell, root: Path) -> str | None:
    """Runs a cell in its folder; returns its error, if any."""
    try:
        run_cell(cell, folder_of(root, cell))
    except Exception as error:  # the other cells go on
        return _describe(error)
    return None


def run_cell(cell: SweepCell, folder: Path) -> None:
    """Trains, scores and records a cell, from wherever its folder stands."""
    remove_stale(folder)
    fresh = not (folder / "train.json").exists()
    started = time.monotonic()
    settings, train = training(cell.command(folder))
    policy = train(settings, progress=False)
    trained = time.monotonic()
    evaluate(
        load_policy(policy),  # by content: where it lies must not be part of the scores
        cell.task,
        out=folder / SCORES,
        experiment=cell.experiment,
        **cell.evaluation(),
    )
    seconds = [trained - started, time.monotonic() - trained] if fresh else None
    write_json(folder / FINISHED, {"files": _hashes(folder), "seconds": seconds})
    (folder / FAILED).unlink(missing_ok=True)


def _engine(task: str) -> dict[str, str]:
    """Returns by which engine and contacts this machine plays a task, if it is not told."""
    world = build_world(task, 1, {})
    try:
        return engine_of(world)
    finally:
        world.close()


def _run_elsewhere(
    cell: SweepCell, engines: Mapping[str, Mapping[str, str]]
) -> dict[str, bytes] | str:
    """Returns the files of a cell that was run in a folder of this machine, or its error."""
    if (here := _engine(cell.task)) != engines[cell.task]:
        node = os.uname().nodename
        return f"node {node} of the cluster has the engine {here} instead of {engines[cell.task]}"
    with scratch_folder() as folder:
        try:
            run_cell(cell, folder)
        except Exception as error:  # the other cells go on
            return _describe(error)
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != ".lock"
        }


def _describe(error: Exception) -> str:
    """Returns an error as the record of a failed cell has it."""
    return f"{type(error).__name__}: {error}"


def _is_finished(folder: Path) -> bool:
    """Returns whether a folder holds what its record says: its files are compared by content."""
    held = _record(folder)
    return held is not None and bool(held.get("files")) and held.get("files") == _hashes(folder)


def _record(folder: Path) -> dict[str, Any] | None:
    """Returns the record of a finished cell; None if there is none, or a torn one."""
    try:
        return read_json_object(folder / FINISHED)
    except (FileNotFoundError, FileFormatError):
        return None


def _hashes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): file_hash(path)
        for pattern in _KEPT
        for path in sorted(folder.glob(pattern))
    }
